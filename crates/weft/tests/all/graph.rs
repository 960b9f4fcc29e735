//! Pictures of fabrics, from files and of a laboratory that runs.

use common::{Home, text};

use crate::common;

#[test]
fn a_file_is_drawn_in_every_format() {
    let home = Home::new();
    let tree = home.small_tree();
    for (name, begins, has) in [
        ("a.svg", "<svg ", "<title>host-3</title>"),
        ("a.html", "<!doctype html>", "<summary>The same as a table</summary>"),
        ("a.mmd", "---\ntitle: \"tree.topo\"", "([\"host-0\"])"),
        ("a.dot", "graph fabric {", "label=\"switch-2-1\", shape=box"),
    ] {
        home.weft(&["graph", text(&tree), "-o", name]).succeeds();
        let drawn = std::fs::read_to_string(home.folder().join(name)).unwrap();
        assert!(drawn.starts_with(begins) && drawn.contains(has), "{name}: {drawn}");
    }
    let folded = home.weft(&["graph", text(&tree), "--fold", "--format", "mermaid"]).stdout;
    assert!(folded.contains("switch-1-0 (2 hosts)") && !folded.contains("host-0"), "{folded}");
    home.weft(&["graph", text(&tree), "-o", "a.png"]).fails(2, "does not say which format");
    home.weft(&["graph", "none.topo"]).fails(2, "none.topo");
    home.weft(&["graph", text(&tree), "--colour", "data"]).fails(2, "cannot be used with");
}

#[test]
fn tables_are_drawn_with_their_load_and_their_circle() {
    let home = Home::new();
    home.weft(&["topo", "gen", "ring", "--switches", "5", "-o", "ring.topo"]).succeeds();
    let minhop = ["routes", "compute", "ring.topo", "--engine", "minhop", "--dump", "out"];
    home.weft(&minhop).succeeds();
    let count = |drawn: &str, what: &str| drawn.matches(what).count();
    let drawn = home.weft(&["graph", "ring.topo", "--tables", "out"]).stdout;
    assert_eq!(count(&drawn, "<line class=\"circle\""), 6, "five cables and the legend: {drawn}");
    assert!(
        drawn.contains("pairs of hosts in the busier direction,") && drawn.contains(">0 to 3<"),
        "{drawn}"
    );
    assert!(drawn.contains("deadlock is possible: 5 channels of lane 0 in a circle"), "{drawn}");
    // Up/down routing has none, and verify draws the same of what it finds.
    let updn = home.weft(&["graph", "ring.topo", "--engine", "updn", "--colour", "load"]).stdout;
    assert_eq!(count(&updn, "<line class=\"circle\""), 0, "{updn}");
    home.weft(&["routes", "verify", "ring.topo", "out", "--picture", "found.svg"])
        .fails(1, "wrote found.svg");
    let found = std::fs::read_to_string(home.folder().join("found.svg")).unwrap();
    assert_eq!(count(&found, "<line class=\"circle\""), 6, "{found}");
    home.weft(&["routes", "verify", "ring.topo", "out", "--picture", "a.png"]).fails(2, "which format");
    let engines = ["routes", "compare", "ring.topo", "--engines", "minhop,updn", "--runs", "1"];
    home.weft(&[&engines[..], &["--picture", "load.svg"]].concat()).succeeds();
    let [minhop, updn] = ["load-minhop.svg", "load-updn.svg"]
        .map(|name| std::fs::read_to_string(home.folder().join(name)).unwrap());
    let end = |drawn: &str| drawn.split(">0 to ").nth(1).unwrap_or_else(|| panic!("{drawn}"))[..1].to_owned();
    assert_eq!(end(&minhop), end(&updn), "both have one scale");
}

#[test]
fn a_running_laboratory_shows_its_cut_cable_and_a_route() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let draw = |arguments: &[&str]| home.weft(&[&["graph"], arguments].concat()).stdout;
    let whole = draw(&["--route", "host-0", "host-3"]);
    let count = |drawn: &str, what: &str| drawn.matches(what).count();
    // Four cables, and the legend.
    assert_eq!(
        (count(&whole, "<line class=\"route\""), count(&whole, "<line class=\"down\"")),
        (5, 0),
        "{whole}"
    );
    home.weft(&["fault", "link-down", "switch-2-0:1"]).succeeds();
    home.weft(&["check", "--wait", "0", "--picture", "check.svg"]);
    let checked = std::fs::read_to_string(home.folder().join("check.svg")).unwrap();
    assert_eq!(count(&checked, "<line class=\"down\""), 2, "{checked}");
    let load = draw(&["--colour", "load"]);
    assert!(load.contains("pairs of hosts in the busier direction"), "{load}");
    let cut = draw(&[]);
    assert_eq!(count(&cut, "<line class=\"down\""), 2, "{cut}");
    // What carries most has the scale's last step.
    home.weft(&["flow", "start", "host-0", "host-1", "--name", "load"]).succeeds();
    common::wait_until("the busy cables are painted", || {
        let busy = draw(&["--colour", "data", "--over", "200ms"]);
        count(&busy, "<line class=\"s4\"") == 2 && busy.contains("data of the busier direction")
    });
    home.weft(&["graph", "--route", "host-0", "nobody"]).fails(2, "no node has the id");
}

#[test]
fn a_move_is_drawn_before_it_is_made() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--vfs", "1", "--lids", "dynamic"]).succeeds();
    home.weft(&["vm", "create", "web", "--host", "host-0"]).succeeds();
    home.weft(&["vm", "plan", "web", "host-3", "--picture", "plan.svg"]).succeeds();
    let plan = std::fs::read_to_string(home.folder().join("plan.svg")).unwrap();
    for words in ["web is here", "goes to host-3", "switches written", "round 1: "] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    // Both hosts and the legend; and every switch that is written.
    assert_eq!(plan.matches("<rect class=\"g0\"").count(), 2, "{plan}");
    assert!(plan.matches("<rect class=\"g2\"").count() > 2, "{plan}");
    let drawn = home.weft(&["graph", "--move", "web", "host-3", "--fold"]).stdout;
    assert!(drawn.contains("goes to host-3") && drawn.contains("web moves to host-3"), "{drawn}");
    home.weft(&["graph", "--move", "none", "host-3"]).fails(1, "no virtual machine is called `none`");
}
