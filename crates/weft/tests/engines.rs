//! The live subnet manager with routing engines: what the chain makes of a fabric, and what hosts are told.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod common;

use common::{Home, text};

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
fn what_makes_no_sense_is_said_before_anything_starts() {
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
    up(&["--part-enforce", "some"]).fails(2, "possible values: both, in, out, off");
    home.weft(&["sim", file, "--engine", "best"]).fails(2, "no engine is called `best`");
    assert!(home.is_empty());
}
