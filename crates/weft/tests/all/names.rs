//! Descriptions as sites have them, printed: the same one at many nodes, and bytes that terminals obey.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Home, text};
use serde_json::Value;
use weft_wire::is_unprintable;

use crate::common;

/// Two hosts of one description, and a host, a switch and a second switch with sequences that clear a screen, set a
/// colour by a character of Unicode's second control block, and turn the direction of writing.
const FABRIC: &str = "\
sysimgguid=0x1\nswitchguid=0x1(1)\nSwitch 4 \"S-0000000000000001\" # \"leaf \x1b[2J\x07\" base port 0 lid 0 lmc 0
[1] \"H-0000000000000010\"[1](11) # \"twin\" lid 0 4xQDR
[2] \"H-0000000000000020\"[1](21) # \"twin\" lid 0 4xQDR
[3] \"S-0000000000000002\"[1] # \"spine \u{9b}31m\" lid 0 4xQDR

switchguid=0x2(2)\nSwitch 4 \"S-0000000000000002\" # \"spine \u{9b}31m\" base port 0 lid 0 lmc 0
[2] \"H-0000000000000030\"[1](31) # \"host \u{202e}\x7f\" lid 0 4xQDR
[3] \"H-0000000000000040\"[1](41) # \"plain\" lid 0 4xQDR

caguid=0x10\nCa 1 \"H-0000000000000010\" # \"twin\"

caguid=0x20\nCa 1 \"H-0000000000000020\" # \"twin\"

caguid=0x30\nCa 1 \"H-0000000000000030\" # \"host \u{202e}\x7f\"

caguid=0x40\nCa 1 \"H-0000000000000040\" # \"plain\"
";

const HOSTS: [&str; 3] = ["H-0000000000000010", "H-0000000000000020", "H-0000000000000030"];

/// Fails where a text holds what a terminal would obey.
#[track_caller]
fn clean(what: &str, text: &str) {
    let raw = text.char_indices().find(|(_, c)| is_unprintable(*c) && !matches!(c, '\n' | '\t'));
    if let Some((at, c)) = raw {
        panic!(
            "{what} prints {:?} raw: {:?}",
            c,
            text.lines().find(|line| line.contains(c)).unwrap_or(&text[at..])
        );
    }
}

/// Runs a command and gives its standard output, which like its standard error is clean.
fn run(home: &Home, arguments: &[&str]) -> String {
    let done = home.weft(arguments);
    clean(&arguments.join(" "), &done.stdout);
    clean(&arguments.join(" "), &done.stderr);
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
    done.stdout
}

#[test]
fn descriptions_are_escaped_and_names_can_be_typed() {
    let home = Home::new();
    let file = home.write("nasty.topo", FABRIC);
    run(&home, &["up", text(&file), "--pm", "--metrics"]);
    let commands = [&["ps"][..], &["links"], &["events"], &["events", "--fields"]];
    for command in commands.into_iter().chain([&["status"][..], &["metrics"], &["check"]]) {
        let done = home.weft(command);
        clean(command[0], &(done.stdout + &done.stderr));
    }
    for verb in ["ps", "links", "events", "status", "check"] {
        let done = home.weft(&[verb, "--json"]);
        clean(verb, &done.stdout);
        for line in done.stdout.lines().filter(|_| verb == "events") {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        }
    }
    let lab = std::fs::read_dir(home.base()).unwrap().map(|entry| entry.unwrap().path());
    let lab = lab.into_iter().find(|path| path.join("logs").exists()).unwrap();
    for log in std::fs::read_dir(lab.join("logs")).unwrap() {
        let path = log.unwrap().path();
        clean(text(&path), &String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
    }
    // JSON has the description, as the laboratory's topology file holds it.
    let described = home.json(&["links", "--json"]);
    let ends = described.as_array().unwrap().iter().flat_map(|link| [&link["a"], &link["b"]]);
    let names: Vec<(&str, &str)> =
        ends.map(|end| (end["id"].as_str().unwrap(), end["node"].as_str().unwrap())).collect();
    assert!(names.contains(&("S-0000000000000001", "leaf \\u{1b}[2J\\u{7}")), "{names:?}");
    // Every name in the table leads to a node, and twins have names of their own.
    let links = run(&home, &["links"]);
    for host in HOSTS {
        assert!(links.contains(&format!("{host}:1")), "{links}");
    }
    assert!(!links.contains("twin") && links.contains("plain:1"), "{links}");
    let ps = run(&home, &["ps"]);
    assert!(HOSTS.iter().all(|host| ps.contains(host)) && ps.contains("twin"), "{ps}");
    for name in links.lines().skip(1).flat_map(|line| line.split_whitespace().take(2)) {
        let (node, _) = name.rsplit_once(':').unwrap();
        let trace = run(&home, &["trace", "plain", node]);
        assert!(trace.starts_with(&format!("plain -> {node} (LID ")), "{name}: {trace}");
    }
    let trace = run(&home, &["trace", HOSTS[0], HOSTS[1]]);
    assert!(trace.lines().last().unwrap().contains(HOSTS[1]), "{trace}");
    run(&home, &["fault", "link-down", "H-0000000000000010:1"]);
    let is_down = |line: &&str| line.contains("link-down") && line.contains("node=");
    let mut events = String::new();
    common::wait_until("an end tells of the cut", || {
        events = run(&home, &["events", "--fields"]);
        events.lines().any(|line| is_down(&line))
    });
    let down = events.lines().find(is_down).unwrap();
    assert!(down.contains("node=H-0000000000000010") || down.contains("node=S-0000000000000001"), "{down}");
    for wrong in
        [&["trace", "twin", "plain"][..], &["trace", "\x1b[2J", "plain"], &["fault", "link-down", "twin:1"]]
    {
        let done = home.weft(wrong);
        assert_eq!(done.code, 2, "{}", done.stderr);
        clean("an error", &done.stderr);
    }
}

#[test]
fn a_topology_files_text_is_shown_and_written_clean() {
    let home = Home::new();
    let file = home.write("nasty.topo", FABRIC);
    let shown = run(&home, &["topo", "show", text(&file)]);
    assert!(shown.contains("leaf \\u{1b}[2J\\u{7}"), "{shown}");
    run(&home, &["topo", "show", text(&file), "--json"]);
    run(&home, &["topo", "check", text(&file)]);
    run(&home, &["topo", "diff", text(&file), text(&file)]);
    let (dot, dumps) = (home.base().with_extension("dot"), home.base().with_extension("dumps"));
    let arguments =
        ["routes", "compute", text(&file), "--engine", "minhop", "--dump", text(&dumps), "--dot", text(&dot)];
    run(&home, &arguments);
    clean("the graph", &std::fs::read_to_string(&dot).unwrap());
    for dump in std::fs::read_dir(&dumps).unwrap() {
        let path = dump.unwrap().path();
        clean(text(&path), &String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
    }
    let other = home.write("bad.topo", "Switch 4 \"a\x1bb\"\n");
    let done = home.weft(&["topo", "check", text(&other)]);
    assert!(
        done.code == 2 && done.stderr.contains("control characters cannot be part of a name"),
        "{}",
        done.stderr
    );
    clean("an error", &done.stderr);
}

#[test]
fn followed_events_begin_now_or_where_the_user_says() {
    let home = Home::new();
    let file = home.small_tree();
    run(&home, &["up", text(&file)]);
    let up = |text: &str| text.contains(" sm SUBNET UP after ");
    assert!(up(&run(&home, &["events"])));
    assert!(
        up(&run(&home, &["events", "--since", "1h"]))
            && up(&run(&home, &["events", "--since", "2020-01-01"]))
    );
    assert_eq!(run(&home, &["events", "--since", "2999-01-01T00:00:00Z"]), "");
    home.weft(&["events", "--since", "yesterday"]).fails(2, "invalid time `yesterday`; use `30s`");
    home.weft(&["events", "--kind", "rain"]).fails(2, "tip: docs/control.md lists all kinds of events");
    home.weft(&["events", "--kind", "link-dwon"]).fails(2, "similar value exists: 'link-down'");
    home.weft(&["events", "--node", "nobody"]).fails(2, "no node has the id, description or GUID `nobody`");
    home.weft(&["events", "--fields", "--json"]).fails(2, "cannot be used with");
    let mut child = home
        .command(&["events", "--fields", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("following events"), "{ready}");
    run(&home, &["fault", "link-down", "host-0:1"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    // What was before is not shown, so the first is the fault itself.
    assert!(first.contains("fault") && first.contains("link-down"), "{first}");
    let down =
        lines.map_while(Result::ok).find(|line| line.contains(" link-down ") && line.contains("node=host-0"));
    assert!(down.is_some());
    // Both agents are asked to cut: the second one is, or hears of it from its neighbour first.
    common::wait_until("both ends tell people of the cut", || {
        let events = run(&home, &["events", "--kind", "link-down", "--node", "host-0", "--since", "1h"]);
        let cut = |head: &str, tail: &str| {
            ["here", "at the other end"]
                .iter()
                .any(|by| events.contains(&format!("{head}link down (cut {by}){tail}")))
        };
        cut(" host-0:1 ", ", peer switch-1-0:1") && cut(" switch-1-0:1 ", ", peer host-0:1")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let mut events = home.events_since("start");
    events.wait_for("what was before", |event| event["event"] == "subnet-up");
}
