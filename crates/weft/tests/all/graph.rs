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
