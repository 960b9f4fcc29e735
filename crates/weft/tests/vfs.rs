//! Virtualised adapters: what `--vfs` starts, what things are called, and what it refuses.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod common;

use common::{Home, text};
use serde_json::Value;

#[test]
fn a_tree_of_vswitches_comes_up_by_ftree_and_everything_is_reached() {
    let home = Home::new();
    let file = home.small_tree();
    let up = home.weft(&["up", text(&file), "--vfs", "2", "--engine", "ftree,no_fallback"]);
    up.succeeds();
    assert!(up.stdout.contains("routing: ftree, 1 data lane"), "{}", up.stdout);
    let status = home.weft(&["status", "--json"]);
    assert!(status.stdout.contains("4 vSwitches are routed as part of the host"), "{}", status.stdout);
    let processes = home.json(&["ps", "--json"]);
    let agents = processes
        .as_array()
        .unwrap()
        .iter()
        .filter(|process| process["process"].as_str().unwrap().starts_with('a'));
    assert_eq!(agents.count(), 8, "functions are in the agent of their host");
    let links = home.json(&["links", "--json"]);
    assert_eq!(links.as_array().unwrap().len(), 8 + 4 * 3);
    let trace = home.weft(&["trace", "host-0", "host-3 vf2"]);
    trace.succeeds();
    assert!(trace.stdout.contains("host-3 vSwitch"), "{}", trace.stdout);
    let check = home.weft(&["check"]);
    check.succeeds();
    let by_id = home.weft(&["trace", "H-0200484300000000-vf1", "host-0 vSwitch"]);
    by_id.succeeds();
    assert!(by_id.stdout.contains("host-0 vf1"), "{}", by_id.stdout);
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_bundle_holds_the_functions() {
    let home = Home::new();
    let (file, out) = (home.small_tree(), home.base().with_file_name("bundle"));
    home.weft(&["plan", text(&file), "--out", text(&out), "--vfs", "3", "--pack", "leaf"]).succeeds();
    let record: Value = serde_json::from_slice(&std::fs::read(out.join("lab.json")).unwrap()).unwrap();
    assert_eq!(record["vfs"], 3);
    let agents = record["agents"].as_array().unwrap();
    let devices: usize = agents.iter().map(|agent| agent["devices"].as_array().unwrap().len()).sum();
    assert_eq!((agents.len(), devices), (4, 4 + 4 * 5), "a leaf and its hosts are one agent");
    home.weft(&["up", "--bundle", text(&out)]).succeeds();
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let home = Home::new();
    let file = home.small_tree();
    let file = text(&file);
    for (count, said) in
        [("0", "has 1 to 252 virtual functions, not 0"), ("253", "has 1 to 252 virtual functions, not 253")]
    {
        home.weft(&["up", file, "--vfs", count]).fails(2, said);
    }
    home.weft(&["up", file, "--vfs", "1", "--lids", "dynamic"]).fails(2, "not supported yet");
    home.weft(&["up", file, "--lids", "prepopulated"]).fails(2, "--vfs");
    home.weft(&["up", file, "--bundle", file, "--vfs", "1"]).fails(2, "cannot be used with");
    let gen_tree = |name: &str, children: &str, parents: &str| {
        let path = home.write(name, "");
        let made = ["topo", "gen", "xgft", "--children", children, "--parents", parents, "-o", text(&path)];
        home.weft(&made).succeeds();
        path
    };
    let wide = gen_tree("wide.topo", "18,18", "1,18");
    // 36 switches, and 324 hosts with a vSwitch and 252 functions each.
    let too_many = home.weft(&["up", text(&wide), "--vfs", "252"]);
    too_many.fails(2, "need 82332 LIDs, and there are 49151");
    assert!(too_many.stderr.contains("--vfs 149 or fewer"), "{}", too_many.stderr);
    let two_rails = gen_tree("rails.topo", "2,2", "2,2");
    home.weft(&["up", text(&two_rails), "--vfs", "1"])
        .fails(2, "2 cabled ports, and a vSwitch has one uplink");
    assert!(home.is_empty());
}
