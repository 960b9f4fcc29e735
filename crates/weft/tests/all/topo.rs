//! `weft topo` and what else needs no laboratory.

use std::io::Read;
use std::process::Stdio;

use common::Home;

use crate::common;

#[test]
fn every_kind_is_generated_and_read_back() {
    let home = Home::new();
    let kinds: [(&[&str], &str); 16] = [
        (&["xgft", "--children", "2,4", "--parents", "1,2"], "6 8 0 16 1"),
        (&["pgft", "--children", "2,2", "--parents", "1,2", "--parallel", "1,2"], "4 4 0 12 1"),
        (&["rlft", "--radix", "4", "--levels", "2"], "6 8 0 16 1"),
        (&["kary", "--arity", "2", "--levels", "3"], "12 8 0 24 1"),
        (&["xgft", "--children", "2,4", "--parents", "1,2", "--hosts", "5"], "6 5 0 13 1"),
        (
            &["pgft", "--children", "2,2", "--parents", "1,2", "--parallel", "1,2", "--hosts", "3"],
            "4 3 0 11 1",
        ),
        (&["rlft", "--radix", "4", "--levels", "2", "--hosts", "4"], "6 4 0 12 1"),
        (&["kary", "--arity", "2", "--levels", "3", "--hosts", "1"], "12 1 0 17 1"),
        (&["mesh", "--dims", "3,3", "--hosts", "2"], "9 18 0 30 1"),
        (&["torus", "--dims", "3,3"], "9 9 0 27 1"),
        (&["ring", "--switches", "5", "--radix", "8"], "5 5 0 10 1"),
        (&["hypercube", "--dimension", "3"], "8 8 0 20 1"),
        (&["dragonfly", "--routers", "2", "--global", "1", "--hosts", "1"], "6 6 0 12 1"),
        (&["director", "--lines", "3,2", "--spines", "2", "--inside", "2", "--trunks", "4"], "9 5 0 29 1"),
        (&["director", "--lines", "2", "--spines", "1", "--hosts", "0", "--edges", "2"], "5 0 0 2 3"),
        (&["random", "--switches", "4", "--hosts", "6", "--cables", "3", "--seed", "7"], "4 6 0 12 1"),
    ];
    for (arguments, counts) in kinds {
        let arguments = [&["topo", "gen"], arguments].concat();
        let first = home.weft(&arguments);
        let again = home.weft(&arguments);
        assert_eq!(first.succeeds().stdout, again.succeeds().stdout, "{arguments:?} is not deterministic");
        home.write("x.topo", &first.stdout);
        let checked = home.weft(&["topo", "check", "x.topo"]);
        let line = checked.succeeds().stdout.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(line.join(" "), counts, "{arguments:?}");
    }
}

#[test]
fn a_missing_parameter_is_named() {
    let home = Home::new();
    home.weft(&["topo", "gen", "ring"]).fails(2, "a fabric of kind ring needs --switches");
    home.weft(&["topo", "gen", "ring", "--switches", "300", "--radix", "2"]).fails(2, "radix of 2");
    let managed = ["topo", "gen", "ring", "--switches", "3", "--aggregation-nodes"];
    let text = home.weft(&[&managed[..], &["--radix", "4", "-o", "-"]].concat()).succeeds().stdout.clone();
    assert_eq!(text.matches("# \"Mellanox Technologies Aggregation Node\"").count(), 3 * 2, "{text}");
    home.weft(&managed).fails(2, "hint: leave ports free for the aggregation nodes with --radix");
    home.weft(&["topo", "gen", "kary", "--arity", "2", "--levels", "2", "--hosts", "5"])
        .fails(2, "the number of hosts of this tree must be 0 to 4, not 5");
}

#[test]
fn differences_are_told_and_are_exit_code_1() {
    let home = Home::new();
    let ring = |switches, file| home.weft(&["topo", "gen", "ring", "--switches", switches, "-o", file]);
    ring("4", "a.topo").succeeds();
    ring("5", "b.topo").succeeds();
    let same = home.weft(&["topo", "diff", "a.topo", "a.topo"]);
    assert_eq!(same.succeeds().stdout, "");
    let differ = home.weft(&["topo", "diff", "a.topo", "b.topo"]);
    assert_eq!(differ.code, 1, "{}", differ.stderr);
    assert!(differ.stdout.lines().count() >= 4, "{}", differ.stdout);
    let json = home.weft(&["topo", "diff", "a.topo", "b.topo", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), differ.stdout.lines().count());
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let home = Home::new();
    let mut child = home
        .command(&["topo", "gen", "rlft", "--radix", "16", "--levels", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stderr, b"");
}

#[test]
fn completions_know_the_verbs() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let done = home.weft(&["completions", shell]);
        for word in ["up", "fault", "completions"] {
            assert!(done.succeeds().stdout.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn the_help_of_every_verb_is_there() {
    let home = Home::new();
    let verbs =
        ["up", "down", "ps", "status", "links", "trace", "check", "events", "fault", "topo", "bench", "sim"];
    for verb in verbs {
        let done = home.weft(&[verb, "--help"]);
        assert!(done.succeeds().stdout.contains("Usage:"), "{verb}");
    }
}

#[test]
fn a_fabric_comes_up_in_virtual_time_and_the_seed_decides_how() {
    let home = Home::new();
    let file = home.small_tree();
    let sim = |seed: &str| {
        home.json(&["sim", common::text(&file), "--seed", seed, "--link-jitter-us", "50", "--json"])
    };
    let (first, again, other) = (sim("7"), sim("7"), sim("8"));
    assert_eq!(first, again);
    assert_ne!(first["trace"], other["trace"]);
    assert_eq!((&first["summary"]["switches"], &first["summary"]["ports_active"]), (&4.into(), &16.into()));
    let shown = home.weft(&["sim", common::text(&file), "--smp-routing", "lid", "--sm-at", "host-2"]);
    assert!(shown.succeeds().stdout.contains("SUBNET UP after"), "{}", shown.stdout);
}

#[test]
fn the_help_of_up_names_the_options_of_devices() {
    let help = Home::new().weft(&["up", "--help-all"]).succeeds().stdout.clone();
    for option in ["--smp-processing-us", "--vl15-buffer", "--trap-interval-ms", "--trap-limit"] {
        assert!(help.contains(option), "{option} is not in: {help}");
    }
}

#[test]
fn a_damaged_tree_and_adapters_as_linux_describes_them() {
    let home = Home::new();
    let shape = ["topo", "gen", "pgft", "--children", "3,4", "--parents", "1,2", "--parallel", "1,2"];
    let cables = |arguments: &[&str]| {
        home.weft(&[&shape, arguments, &["-o", "tree.topo"]].concat()).succeeds();
        home.json(&["topo", "check", "tree.topo", "--json"])["cables"].as_u64().unwrap()
    };
    assert_eq!((cables(&[]), cables(&["--drop-cables", "5", "--seed", "3"])), (28, 23));
    let [first, again, other] = ["3", "3", "4"].map(|seed| {
        home.weft(&[&shape[..], &["--drop-cables", "5", "--seed", seed]].concat()).succeeds().stdout.clone()
    });
    assert!(first == again && first != other, "the seed decides");
    home.weft(&[&shape[..], &["--drop-cables", "17"]].concat())
        .fails(2, "there are 16 cables between switches");
    let linux = home.weft(&shape).succeeds().stdout.clone();
    assert!(linux.contains("\"host-11 mlx5_0\"") && !linux.contains("\"host-11\""), "{linux}");
    let plain = home.weft(&[&shape[..], &["--describe", "plain"]].concat()).succeeds().stdout.clone();
    assert_eq!(plain, linux.replace(" mlx5_0\"", "\""));
    // The host's name is enough.
    home.write("linux.topo", &linux);
    home.weft(&["sim", "linux.topo", "--sm-at", "host-11", "--management-nodes", "host-3"]).succeeds();
    home.weft(&["sim", "linux.topo", "--management-nodes", "host-12"]).fails(2, "is called `host-12`");
}

/// Its only adapter is called by the host's name, by people and by verbs.
#[test]
fn a_host_is_called_by_its_name_alone() {
    let home = Home::new();
    home.weft(&["topo", "gen", "xgft", "--children", "2,2", "--parents", "1,2", "-o", "four.topo"])
        .succeeds();
    home.weft(&["up", "four.topo", "--sm-at", "host-0"]).succeeds();
    let links = home.json(&["links", "--json"]);
    let ends = links.as_array().unwrap().iter().flat_map(|link| [&link["a"]["node"], &link["b"]["node"]]);
    let hosts: Vec<&str> =
        ends.filter_map(serde_json::Value::as_str).filter(|name| name.starts_with("host")).collect();
    assert_eq!(hosts.len(), 4, "{links}");
    assert!(hosts.iter().all(|name| !name.contains(' ')), "{hosts:?}");
    let trace = home.weft(&["trace", "host-0", "host-3"]).succeeds().stdout.clone();
    assert!(trace.contains("host-3") && !trace.contains("mlx5_0"), "{trace}");
    home.weft(&["fault", "kill", "host-3"]).succeeds();
    let check = home.weft(&["check"]);
    assert!(check.stdout.contains("host `host-3` is cut off"), "{}{}", check.stdout, check.stderr);
    home.weft(&["fault", "restart", "host-3"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
}
