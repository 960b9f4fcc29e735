//! Subnet managers of a laboratory that command each other, and what tshark reads of it.

use std::path::Path;
use std::time::Duration;

use common::capturing::{Capturing, dissected};
use common::{Home, Running, text, wait_until};
use rustix::process::Signal;
use weft_mgmt::{Request, SmpRoute};
use weft_umad::{Client, ServerMessage};
use weft_wire::{AttributeId, Guid, Lid, Mad, Method, Packet, PortNum, SmInfo, SmKey, SmState};

use crate::common;

/// How often managers poll and look for changes here.
const POLLS: [&str; 6] = ["--polling-ms", "300", "--polling-retries", "2", "--sweep-interval-ms", "1000"];

fn up(home: &Home, options: &[&str]) {
    let tree = home.small_tree();
    home.weft(&[&["up"], &POLLS[..], options, &[text(&tree)]].concat()).succeeds();
    wait_for(home, "sm-2", "standby");
    wait_until("the master knows it", || {
        let status = home.json(&["status", "--json"]);
        status["sm"]["managers"].as_array().unwrap().iter().any(|manager| manager["state"] == "standby")
    });
}

/// Waits until a manager is in a state.
fn wait_for(home: &Home, process: &str, state: &str) {
    wait_until(&format!("{process} is {state}"), || {
        let status = home.json(&["status", "--json"]);
        let managers = status["managers"].as_array().unwrap();
        managers.iter().any(|manager| manager["process"] == process && manager["state"] == state)
    });
}

#[test]
fn the_master_disables_others_has_them_stand_by_and_discover() {
    let home = Home::new();
    up(&home, &["--standby", "1"]);
    home.weft(&["sm", "standby", "sm-2"]).fails(1, "sm-2 refuses");
    home.weft(&["sm", "disable", "sm-2"]).succeeds();
    wait_for(&home, "sm-2", "not-active");
    for verb in ["disable", "discover"] {
        home.weft(&["sm", verb, "sm-2"]).fails(1, "sm-2 refuses");
    }
    // It takes nothing over: there is no master.
    home.weft(&["fault", "kill", "sm"]).succeeds();
    home.weft(&["sm", "standby", "sm-2"]).fails(1, "does not answer");
    assert!(home.weft(&["status"]).stdout.contains("not-active"));
    home.weft(&["fault", "restart", "sm"]).succeeds();
    // What it said of itself before does not hold any more.
    wait_for(&home, "sm", "master");
    wait_for(&home, "sm-2", "not-active");
    // By its node, here.
    home.weft(&["sm", "standby", "host-1"]).succeeds();
    wait_for(&home, "sm-2", "standby");
    let mut events = home.events();
    home.weft(&["sm", "discover", "sm-2"]).succeeds();
    let state = |wanted: &'static str| {
        move |event: &serde_json::Value| event["source"] == "sm-2" && event["state"] == wanted
    };
    events.wait_for("sm-2 discovers", state("discovering"));
    events.wait_for("sm-2 has found the master", state("standby"));
    wait_for(&home, "sm-2", "standby");
    home.weft(&["sm", "disable", "sm"]).fails(2, "sm is the master");
    home.weft(&["sm", "disable", "host-3"]).fails(1, "knows no manager");
    home.weft(&["sm", "disable", "nobody"]).fails(2, "nobody");
    // Earlier instructions hold no more.
    home.weft(&["fault", "kill", "sm"]).succeeds();
    wait_for(&home, "sm-2", "master");
}

/// The fault that keeps this process frozen, as `weft fault ls` tells.
fn frozen(home: &Home, process: &str) -> Option<serde_json::Value> {
    let listed = home.json(&["fault", "ls", "--json"]);
    let is_its = |fault: &&serde_json::Value| {
        fault["damage"] == "frozen" && *fault["at"].as_array().unwrap() == [process]
    };
    listed.as_array().unwrap().iter().find(is_its).cloned()
}

#[test]
fn a_frozen_master_is_replaced_until_it_thaws() {
    let home = Home::new();
    up(&home, &["--standby", "1"]);
    home.weft(&["fault", "freeze", "sm"]).succeeds();
    assert!(frozen(&home, "sm").unwrap()["until"].is_null());
    home.weft(&["fault", "freeze", "sm"]).fails(1, "is frozen already");
    wait_for(&home, "sm-2", "master");
    home.weft(&["fault", "thaw", "sm"]).succeeds();
    assert_eq!(frozen(&home, "sm"), None);
    // It woke as master beside another one.
    wait_for(&home, "sm", "master");
    wait_for(&home, "sm-2", "standby");
    wait_until("the fabric is whole", || home.weft(&["check"]).code == 0);
    // By its time, by its id, and by the end of the process.
    home.weft(&["fault", "freeze", "sm-2", "--for", "500ms"]).succeeds();
    wait_until("it goes on by itself", || frozen(&home, "sm-2").is_none());
    wait_for(&home, "sm-2", "standby");
    home.weft(&["fault", "freeze", "sm-2", "--for", "1h"]).succeeds();
    let id = frozen(&home, "sm-2").unwrap()["id"].as_str().unwrap().to_owned();
    home.weft(&["fault", "clear", &id]).succeeds();
    assert_eq!(frozen(&home, "sm-2"), None);
    home.weft(&["fault", "freeze", "sm-2"]).succeeds();
    home.weft(&["fault", "restart", "sm-2"]).succeeds();
    assert_eq!(frozen(&home, "sm-2"), None, "another life is not frozen");
    home.weft(&["fault", "kill", "sm-2"]).succeeds();
    home.weft(&["fault", "freeze", "sm-2"]).fails(1, "is not running");
    home.weft(&["fault", "freeze", "pm"]).fails(1, "no performance manager");
}

/// Asks a manager who it is, as a program that knows no key.
fn ask(home: &Home, from: &str, lid: Lid) -> SmInfo {
    let listed = home.json(&["ps", "--json"]);
    let runs = |process: &&serde_json::Value| process["devices"][0]["label"] == from;
    let agent = listed.as_array().unwrap().iter().find(runs).unwrap();
    let guid: Guid = agent["devices"][0]["guid"].as_str().unwrap().parse().unwrap();
    let socket = home.lab("default").join("sockets").join(agent["process"].as_str().unwrap());
    let patience = Duration::from_secs(20);
    let mut client = Client::connect(&socket).unwrap();
    client.attach(guid, PortNum(1), vec![], patience).unwrap();
    client.send(&Request::get(AttributeId::SmInfo, 0).by(&SmpRoute::Lid(lid))).unwrap();
    client.flush().unwrap();
    match client.recv(patience) {
        Ok(Some(ServerMessage::Receive(answer))) => SmInfo::decode(answer.mad.smp_attribute()),
        other => panic!("{other:?}"),
    }
}

/// The MADs about SMInfo in a capture file: a header of 24 bytes, then records of 16 bytes of pcap's, 16 of ERF's, and
/// the packet.
fn captured(file: &Path) -> Vec<Mad> {
    let bytes = std::fs::read(file).unwrap();
    let mut rest = &bytes[24..];
    let mut mads = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let packet = Packet::parse(rest[32..16 + length].into()).unwrap();
        mads.extend(packet.mad().filter(|mad| mad.attribute_id() == AttributeId::SmInfo));
        rest = &rest[16 + length..];
    }
    mads
}

fn number(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, if digits.len() == text.len() { 10 } else { 16 }).unwrap()
}

const KEY: SmKey = SmKey(0x77);

#[test]
fn tshark_reads_what_managers_say_to_each_other() {
    let home = Home::new();
    let keys = ["--sm-key", "0x77", "--m-key", "0x1234", "--m-key-protection", "1"];
    up(&home, &[&keys[..], &["--standby", "1"]].concat());
    let file = home.base().join("sm.pcap");
    let capturing = Capturing::start(&home, &["host-1:1", "-w", text(&file)]);
    for verb in ["disable", "standby", "discover"] {
        home.weft(&["sm", verb, "sm-2"]).succeeds();
    }
    wait_for(&home, "sm-2", "standby");
    let lid = |process: &str| {
        let status = home.json(&["status", "--json"]);
        let managers = status["managers"].as_array().unwrap();
        let manager = managers.iter().find(|manager| manager["process"] == process).unwrap();
        Lid(manager["lid"].as_u64().unwrap().try_into().unwrap())
    };
    let told = [(); 2].map(|()| ask(&home, "host-3", lid("sm-2")));
    assert!(told[1].act_count > told[0].act_count, "{told:?}");
    assert!(told.iter().all(|info| info.sm_key == SmKey(0) && info.sm_state == SmState::Standby), "{told:?}");
    // The first one is lost, and is given the subnet back when it returns.
    home.weft(&["fault", "kill", "sm"]).succeeds();
    wait_for(&home, "sm-2", "master");
    home.weft(&["fault", "restart", "sm"]).succeeds();
    wait_for(&home, "sm", "master");
    wait_for(&home, "sm-2", "standby");
    capturing.interrupt().succeeds();

    let names =
        ["guid", "sm_key", "actcount", "priority", "smstate"].map(|name| format!("infiniband.sminfo.{name}"));
    let fields: Vec<&str> = [
        "infiniband.mad.attributeid",
        "infiniband.mad.method",
        "infiniband.mad.attributemodifier",
        "_ws.malformed",
    ]
    .into_iter()
    .chain(names.iter().map(String::as_str))
    .collect();
    let read = dissected(&file, &fields);
    let read: Vec<_> =
        read.iter().filter(|packet| number(&packet[0]) == u64::from(AttributeId::SmInfo.code())).collect();
    let mads = captured(&file);
    assert_eq!(read.len(), mads.len());
    let (mut commands, mut last, mut hidden) = (Vec::new(), None, 0);
    for (packet, mad) in read.iter().zip(&mads) {
        let info = SmInfo::decode(mad.smp_attribute());
        let ours = [
            info.guid.0,
            info.sm_key.0,
            info.act_count.into(),
            info.priority.into(),
            info.sm_state.code().into(),
        ];
        let theirs: Vec<u64> = packet[4..].iter().map(|field| number(field)).collect();
        assert_eq!(theirs, ours, "{packet:?}");
        assert_eq!((number(&packet[1]), packet[3].as_str()), (u64::from(mad.method().code()), ""));
        assert_eq!(number(&packet[2]), u64::from(mad.attribute_modifier()));
        let is_set = mad.method() == Method::Set;
        if is_set {
            assert_eq!(info.sm_key, KEY);
            commands.push((mad.attribute_modifier(), info.sm_state, info.priority));
        }
        let is_answer = mad.method() == Method::GetResp && mad.status() == 0;
        hidden += u64::from(is_answer && info.sm_key == SmKey(0));
        // Each message of a manager counts.
        if info.guid == told[0].guid && (is_answer || is_set) {
            assert!(last.is_none_or(|last| last < info.act_count), "{last:?} {info:?}");
            last = Some(info.act_count);
        }
    }
    commands.dedup();
    let (master, standby) = (SmState::Master, SmState::Standby);
    // DISABLE, STANDBY, DISCOVER; then HANDOVER of the second one, and the first one's ACKNOWLEDGE.
    assert_eq!(commands, [(3, master, 1), (4, master, 1), (5, master, 1), (1, master, 0), (2, standby, 1)]);
    assert_eq!(hidden, told.len() as u64, "only the stranger is not shown the key");
}

#[test]
fn a_dead_standby_leaves_no_zombie_under_foreground_up() {
    let home = Home::new();
    let tree = home.small_tree();
    let mut up = Running::start(
        &home,
        &[&["up", "--foreground", "--standby", "1"], &POLLS[..], &[text(&tree)]].concat(),
    );
    up.wait_for_line("SUBNET UP");
    wait_for(&home, "sm-2", "standby");
    let (_, pid) = home.processes().into_iter().find(|(process, _)| process == "sm-2").unwrap();
    home.weft(&["fault", "kill", "sm-2"]).succeeds();
    wait_until("its end is noticed", || !Path::new(&format!("/proc/{pid}")).exists());
    assert!(up.is_running());
    up.signal(Signal::INT);
    assert_eq!(up.end().code(), Some(0));
}

#[test]
fn a_lease_that_ends_before_the_next_sweep_is_warned_of() {
    let home = Home::new();
    let tree = home.small_tree();
    for (options, warned) in [
        (&["--m-key", "1", "--m-key-lease", "10"][..], true),
        (&["--m-key", "1", "--m-key-lease", "60", "--sweep-interval-ms", "0"], true),
        (&["--m-key", "1", "--m-key-lease", "11"], false),
        (&["--m-key", "1"], false),
        (&["--m-key-lease", "10"], false),
    ] {
        let done = home.weft(&[&["sim", text(&tree)], options].concat());
        assert_eq!(done.succeeds().stderr.contains("warning: --m-key-lease"), warned, "{options:?}");
    }
}
