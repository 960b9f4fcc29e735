//! Virtualised adapters: what `--vfs` starts, what things are called, and what it refuses.

use common::{Home, text};
use serde_json::Value;

use crate::common;

#[test]
fn a_tree_of_vswitches_comes_up_by_ftree_and_is_reachable() {
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
fn hosts_may_have_numbers_of_their_own() {
    let home = Home::new();
    let (file, out) = (home.small_tree(), home.base().with_file_name("bundle"));
    let own = ["--vfs", "1", "--vfs", "host-3=3", "--vfs", "0x0200484300000000=2"];
    home.weft(&[&["up", text(&file)][..], &own].concat()).succeeds();
    let links = home.json(&["links", "--json"]);
    assert_eq!(links.as_array().unwrap().len(), 8 + 4 + (2 + 1 + 1 + 3), "eight cables, PFs, and VFs");
    home.weft(&["check"]).succeeds();
    home.weft(&["trace", "host-0 vf2", "host-3 vf3"]).succeeds();
    home.weft(&["trace", "host-0", "host-1 vf2"]).fails(2, "host-1 vf2");
    home.weft(&["topo", "diff", text(&file)]).succeeds();
    // Machines fill one function of host-1, and three of host-3.
    home.weft(&["vm", "create", "a", "--host", "host-1"]).succeeds();
    home.weft(&["vm", "create", "b", "--host", "host-1"]).fails(1, "all 1 virtual functions of host");
    for name in ["c", "d", "e"] {
        home.weft(&["vm", "create", name, "--host", "host-3"]).succeeds();
    }
    home.weft(&["vm", "migrate", "a", "host-3"]).fails(1, "all 3 virtual functions of host");
    home.weft(&["down"]).succeeds();
    // Hosts that no number is for stay as they are.
    home.weft(&["plan", text(&file), "--out", text(&out), "--vfs", "host-2=2"]).succeeds();
    let record: Value = serde_json::from_slice(&std::fs::read(out.join("lab.json")).unwrap()).unwrap();
    let agents = record["agents"].as_array().unwrap();
    let devices: usize = agents.iter().map(|agent| agent["devices"].as_array().unwrap().len()).sum();
    assert_eq!(devices, 8 + 3, "a vSwitch and two functions more");
}

#[test]
fn wrong_numbers_of_hosts_are_refused() {
    let home = Home::new();
    let file = home.small_tree();
    for (numbers, said) in [
        (&["host-9=2"][..], "host-9"),
        (&["1", "host-3=0"], "has 1 to 252 virtual functions, not 0"),
        (&["1", "host-3=253"], "has 1 to 252 virtual functions, not 253"),
        (&["1", "host-3=70000"], "has 1 to 252 virtual functions, not 70000"),
        (&["switch-1-0=2"], "--vfs: `switch-1-0` is not an HCA with a cable"),
        (&["host-3=1", "host-3=2"], "--vfs gives `host-3` two numbers, 1 and 2"),
        (&["host-0=1", "0x0200484300000000=2"], "two numbers, 1 and 2"),
        (&["1", "2"], "--vfs gives every HCA two numbers, 1 and 2"),
        (&["host-3=many"], "`many` is not a number of virtual functions"),
        (&["=2"], "no node is named"),
    ] {
        let numbers = numbers.iter().flat_map(|number| ["--vfs", number]);
        home.weft(&["up", text(&file)].into_iter().chain(numbers).collect::<Vec<_>>()).fails(2, said);
    }
    // 36 switches, and 324 hosts with a vSwitch each: 252 functions, but 100 on one.
    let wide = home.write("wide.topo", "");
    let made = ["topo", "gen", "xgft", "--children", "18,18", "--parents", "1,18", "-o", text(&wide)];
    home.weft(&made).succeeds();
    let too_many = home.weft(&["up", text(&wide), "--vfs", "252", "--vfs", "host-7=100"]);
    too_many.fails(2, "81496 virtual functions on 324 HCAs need 82180 LIDs, and there are 49151");
    assert!(too_many.stderr.contains("149 on each HCA would fit"), "{}", too_many.stderr);
    assert!(home.is_empty());
}

#[test]
fn invalid_vf_options_are_refused_before_the_start() {
    let home = Home::new();
    let file = home.small_tree();
    let file = text(&file);
    for count in ["0", "253", "70000"] {
        let said = format!("has 1 to 252 virtual functions, not {count}");
        home.weft(&["up", file, "--vfs", count]).fails(2, &said);
    }
    home.weft(&["up", file, "--vfs", "1", "--lids", "dynamic", "--sm-at", "host-0 vf1"])
        .fails(2, "has no cable");
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
    assert!(home.is_empty());
    let two_rails = gen_tree("rails.topo", "2,2", "2,2");
    home.weft(&["chaos", text(&two_rails), "--virtual", "--vfs", "1"])
        .fails(2, "has several cabled ports, and in virtual time");
}

/// Two ports in one piece of the fabric are two hosts to virtual machines.
#[test]
fn both_rails_of_a_host_have_functions() {
    let home = Home::new();
    // One switch with four hosts, two cables to each.
    let switch = "switchguid=0x10(10)\nSwitch\t8 \"S-10\"\t# \"spine\" base port 0 lid 0 lmc 0\n".to_owned();
    let cables = (0..8).map(|port| {
        let (host, rail) = (port / 2, port % 2 + 1);
        format!("[{}]\t\"H-{host}00\"[{rail}](10{host}0{rail})\t# \"host-{host}\" lid 0 4xQDR\n", port + 1)
    });
    let hosts = (0..4).map(|host| {
        let rail = |rail: u32| {
            let port = 2 * host + rail;
            format!("[{rail}](10{host}0{rail})\t\"S-10\"[{port}]\t# lid 0 lmc 0 \"spine\" lid 0 4xQDR\n")
        };
        format!("\ncaguid=0x10{host}00\nCa\t2 \"H-{host}00\"\t# \"host-{host}\"\n{}{}", rail(1), rail(2))
    });
    let path = home.write("rails.topo", &[switch].into_iter().chain(cables).chain(hosts).collect::<String>());
    home.weft(&["up", text(&path), "--vfs", "1"]).succeeds();
    let check = home.json(&["check", "--json"]);
    assert_eq!((&check["ok"], &check["subnet_up"]), (&true.into(), &true.into()), "{check:#}");
    // Four hosts: each has two ports, and a function on each.
    assert_eq!(check["hosts"], 12, "{check:#}");
    home.weft(&["vm", "create", "web1", "--host", "host-1:2"]).succeeds();
    home.weft(&["vm", "migrate", "web1", "host-2"]).succeeds();
    home.weft(&["vm", "migrate", "web1", "host-2:2"]).succeeds();
    let there = home.json(&["vm", "ls", "--json"]);
    assert_eq!(there[0]["system_name"], "host-2-p2", "{there:#}");
    home.weft(&["check", "--wait", "30"]).succeeds();
    home.weft(&["trace", "vm:web1", "host-0"]).succeeds();
}

/// The first function of `host-0`, by port or node GUID: see docs/vm-migration.md.
const FUNCTION: &str = "0x0200484500000000";

#[test]
fn lids_and_weights_of_functions_are_sm_options() {
    let home = Home::new();
    let (file, out) = (home.small_tree(), home.base().with_file_name("bundle"));
    let file = text(&file);
    let weights = |text: &str| home.write("weights", text);
    weights(&format!("{FUNCTION} 4000\n"));
    let weighed = ["--vfs", "2", "--engine", "vswitch-ftree", "--vm-weights", "weights"];
    let shared = [&["up", file, "--switch-lids", "shared"], &weighed[..]].concat();
    home.weft(&shared).succeeds();
    let check = home.weft(&["check"]);
    check.succeeds();
    // 4 switches, and 4 hosts with a physical and two virtual functions: no vSwitch has a LID of its own.
    assert!(check.stdout.contains("16 LIDs"), "{}", check.stdout);
    home.weft(&["down"]).succeeds();

    let plan = ["plan", file, "--out", text(&out), "--vfs", "2", "--lids", "dynamic"];
    home.weft(
        &[&plan[..], &["--vm-lids-max", "7", "--lid-quarantine-ms", "1500", "--rebalance-below", "0.85"]]
            .concat(),
    )
    .succeeds();
    let sm: Value = serde_json::from_slice(&std::fs::read(out.join("managers/sm.json")).unwrap()).unwrap();
    let options = &sm["options"];
    for (name, value) in [("vm_lids_max", 7), ("lid_quarantine_ms", 1500), ("rebalance_below", 850)] {
        assert_eq!(options[name], value, "{name}: {sm}");
    }
}

#[test]
fn bad_lids_and_weights_of_functions_are_refused_in_words() {
    let home = Home::new();
    let file = home.small_tree();
    let up = |more: &[&str]| home.weft(&[&["up", text(&file)], more].concat());
    up(&["--switch-lids", "none"]).fails(2, "[possible values: own, shared]");
    for (option, bad) in
        [("--vm-lids-max", "0"), ("--vm-lids-max", "49152"), ("--lid-quarantine-ms", "86400001")]
    {
        up(&["--vfs", "1", "--lids", "dynamic", option, bad]).fails(2, option);
    }
    up(&["--vfs", "1", "--lids", "dynamic", "--vm-guids", "dynamic"])
        .fails(2, "--vm-guids dynamic leaves LIDs with functions, too");
    up(&["--notices", "server"]).fails(2, "there are no virtual functions to hand notices on to");
    for bad in ["0", "0.0001", "1.001", "NaN", "90%"] {
        up(&["--vfs", "1", "--rebalance-below", bad]).fails(2, "a share is a number from 0.001 to 1");
    }
    for option in ["--vm-lids-max", "--lid-quarantine-ms"] {
        for more in [&[][..], &["--vfs", "1"]] {
            let refused = up(&[more, &[option, "5"]].concat());
            refused.fails(2, &format!("{option} needs LIDs that machines get when they boot"));
            assert!(refused.stderr.contains("hint: `weft up` has them with"), "{}", refused.stderr);
        }
    }
    let weights = |text: &str, more: &[&str]| {
        home.write("weights", text);
        up(&[&["--engine", "vswitch-ftree", "--vm-weights", "weights"], more].concat())
    };
    let vfs = ["--vfs", "2"];
    weights("9 5\n", &vfs).fails(2, "error: weights:1:1: expected a GUID");
    weights(&format!("{FUNCTION} 0\n"), &vfs).fails(2, "weights:1:20: a weight must be 1 to 5040");
    weights("0x0200484300000000 5\n", &vfs).fails(2, "0x0200484300000000 is no virtual function's GUID");
    weights(&format!("{FUNCTION} 5\n"), &[]).fails(2, "hint: virtual functions come with --vfs");
    let heavy = format!("{FUNCTION} 5040\n0x0200484600000000 1\n");
    weights(&heavy, &vfs).fails(2, "virtual functions of host-0 vSwitch weigh 5041 together, more than 5040");
    weights(&format!("{FUNCTION} 5\n"), &[&vfs[..], &["--lids", "dynamic"]].concat())
        .fails(2, "machines with --lids dynamic have the paths of their hosts");
    up(&["--vfs", "2", "--engine", "minhop,no_fallback", "--vm-weights", "weights"])
        .fails(2, "--vm-weights means nothing to minhop");
    assert!(home.is_empty());
}

/// A virtual machine in the slot of `host-N vf1`, by the agent's control protocol.
fn vm_order(home: &Home, host: u32, epoch: u64, step: &str) -> Value {
    let (agent, slots) = (format!("host-{host}"), "slots");
    let hello = home.json(&["ask", &agent, "hello"]);
    let all = home.json(&["ask", &agent, slots]);
    let slot =
        all["slots"].as_array().unwrap().iter().find(|slot| slot["name"] == format!("host-{host} vf1"));
    let fields = format!(
        r#"{{"incarnation": {}, "generation": 1, "slot": {}, "vm": "web1", "epoch": {epoch}, "step": {step}}}"#,
        hello["incarnation"],
        slot.unwrap()["slot"]
    );
    home.json(&["ask", &agent, "vm", &fields])
}

const BOOT: &str = r#"{"boot": {"identity":
    {"node": "0x02aa000000000001", "port": "0x02aa000000000101", "description": "web1"}}}"#;
const IMPORT: &str = r#"{"import": {"from_epoch": 1, "image_bytes": 0, "identity":
    {"node": "0x02aa000000000001", "port": "0x02aa000000000101", "description": "web1"}}}"#;

/// Waits until every host reaches every other; a sweep finds what was plugged in.
fn checked(home: &Home, note: &str) {
    let check = home.weft(&["check", "--wait", "30"]);
    check.succeeds();
    assert!(check.stdout.contains(note), "{}", check.stdout);
}

fn empty_links(home: &Home) -> usize {
    let links = home.json(&["links", "--json"]);
    links.as_array().unwrap().iter().filter(|link| link["state"] == "empty slot").count()
}

#[test]
fn dynamic_lid_slots_start_empty_and_vms_move_between_them() {
    let home = Home::new();
    let (file, out) = (home.small_tree(), home.base().with_file_name("bundle"));
    home.weft(&["plan", text(&file), "--out", text(&out), "--vfs", "2", "--lids", "dynamic"]).succeeds();
    let up = home.weft(&["up", "--bundle", text(&out)]);
    up.succeeds();
    // 4 switches and 4 hosts with a vSwitch each; nothing waits for the functions.
    assert!(up.stdout.contains("SUBNET UP"), "{}", up.stdout);
    assert_eq!(empty_links(&home), 8);
    checked(&home, "8 slots of virtual machines are empty");

    vm_order(&home, 0, 1, BOOT);
    checked(&home, "7 slots of virtual machines are empty");
    assert_eq!(empty_links(&home), 7);
    let lid = |home: &Home| {
        let trace = home.json(&["trace", "host-2", "vm:web1", "--json"]);
        trace["lid"].clone()
    };
    let before = lid(&home);
    assert!(before.is_number(), "{before}");

    let frozen = vm_order(&home, 0, 1, r#""freeze""#);
    assert_eq!(frozen["slot"]["state"], "frozen");
    vm_order(&home, 0, 1, r#"{"export": {"offset": 0}}"#);
    assert_eq!(vm_order(&home, 3, 2, IMPORT)["slot"]["state"], "imported");
    assert_eq!(vm_order(&home, 3, 2, r#""activate""#)["slot"]["state"], "running");
    vm_order(&home, 0, 1, r#"{"release": {"leave": null}}"#);
    checked(&home, "7 slots of virtual machines are empty");
    assert_eq!(lid(&home), before, "the LID moves with the port");
    home.weft(&["trace", "host-2", "vm:db"]).fails(2, "virtual machine `db` is in no slot");
    home.weft(&["down"]).succeeds();
}
