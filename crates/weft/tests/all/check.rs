//! `weft check` of a fabric that is broken, stands still or is about to be swept.

use common::{Home, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use weft_bundle::folder::LabFolder;
use weft_lab::check;
use weft_lab::view::Lab;
use weft_topology::generate::{AGGREGATION_NODE, GenerateOptions, with_node_at_every_switch, xgft};

use crate::common;

#[test]
fn no_packet_is_sent_where_the_tables_are_proved_broken() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--link-timeout-ms", "500"]).succeeds();
    let mut events = home.events();
    home.weft(&["fault", "kill", "sm"]).succeeds();
    home.weft(&["fault", "kill", "switch-2-0"]).succeeds();
    // From both leaves' ports to it.
    for _ in 0..2 {
        events.wait_for("the switch is gone", |event| event["event"] == "link-down");
    }
    let check = home.weft(&["check", "--json"]);
    check.fails(1, "");
    let report: Value = serde_json::from_str(&check.stdout).unwrap();
    let problems = || report["problems"].as_array().unwrap().iter().map(|problem| problem.as_str().unwrap());
    // Of 4 hosts at 2 leaves, 8 ordered pairs cross the spine switches.
    let (sent, withheld) =
        (report["packets"].as_u64().unwrap(), report["packets_withheld"].as_u64().unwrap());
    assert!(withheld > 0 && sent >= 4 && sent + withheld == 12, "{report:#}");
    assert!(problems().any(|problem| problem.starts_with("tables: ")), "{report:#}");
    assert!(!problems().any(|problem| problem.starts_with("a packet from")), "{report:#}");
}

#[test]
fn a_check_ends_within_its_limit_when_nothing_answers() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let processes = home.processes();
    processes.iter().for_each(|(_, pid)| signal(*pid, Signal::STOP));
    let check = home.weft(&["check", "--limit", "1"]);
    processes.iter().for_each(|(_, pid)| signal(*pid, Signal::CONT));
    check.fails(1, "no host's agent has answered within 1 s");
}

/// One that hangs takes a part of the time, and the others are asked in the rest.
#[test]
fn a_check_looks_from_elsewhere_where_an_agent_hangs() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let first = home.processes().into_iter().find(|(name, _)| name == "a0000").unwrap().1;
    signal(first, Signal::STOP);
    let check = home.weft(&["check", "--limit", "4", "--wait", "0"]);
    signal(first, Signal::CONT);
    check.fails(1, "");
    assert!(!check.stderr.contains("no host's agent has answered"), "{}{}", check.stdout, check.stderr);
}

#[test]
fn a_check_just_after_a_restart_waits_for_the_sweep() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    for node in ["host-1", "switch-1-0", "host-0", "switch-2-1"] {
        home.weft(&["fault", "restart", node]).succeeds();
        home.weft(&["check"]).succeeds();
    }
}

#[test]
fn a_sweep_that_does_not_come_is_told_as_due() {
    let home = Home::new();
    let file = home.small_tree();
    let never = ["--trap-limit", "0", "--sweep-interval-ms", "86400000"];
    home.weft(&[&["up", text(&file)], &never[..]].concat()).succeeds();
    home.weft(&["check"]).succeeds();
    home.weft(&["fault", "restart", "host-1"]).succeeds();
    // After waiting there is time for a last look.
    for options in [&["--wait", "1"][..], &["--wait", "3", "--limit", "3"]] {
        let check = home.weft(&[&["check"], options].concat());
        check.fails(1, "");
        assert!(check.stdout.contains("note: a sweep is due: "), "{}{}", check.stdout, check.stderr);
    }
    // Asked for a sweep, the manager makes it whole.
    let sm = home.processes().into_iter().find(|(name, _)| name == "sm").unwrap();
    signal(sm.1, Signal::HUP);
    home.weft(&["check"]).succeeds();
}

/// Its link stays up all the time, so nothing but the next light sweep tells the subnet manager that it is back.
#[test]
fn a_check_just_after_a_host_hung_waits_for_the_sweep() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--link-timeout-ms", "600000"]).succeeds();
    let pid = |process: &str| home.processes().into_iter().find(|(name, _)| name == process).unwrap().1;
    let host = home.json(&["ps", "--json"]).as_array().unwrap().iter().find_map(|process| {
        let is_host = process["devices"][0]["label"] == "host-3";
        is_host.then(|| process["process"].as_str().unwrap().to_owned())
    });
    let host = pid(&host.unwrap());
    let mut events = home.events();
    signal(host, Signal::STOP);
    signal(pid("sm"), Signal::HUP);
    events.wait_for("a sweep without it", |event| event["event"] == "sweep-incomplete");
    signal(host, Signal::CONT);
    home.weft(&["check"]).succeeds();
}

/// Up/down routing has no way from one spine to an end node of the other, and no host needs one.
#[test]
fn a_tree_with_management_nodes_at_every_switch_is_whole() {
    let home = Home::new();
    let options = GenerateOptions { radix: Some(8), ..GenerateOptions::default() };
    let tree = xgft(&[2, 2], &[1, 2], &options).unwrap();
    for (description, named) in [(AGGREGATION_NODE, &[][..]), ("counter", &["--management-nodes", "counter"])]
    {
        let fabric = with_node_at_every_switch(&tree, description).unwrap();
        let file = home.write("managed.topo", &fabric.write_ibnetdiscover());
        for engine in ["updn", "ftree", "minhop", "dfsssp"] {
            let engine = format!("{engine},no_fallback");
            let up = ["up", text(&file), "--pack", "all", "--engine", &engine];
            home.weft(&[&up[..], named].concat()).succeeds();
            let report = home.json(&["check", "--json"]);
            // 4 hosts among themselves, and with 4 management nodes both ways.
            assert_eq!(report["packets"], 4 * 3 + 2 * 4 * 4, "{engine}: {report:#}");
            assert_eq!(report["ok"], true, "{engine}: {report:#}");
            home.weft(&["down"]).succeeds();
        }
    }
}

/// An event, `links`, `check` and `status` report a link below the rate of its ends; packets pass.
#[test]
fn a_degraded_link_is_told_of_everywhere() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let link = || {
        let links = home.json(&["links", "--json"]);
        let of_host = |link: &&Value| [&link["a"], &link["b"]].iter().any(|end| end["node"] == "host-0");
        links.as_array().unwrap().iter().find(of_host).unwrap().clone()
    };
    let whole = link();
    let planned = whole["rate_planned"].as_str().unwrap();
    let narrow = planned.replacen("4x", "1x", 1);
    let is = |link: &Value, rate: &str, degraded: bool| {
        link["rate"] == rate && link["rate_possible"] == planned && link["degraded"] == degraded
    };
    assert!(planned.starts_with("4x") && is(&whole, planned, false), "{whole}");
    assert!(!home.weft(&["status"]).succeeds().stdout.contains("degraded"));

    let mut events = home.events();
    home.weft(&["fault", "add", "width", "host-0:1", "--to", "1x"]).succeeds();
    let event = events.wait_for("the link is degraded", |event| event["event"] == "link-degraded");
    assert_eq!((&event["rate"], &event["supported"]), (&narrow.as_str().into(), &planned.into()), "{event}");
    wait_until("the subnet manager has seen it", || {
        home.weft(&["status"]).succeeds().stdout.contains("degraded cables: 1;")
    });
    let found = link();
    assert!(is(&found, &narrow, true), "{found}");
    assert!(home.weft(&["links"]).succeeds().stdout.contains("Active, degraded"));
    let check = home.json(&["check", "--json"]);
    assert_eq!((&check["ok"], &check["cables_degraded"]), (&true.into(), &1.into()), "{check:#}");
    let said = format!("runs at {narrow}, and both ends can do {planned}");
    let notes = check["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains(&said)), "{check:#}");

    home.weft(&["fault", "clear", "--all"]).succeeds();
    wait_until("it is as it was", || is(&link(), planned, false));
    wait_until("the subnet manager has seen that, too", || {
        !home.weft(&["status"]).succeeds().stdout.contains("degraded")
    });
}

/// Another program's subnet manager tells weft nothing, so what agents say is shown.
#[test]
fn a_degraded_link_is_told_without_a_manager_of_wefts() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    assert!(!home.weft(&["status"]).succeeds().stdout.contains("degraded"));
    home.weft(&["fault", "add", "width", "host-0:1", "--to", "1x"]).succeeds();
    wait_until("the link is degraded", || {
        home.weft(&["status"]).succeeds().stdout.contains("degraded cables: 1; `weft links` shows them\n")
    });
}

/// Places that were read before a move are old, and machines are looked for at their new ones.
fn a_check_finds_what_has_moved(lids: &str) {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--vfs", "2", "--lids", lids]).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    let folder = LabFolder::of_run(&home.lab("default"), "default").unwrap();
    let before = Lab::load_live(&folder).unwrap();
    home.weft(&["vm", "migrate", "web1", "host-3"]).succeeds();
    let report = check::check(&before, &check::Options { wait: 30, ..check::Options::default() }).unwrap();
    assert!(report.ok && report.subnet_up && report.cables_out_of_service == 0, "{lids}: {report:?}");
}

#[test]
fn a_check_finds_what_moved_before_with_dynamic_lids() {
    a_check_finds_what_has_moved("dynamic");
}

#[test]
fn a_check_finds_what_moved_before_with_prepopulated_lids() {
    a_check_finds_what_has_moved("prepopulated");
}
