//! Flows that lose packets, ends and hubs: what was lost is reported, and nothing is left behind.

use std::collections::BTreeSet;

use common::{Home, Running, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;

fn up(home: &Home, options: &[&str]) {
    let file = home.small_tree();
    home.weft(&[&["up", text(&file)], options].concat()).succeeds();
}

fn flows(home: &Home) -> Vec<Value> {
    home.json(&["flow", "ls", "--json"]).as_array().unwrap().clone()
}

/// The numbers of the flows that agents have, at either end.
fn at_agents(home: &Home) -> BTreeSet<u64> {
    let hosts = ["host-0", "host-1", "host-2", "host-3"].map(|host| home.json(&["ask", host, "flows"]));
    let flows = hosts.iter().flat_map(|answer| answer["hosts"].as_array().unwrap());
    let flows = flows.flat_map(|host| host["flows"].as_array().unwrap());
    flows.map(|flow| flow["flow"].as_u64().unwrap()).collect()
}

/// The process that runs a host.
fn agent_of(home: &Home, host: &str) -> u32 {
    let processes = home.json(&["ps", "--json"]);
    let runs = |process: &&Value| process["devices"].to_string().contains(&format!("\"{host}\""));
    let process = processes.as_array().unwrap().iter().find(runs).unwrap_or_else(|| panic!("{processes}"));
    let name = process["process"].as_str().unwrap();
    home.processes().into_iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn dropped_packets_are_told_of_with_their_reason() {
    let home = Home::new();
    up(&home, &[]);
    home.weft(&["flow", "start", "host-0", "host-3", "--name", "web"]).succeeds();
    home.weft(&["fault", "link-down", "host-3:1"]).succeeds();
    let observed = |more: &[&str]| -> Vec<Value> {
        let done = home.weft(&[&["flow", "observe", "--json"], more].concat());
        done.succeeds().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    wait_until("a drop is told of", || !observed(&["--verdict", "dropped"]).is_empty());
    let drop = observed(&["--verdict", "dropped", "--to", "host-3"]).pop().unwrap();
    assert_eq!((&drop["from"], &drop["flows"][0]), (&"host-0".into(), &"web".into()), "{drop}");
    let reason = drop["reason"].as_str().unwrap();
    assert!(["output_inactive", "no_route", "link_lost", "link_down"].contains(&reason), "{drop}");
    assert!(drop["at"].as_str().unwrap().starts_with("switch-"), "{drop}");
    assert_eq!(observed(&["--verdict", "dropped", "--from", "host-1"]), Vec::<Value>::new());
    assert_eq!(observed(&["--partition", "0x1234"]), Vec::<Value>::new());
    let started = observed(&["--verdict", "started"]);
    assert_eq!((started.len(), &started[0]["flows"][0]), (1, &"web".into()), "{started:?}");
    let text = home.weft(&["flow", "observe", "--verdict", "dropped"]).stdout;
    assert!(text.contains("dropped host-0 -> host-3 (web) at switch-"), "{text}");
    home.weft(&["flow", "observe", "--from", "nobody"]).fails(2, "no node has the id");
    home.weft(&["flow", "observe", "--partition", "x"]).fails(2, "a P_Key is a number");

    let mut follows = Running::start(&home, &["flow", "observe", "--follow"]);
    wait_until("it follows", || follows.said().contains("press Ctrl-C"));
    home.weft(&["flow", "stop", "web"]).succeeds();
    follows.wait_for_line("stopped host-0 -> host-3 (web)");
    follows.signal(Signal::INT);
    assert_eq!(follows.done().code, 0);
}

/// The performance manager has registered for Reports at its host, and so has the software of a host with flows.
#[test]
fn flows_begin_at_the_host_of_a_performance_manager() {
    let home = Home::new();
    up(&home, &["--pm", "--pm-at", "host-2"]);
    home.weft(&["traffic", "start", "all-to-all", "--rate", "0.1"]).succeeds();
    wait_until("all flows deliver", || {
        let flows = flows(&home);
        flows.len() == 12 && flows.iter().all(|flow| flow["receiver"]["bytes"].as_u64() > Some(0))
    });
    home.weft(&["flow", "stop", "--all"]).succeeds();
}

/// Its number is known to the agent alone when the hub has given up: the hub has the agent forget it.
#[test]
fn a_thawed_agent_keeps_no_flow_that_the_hub_has_ended() {
    let home = Home::new();
    up(&home, &[]);
    home.weft(&["flow", "start", "host-0", "host-3", "--name", "web"]).succeeds();
    let agent = agent_of(&home, "host-3");
    signal(agent, Signal::STOP);
    let stopped = home.weft(&["flow", "stop", "web"]);
    let refused = home.weft(&["flow", "start", "host-1", "host-3", "--name", "late"]);
    signal(agent, Signal::CONT);
    assert!(stopped.succeeds().stderr.contains("does not answer"), "{}", stopped.stderr);
    refused.fails(1, "flow `late` has not begun");
    assert_eq!(flows(&home), Vec::<Value>::new());
    wait_until("nothing is left at agents", || at_agents(&home).is_empty());
    // Its name is free, and its number is another's.
    wait_until("the host can be reached", || {
        home.weft(&["flow", "start", "host-0", "host-3", "--name", "web"]).code == 0
    });
    assert!(flows(&home)[0]["flow"].as_u64() > Some(2));
}

#[test]
fn a_receiver_killed_between_expect_and_open_ends_the_flow() {
    let home = Home::new();
    up(&home, &[]);
    let (sender, receiver) = (agent_of(&home, "host-0"), agent_of(&home, "host-3"));
    signal(sender, Signal::STOP);
    let starts = Running::start(&home, &["flow", "start", "host-0", "host-3", "--name", "web"]);
    wait_until("the receiver expects it", || {
        home.json(&["ask", "host-3", "flows"])["hosts"].as_array().is_some_and(|hosts| !hosts.is_empty())
    });
    signal(receiver, Signal::KILL);
    wait_until("the receiver has ended", || !common::runs(receiver));
    signal(sender, Signal::CONT);
    let done = starts.done();
    // Whether the sender answered in time decides which of the two it is.
    match done.code {
        0 => wait_until("it has failed", || flows(&home)[0]["state"] == "failed"),
        _ => assert_eq!(flows(&home), Vec::<Value>::new(), "{}", done.stderr),
    }
    wait_until("the sender has forgotten it", || {
        home.json(&["ask", "host-0", "flows"])["hosts"] == serde_json::json!([])
    });
}

#[test]
fn a_hub_killed_among_many_flows_leaves_whole_ones() {
    let home = Home::new();
    up(&home, &[]);
    for set in 0..8 {
        let set = format!("set-{set}");
        home.weft(&["traffic", "start", "all-to-all", "--set", &set, "--rate", "0.01"]).succeeds();
    }
    // Once while nothing begins, once while many do.
    let kill = || {
        let (_, hub) = home.processes().into_iter().find(|(name, _)| name == "hub").unwrap();
        signal(hub, Signal::KILL);
        wait_until("the hub has ended", || !common::runs(hub));
        home.weft(&["hub", "--detached"]).succeeds();
    };
    kill();
    assert_eq!(flows(&home).len(), 8 * 12);
    let starts =
        Running::start(&home, &["traffic", "start", "all-to-all", "--rate", "0.01", "--set", "late"]);
    kill();
    starts.done();
    let halves = || {
        let (flows, own) = (flows(&home), at_agents(&home));
        let numbers: BTreeSet<u64> = flows.iter().map(|flow| flow["flow"].as_u64().unwrap()).collect();
        let idle: Vec<Value> = flows.into_iter().filter(|flow| flow["state"] != "running").collect();
        (idle, &numbers - &own, &own - &numbers)
    };
    let whole = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let began = std::time::Instant::now();
    while halves() != whole {
        assert!(
            began.elapsed() < std::time::Duration::from_mins(1),
            "not all are whole, or undone: {:?}",
            halves()
        );
    }
    assert!(flows(&home).len() >= 8 * 12);
    home.weft(&["flow", "stop", "--all"]).succeeds();
    assert_eq!(at_agents(&home), BTreeSet::new());
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_flow_between_partitions_that_share_nothing_says_so() {
    let home = Home::new();
    let tree = std::fs::read_to_string(home.small_tree()).unwrap();
    let guid = |host: &str| {
        // `[1] "H-…"[1](200484300000101) # "host-1"`, in the part of its switch.
        let is_it = |line: &&str| line.contains("\"H-") && line.contains(&format!("# \"{host}\""));
        let line = tree.lines().find(|line| line.starts_with('[') && is_it(line)).unwrap();
        let (_, port) = line.rsplit_once('(').unwrap();
        format!("0x{}", port.split_once(')').unwrap().0)
    };
    // The subnet manager is at host-0, which is a full member of the default partition.
    let [one, three] = ["host-1", "host-3"].map(guid);
    home.write(
        "parts",
        &format!("Default=0x7fff : ALL=limited, SELF=full ;\na=0x2 : {one}=full ;\nb=0x3 : {three}=full ;\n"),
    );
    up(&home, &["--partitions", "parts"]);
    home.weft(&["flow", "start", "host-1", "host-3", "--name", "apart"]).succeeds();
    wait_until("it says why it stands still", || {
        flows(&home)[0]["reason"].as_str().is_some_and(|reason| reason.contains("no path record"))
    });
    let flow = flows(&home).remove(0);
    assert_eq!((&flow["state"], &flow["receiver"]["bytes"]), (&"running".into(), &0.into()), "{flow}");
    home.weft(&["flow", "stop", "apart"]).succeeds();
}
