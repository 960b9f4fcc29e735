//! The live subnet manager with routing engines: what the chain does, and what hosts learn.

use common::{Home, text};

use crate::common;

/// A ring of six switches with a host each, made beside the laboratories.
fn ring(home: &Home) -> &'static str {
    home.weft(&["topo", "gen", "ring", "--switches", "6", "--hosts", "1", "-o", "ring.topo"]).succeeds();
    "ring.topo"
}

#[test]
fn lash_routes_a_ring_on_two_lanes() {
    let home = Home::new();
    home.weft(&["up", ring(&home), "--engine", "lash,no_fallback", "--pack", "all"]).succeeds();
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["sm"]["routing"]["engine"], "lash", "{status}");
    assert_eq!(status["sm"]["routing"]["lanes"], 2, "{status}");
    let check = home.weft(&["check"]);
    let says = "deadlock: none possible on the 2 lanes that the subnet manager spreads packets over (";
    assert!(check.succeeds().stdout.contains(says), "{}", check.stdout);
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_chain_says_why_it_went_on() {
    let home = Home::new();
    home.weft(&["up", ring(&home), "--engine", "ftree,updn", "--pack", "all"]).succeeds();
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["sm"]["routing"]["engine"], "updn", "{status}");
    let refusals = status["sm"]["routing"]["fallbacks"].as_array().unwrap();
    assert!(refusals.iter().any(|reason| reason.as_str().unwrap().starts_with("ftree: ")), "{status}");
    let said = home.weft(&["status"]);
    assert!(said.stdout.contains("routing: updn, 1 data lane\nrouting: ftree: "), "{}", said.stdout);
    // Switches all have hosts, so up/down leaves out none of their ways.
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_tree_by_up_and_down_is_sound_for_check() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--engine", "updn", "--lmc", "1", "--pack", "all"]).succeeds();
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["sm"]["routing"]["engine"], "updn", "{status}");
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
}

/// A ring by LASH with a lane kept for management: the manager says which, and its tables still stand up to `check`, which
/// computes the routing once more with the lanes that are left.
#[test]
fn management_keeps_a_lane() {
    let home = Home::new();
    let file = ring(&home);
    let options =
        ["--engine", "lash", "--management-lane", "true", "--max-op-vls", "4", "--hoq-lifetime", "20"];
    home.weft(&[&["up", file, "--pack", "all"], &options[..]].concat()).succeeds();
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["sm"]["management_lane"], "3", "{status}");
    assert_eq!(status["sm"]["routing"]["engine"], "lash", "{status}");
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
}

#[test]
fn invalid_engine_options_are_refused_before_the_start() {
    let home = Home::new();
    let file = ring(&home);
    let up = |arguments: &[&str]| home.weft(&[&["up", file], arguments].concat());
    up(&["--engine", "best"]).fails(2, "no engine is called `best`");
    up(&["--engine", ""]).fails(2, "no engine is named");
    up(&["--engine", "updn", "--order", "x"]).fails(2, "cannot read x");
    home.write("roots", "0x0200535700000001\n");
    up(&["--engine", "lash", "--roots", "roots"]).fails(2, "--roots means nothing to lash");
    home.write("roots", "0x0200535700000099\n");
    up(&["--engine", "updn", "--roots", "roots"]).fails(2, "is nobody's GUID");
    home.write("parts", "tenant=0x2 isolation=phy\n");
    up(&["--engine", "pftree-ext", "--partitions", "parts"]).fails(2, "parts:1:");
    let no_tables = "takes tables of service levels and lanes";
    up(&["--management-lane", "true", "--qos", "false"]).fails(2, no_tables);
    up(&["--equal-lanes", "true", "--qos", "false"]).fails(2, no_tables);
    up(&["--max-op-vls", "3"]).fails(2, "1, 2, 4, 8 or 15");
    up(&["--hoq-lifetime", "32"]).fails(2, "0..=31");
    up(&["--vl-stall-count", "0"]).fails(2, "1..=7");
    up(&["--standby", "1", "--priority", "0"]).fails(2, "hint: use --priority 1 or higher with --standby");
    up(&["--part-enforce", "some"]).fails(2, "possible values: both, in, out, off");
    home.weft(&["sim", file, "--engine", "best"]).fails(2, "no engine is called `best`");
    assert!(home.is_empty());
}

/// What no engine routes ends `up` at once, with the manager's own sentence.
#[test]
fn a_fabric_that_no_engine_routes_does_not_come_up() {
    let home = Home::new();
    // Waited for to its end, this would outlast the time that a command may take here.
    let patience = ["--patience", "3600"];
    let up = ["up", ring(&home), "--engine", "ftree,no_fallback", "--pack", "all"];
    let up = [&up[..], &patience].concat();
    let done = home.weft(&up);
    done.fails(1, "error: the subnet manager cannot route this fabric: ftree: ")
        .fails(1, "hint: nothing is left running; --keep keeps the laboratory");
    assert!(home.weft(&["down"]).succeeds().stderr.contains("no laboratory is running"));

    home.weft(&[&up[..], &["--keep", "--standby", "1"]].concat())
        .fails(1, "hint: the laboratory runs on: `weft status` tells more");
    assert!(home.processes().iter().any(|(name, _)| name == "sm-2"), "the standby is kept too");
    let status = home.json(&["status", "--json"]);
    let reason = status["sm"]["not_routed"].as_str().unwrap_or_default();
    assert!(reason.starts_with("ftree: ") && status["sm"]["subnet_up"] == false, "{status}");
    let events = home.weft(&["events", "--json"]).succeeds().stdout.clone();
    let has = |event: &str| events.contains(&format!("\"event\":\"{event}\""));
    assert!(has("route-failed") && !has("subnet-up"), "{events}");
    home.weft(&["down"]).succeeds();
}

#[test]
fn up_tells_which_engine_routed_and_whether_that_may_deadlock() {
    let home = Home::new();
    let up = ["up", ring(&home), "--pack", "all"];
    let done = home.weft(&up);
    let said = &done.succeeds().stdout;
    let lines = "routing: updn, 1 data lane\nrouting: minhop: this routing may deadlock: ";
    assert!(said.contains(lines), "{said}");
    home.weft(&["down"]).succeeds();
    let done = home.weft(&[&up[..], &["--engine", "minhop", "--json"]].concat());
    let summary: serde_json::Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    let lines: Vec<&str> =
        summary["routing"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert!(lines[1].starts_with("routing: this routing may deadlock: on lane 0 "), "{lines:?}");
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_simulated_fabric_says_how_it_is_routed_and_why_not() {
    let home = Home::new();
    let ring = ring(&home);
    let done = home.weft(&["sim", ring, "--engine", "ftree,no_fallback"]);
    done.fails(1, "error: seed 1: the subnet manager cannot route this fabric: ftree: ");
    assert!(!done.stderr.contains("Some(") && !done.stderr.contains("RouteFailed"), "{}", done.stderr);
    let done = home.weft(&["sim", ring]);
    assert!(
        done.succeeds().stdout.contains("\nrouting: updn, 1 data lane\nrouting: minhop: "),
        "{}",
        done.stdout
    );
    // Up/down routing leaves out ways between spines, which no packet needs.
    let tree = ["topo", "gen", "xgft", "--children", "4,4", "--parents", "1,4", "-o", "spines.topo"];
    home.weft(&tree).succeeds();
    for engine in ["updn", "ftree", "lash", "dfsssp"] {
        home.weft(&["sim", "spines.topo", "--engine", engine]).succeeds();
    }
}

#[test]
fn the_default_engine_is_one_that_cannot_deadlock() {
    let home = Home::new();
    let found = home.json(&["routes", "compute", ring(&home), "--json"]);
    assert_eq!(
        (&found["engine"], &found["unsatisfied"]),
        (&"updn".into(), &serde_json::json!([])),
        "{found}"
    );
    let reason = found["fallbacks"][0].as_str().unwrap();
    assert!(reason.starts_with("minhop: this routing may deadlock: "), "{found}");
    let found = home.json(&["routes", "compute", text(&home.small_tree()), "--json"]);
    assert_eq!(found["engine"], "minhop", "{found}");
}

/// A tree with an aggregation node at a spine is none to an engine that takes it for a host.
#[test]
fn nodes_that_serve_management_alone_are_named() {
    let home = Home::new();
    let tree =
        ["topo", "gen", "xgft", "--children", "2,2", "--parents", "1,2", "--radix", "6", "-o", "tree.topo"];
    home.weft(&tree).succeeds();
    let path = home.base().with_file_name("tree.topo");
    let cabling = std::fs::read_to_string(&path).unwrap();
    let spine = cabling.split("Switch\t").nth(3).unwrap();
    let id = spine.split('"').nth(1).unwrap();
    let head = format!("Switch\t6 \"{id}\"");
    let begin = cabling.find(&head).unwrap();
    let line_end = begin + cabling[begin..].find('\n').unwrap() + 1;
    let mut with_node = cabling.clone();
    with_node.insert_str(
        line_end,
        "[6]\t\"H-0a0000000000000a\"[1](a00000000000000b) \t\t# \"counter\" lid 0 4xQDR\n",
    );
    with_node.push_str(&format!(
        "\nvendid=0x0\ndevid=0x0\nsysimgguid=0xa00000000000000a\ncaguid=0xa00000000000000a\nCa\t1 \
         \"H-0a0000000000000a\"\t\t# \"counter\"\n[1](a00000000000000b) \t\"{id}\"[6]\t\t# lid 0 lmc 0 \"spine\" lid 0 4xQDR\n"
    ).replace("0a0000000000000a", "a00000000000000a"));
    let with_node = with_node.replace("0a0000000000000a", "a00000000000000a");
    std::fs::write(&path, with_node).unwrap();
    let ftree = ["routes", "compute", "tree.topo", "--engine", "ftree,no_fallback", "--dump", "out"];
    home.weft(&ftree).fails(1, "no tree");
    std::fs::write(home.base().with_file_name("named"), "# counts\ncounter\n").unwrap();
    for list in ["counter", "0xa00000000000000a", "H-a00000000000000a", "named"] {
        home.weft(&[&ftree[..], &["--management-nodes", list]].concat()).succeeds();
        home.weft(&["routes", "verify", "tree.topo", "out", "--management-nodes", list]).succeeds();
    }
    let compare = ["routes", "compare", "tree.topo", "--engines", "minhop", "--runs", "3", "--json"];
    let pairs = |more: &[&str]| home.json(&[&compare[..], more].concat())["rows"][0]["pairs"].as_u64();
    assert_eq!((pairs(&[]), pairs(&["--management-nodes", "counter"])), (Some(5 * 4), Some(4 * 3)));
    home.weft(&[&ftree[..], &["--management-nodes", "nobody"]].concat())
        .fails(2, "no host or router is called `nobody`");
}

/// Tables of another engine than the one that was named come with a warning, and not among the data.
#[test]
fn an_offline_engine_that_falls_back_warns_on_stderr() {
    let home = Home::new();
    let ring = ring(&home);
    for more in [&[][..], &["--json"]] {
        let done = home.weft(&[&["routes", "compute", ring, "--engine", "ftree"], more].concat());
        done.succeeds().fails(0, "warning: updn took over: ftree: ").fails(0, "--engine ftree,no_fallback");
        assert!(more.contains(&"--json") || !done.stdout.contains("ftree"), "{}", done.stdout);
    }
    for engine in ["auto", "updn", "ftree,updn"] {
        let done = home.weft(&["routes", "compute", ring, "--engine", engine]);
        assert_eq!(done.succeeds().stderr, "", "{engine}");
    }
    for verb in ["sim", "up"] {
        let done = home.weft(&[verb, ring, "--engine", "ftree"]);
        done.succeeds().fails(0, "warning: updn took over: ftree: ").fails(0, "--engine ftree,no_fallback");
    }
    assert!(!home.weft(&["sim", ring, "--engine", "updn"]).succeeds().stderr.contains("warning"));
}

/// Without a terminal each phase is reported once, in the summary.
#[test]
fn phases_are_told_once_where_no_bars_are_drawn() {
    let home = Home::new();
    let done = home.weft(&["up", ring(&home)]);
    let all = format!("{}{}", done.succeeds().stdout, done.stderr);
    for phase in
        ["agents started", "links up", "nodes discovered", "LIDs assigned", "tables written", "ports active"]
    {
        assert_eq!(all.matches(phase).count(), 1, "{phase}: {all}");
    }
}

/// A partitions file with 127 keys, and a table that has room for 64 of them.
#[test]
fn p_keys_without_room_are_named_and_the_room_is_a_setting() {
    let home = Home::new();
    let file = home.write("three.topo", include_str!("../../../../tests/inputs/three-hosts.topo"));
    home.write("parts", include_str!("../../../../tests/inputs/part-126-vlans.conf"));
    let up = |arguments: &[&str]| {
        let done = home.weft(&[&["up", text(&file), "--partitions", "parts"], arguments].concat());
        done.succeeds();
        done
    };
    let done = up(&[]);
    let sentence = "4 ports have no room for all P_Keys of their partitions, such as 0x0002c90000c00001, which lacks 63; \
                    more fit with a higher --p-key-capacity";
    assert!(done.stdout.contains(&format!("partitions: {sentence}\n")), "{}", done.stdout);
    assert!(done.stderr.contains("parts: these flags have no effect here: ipoib, sl\n"), "{}", done.stderr);
    let status = home.weft(&["status"]).succeeds().stdout.clone();
    assert!(status.contains(&format!("partitions: {sentence}\n")), "{status}");
    let check = home.weft(&["check"]).stdout.clone();
    assert!(check.contains(&format!("note: {sentence}\n")), "{check}");
    home.weft(&["down"]).succeeds();
    let done = up(&["--p-key-capacity", "128"]);
    assert!(!done.stdout.contains("P_Key"), "{}", done.stdout);
    home.weft(&["up", text(&file), "--p-key-capacity", "65"]).fails(2, "a multiple of 32 from 32 to 1024");
}
