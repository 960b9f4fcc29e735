//! Captures of a living laboratory, as tshark reads them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::capturing::{Capturing, dissected};
use common::{Home, text};
use serde_json::Value;
use weft_umad::{Client, ServerMessage};
use weft_wire::{AttributeId, Guid, Lid, Method, PortCountersExtended, PortNum, ServiceLevel};

use crate::common;

/// tshark finds an InfiniBand packet with its attribute in every record and nothing wrong, and records are in order of
/// time unless the capture said that they are not.
#[track_caller]
fn all_is_dissected(file: &Path, said: &str) -> usize {
    let fields =
        ["frame.protocols", "infiniband.mad.attributeid", "frame.time_delta", "_ws.expert", "_ws.malformed"];
    let packets = dissected(file, &fields);
    for packet in &packets {
        let [protocols, attribute, delta, expert, malformed] = &packet[..] else { panic!("{packet:?}") };
        assert!(protocols.starts_with("erf:infiniband") && !attribute.is_empty(), "{packet:?}");
        assert!(!delta.starts_with('-') || said.contains("out of order"), "{packet:?}");
        assert!(expert.is_empty() && malformed.is_empty(), "{packet:?}");
    }
    packets.len()
}

fn number(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, if digits.len() == text.len() { 10 } else { 16 }).unwrap()
}

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Direction, transaction id and name of each packet that an agent's log has for a port.
fn logged(home: &Home, agent: &str, node: &str, port: u8) -> Vec<(String, String, String)> {
    let log = std::fs::read_to_string(home.lab("default").join("logs").join(agent)).unwrap();
    let field = |line: &str, name: &str| {
        let at = line.find(&format!(" {name}="))? + name.len() + 2;
        Some(line[at..].split(' ').next()?.to_owned())
    };
    let here = |line: &&str| {
        line.contains("weft_agent::packets")
            && field(line, "node").as_deref() == Some(node)
            && field(line, "port") == Some(port.to_string())
    };
    let lines = log.lines().filter(here);
    lines
        .map(|line| {
            (
                field(line, "direction").unwrap().to_lowercase(),
                field(line, "tid").unwrap(),
                field(line, "mad").unwrap(),
            )
        })
        .collect()
}

/// Asks the PMA of one host from another: a datagram of queue pair 1 on a data lane.
fn ask_counters(home: &Home, from: &str, of: &str) {
    let links = home.json(&["links", "--json"]);
    let ends: Vec<&Value> =
        links.as_array().unwrap().iter().flat_map(|link| [&link["a"], &link["b"]]).collect();
    let end = |node: &str| *ends.iter().find(|end| end["node"] == node).unwrap();
    let lid = Lid(u16::try_from(end(of)["lid"].as_u64().unwrap()).unwrap());
    let guid: Guid = end(from)["guid"].as_str().unwrap().parse().unwrap();
    let listed = home.json(&["ps", "--json"]);
    let runs = |process: &&Value| process["devices"][0]["label"] == from;
    let agent = listed.as_array().unwrap().iter().find(runs).unwrap()["process"].as_str().unwrap();
    let mut client = Client::connect(&home.lab("default").join("sockets").join(agent)).unwrap();
    let patience = Duration::from_secs(20);
    client.attach(guid, PortNum(1), vec![], patience).unwrap();
    let which = PortCountersExtended { port_select: PortNum(1), ..PortCountersExtended::default() }.encode();
    let (get, attribute) = (Method::Get, AttributeId::PortCountersExtended);
    client.send(&weft_mgmt::perf(lid, ServiceLevel(0), get, attribute, &which)).unwrap();
    client.flush().unwrap();
    assert!(matches!(client.recv(patience), Ok(Some(ServerMessage::Receive(_)))), "no answer");
}

#[test]
fn tshark_reads_what_the_agent_logged_and_the_capture_listed() {
    let home = Home::new();
    let tree = home.small_tree();
    let up = home
        .command(&["up", text(&tree)])
        .env("WEFT_LOG", "info,weft_agent::packets=trace")
        .output()
        .unwrap();
    assert!(up.status.success(), "{up:?}");
    let file = home.base().join("port.pcap");
    let capturing = Capturing::start(&home, &["host-1:1", "-w", text(&file), "--json"]);
    home.weft(&["check"]).succeeds();
    ask_counters(&home, "host-0", "host-1");
    let done = capturing.interrupt();
    let listed = objects(&done.succeeds().stdout);
    for name in ["PerfGet(PortCountersExtended)", "PerfGetResp(PortCountersExtended)"] {
        assert_eq!(listed.iter().filter(|packet| packet["name"] == name).count(), 1, "{name}");
    }
    assert!(listed.len() >= 20, "{} packets", listed.len());
    assert!(
        done.stderr.contains(&format!("captured {} packets", listed.len()))
            && done.stderr.contains("; 0 lost\n"),
        "{}",
        done.stderr
    );
    assert_eq!(all_is_dissected(&file, &done.stderr), listed.len());

    // tshark against the capture's own list.
    let fields = [
        "frame.time_epoch",
        "erf.types.type",
        "erf.flags.cap",
        "erf.wlen",
        "infiniband.lrh.slid",
        "infiniband.lrh.dlid",
    ];
    let mad = ["mgmtclass", "method", "attributeid", "attributemodifier", "transactionid"]
        .map(|field| format!("infiniband.mad.{field}"));
    let fields: Vec<&str> = fields.into_iter().chain(mad.iter().map(String::as_str)).collect();
    let read = dissected(&file, &fields);
    for (read, listed) in read.iter().zip(&listed) {
        let seconds = listed["time"].as_str().unwrap();
        assert!(
            seconds.ends_with(&format!("{}Z", &read[0][read[0].find('.').unwrap()..])),
            "{} {seconds}",
            read[0]
        );
        let sent = u64::from(listed["direction"] == "sent");
        let numbers: Vec<u64> = read[1..].iter().map(|text| number(text)).collect();
        let names = ["bytes", "slid", "dlid", "class", "method", "attribute", "attribute_modifier"];
        let own = names.map(|name| listed[name].as_u64().unwrap());
        let tid = number(listed["tid"].as_str().unwrap());
        assert_eq!(numbers, [[21, sent].as_slice(), own.as_slice(), &[tid]].concat(), "{listed}");
    }
    assert_eq!(listed.iter().filter(|packet| packet["direction"] == "sent").count() * 2, listed.len());

    // And against the agent's log, which also has what crossed before and after.
    let ps = home.json(&["ps", "--json"]);
    let runs = |process: &&Value| process["devices"][0]["label"] == "host-1";
    let agent = ps.as_array().unwrap().iter().find(runs).unwrap()["process"].as_str().unwrap().to_owned();
    let logged = logged(&home, &agent, "host-1", 1);
    let text_of = |value: &Value| value.as_str().unwrap().to_owned();
    let listed: Vec<_> = listed
        .iter()
        .map(|packet| (text_of(&packet["direction"]), text_of(&packet["tid"]), text_of(&packet["name"])))
        .collect();
    assert!(logged.windows(listed.len()).any(|logged| logged == listed), "{listed:#?}\nnot in\n{logged:#?}");
}

#[test]
fn packets_are_captured_once_while_a_switch_restarts() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let file = home.base().join("all.pcap");
    let mut events = home.events();
    let whole = |event: &Value| event["event"] == "subnet-up" && event["cables"] == 8;
    events.wait_for("SUBNET UP", whole);
    let capturing = Capturing::start(&home, &["all", "-w", text(&file), "--json"]);
    home.weft(&["fault", "kill", "switch-2-0"]).succeeds();
    home.weft(&["fault", "restart", "switch-2-0"]).succeeds();
    events.wait_for("SUBNET UP again", whole);
    home.weft(&["check"]).succeeds();
    let done = capturing.interrupt();
    let listed = objects(&done.succeeds().stdout);
    assert_eq!(all_is_dissected(&file, &done.stderr), listed.len());
    // Every record names its port, and the port is one that the list has.
    let hosts =
        dissected(&file, &["erf.ehdr.hostid.hostid", "erf.ehdr.hostid.sourceid", "infiniband.mad.method"]);
    let read: Vec<(u64, u64)> = hosts.iter().map(|host| (number(&host[0]), number(&host[1]))).collect();
    let own = |packet: &Value| {
        (number(packet["guid"].as_str().unwrap()) & 0xffff_ffff_ffff, packet["port"].as_u64().unwrap())
    };
    assert_eq!(read, listed.iter().map(own).collect::<Vec<_>>());
    // What was sent, where, and how often: no packet is there twice.
    assert!(listed.iter().all(|packet| packet["direction"] == "sent"));
    let distinct: BTreeSet<String> = listed
        .iter()
        .map(|packet| {
            let hop = &packet["directed"]["hop_pointer"];
            format!(
                "{} {} {} {} {hop} {}",
                packet["guid"], packet["port"], packet["tid"], packet["name"], packet["time"]
            )
        })
        .collect();
    assert_eq!(distinct.len(), listed.len());
    // Traps reported the switch, and the switch spoke again after its return.
    assert!(listed.iter().any(|packet| packet["name"] == "SubnTrap(Notice)"), "no trap was captured");
    let last =
        listed.iter().rev().find(|packet| packet["node"] == "switch-2-0").expect("the switch was captured");
    let first_trap = listed.iter().find(|packet| packet["name"] == "SubnTrap(Notice)").unwrap();
    assert!(last["time"].as_str() > first_trap["time"].as_str());
}

#[test]
fn a_capture_is_piped_into_tshark() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--pack", "all"]).succeeds();
    let mut capture = home
        .command(&["capture", "all", "-w", "-", "--count", "40"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(capture.stderr.take().unwrap());
    let tshark = Command::new("tshark")
        .args(["-r", "-", "-T", "fields", "-e", "infiniband.mad.transactionid"])
        .stdin(capture.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    stderr.read_line(&mut String::new()).unwrap();
    home.weft(&["check"]).succeeds();
    let read = tshark.wait_with_output().unwrap();
    assert!(capture.wait().unwrap().success());
    assert_eq!(
        String::from_utf8(read.stdout).unwrap().lines().filter(|line| line.starts_with("0x")).count(),
        40
    );
}

#[test]
fn a_ring_keeps_the_newest_packets_in_complete_files() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let folder = home.base().join("ring");
    std::fs::create_dir(&folder).unwrap();
    let capturing =
        Capturing::start(&home, &["all", "-w", text(&folder.join("smp.pcap")), "--ring", "3x16K", "--json"]);
    home.weft(&["check"]).succeeds();
    let done = capturing.interrupt();
    let listed = objects(&done.succeeds().stdout);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| file.metadata().unwrap().len() <= 16 << 10));
    let read: Vec<String> = files
        .iter()
        .flat_map(|file| {
            all_is_dissected(file, &done.stderr);
            dissected(file, &["infiniband.mad.transactionid"]).into_iter().flatten()
        })
        .collect();
    assert!(read.len() > 100 && read.len() < listed.len(), "{} of {}", read.len(), listed.len());
    let newest = &listed[listed.len() - read.len()..];
    assert_eq!(read, newest.iter().map(|packet| packet["tid"].as_str().unwrap()).collect::<Vec<_>>());
}

#[test]
fn packets_are_shown_as_lines_and_counted() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let capturing = Capturing::start(&home, &["host-1", "--count", "2"]);
    home.weft(&["check"]).succeeds();
    let done = capturing.end();
    let lines: Vec<&str> = done.succeeds().stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert!(line.contains("Z host-1:1 ") && line.contains(" tid 0x") && line.contains("Subn"), "{line}");
    }
    assert!(done.stderr.contains("captured 2 packets, 580 bytes; 0 lost"), "{}", done.stderr);
    // No one has to read the lines.
    let mut capture =
        home.command(&["capture", "all"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(capture.stdout.take());
    let mut stderr = BufReader::new(capture.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    home.weft(&["check"]).succeeds();
    assert!(capture.wait().unwrap().success());
}

#[test]
fn a_capture_ends_with_its_laboratory() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let file = home.write("x.pcap", "");
    let capturing = Capturing::start(&home, &["all", "-w", text(&file)]);
    home.weft(&["down"]).succeeds();
    let done = capturing.end();
    assert!(done.succeeds().stderr.contains("being taken down"), "{}", done.stderr);
    all_is_dissected(&file, &done.stderr);
}

#[test]
fn impossible_captures_are_refused_with_a_reason() {
    let home = Home::new();
    home.weft(&["capture", "all"]).fails(1, "no laboratory is running");
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--no-sm"]).succeeds();
    home.weft(&["capture"]).fails(2, "NODE:PORT|NODE|all");
    home.weft(&["capture", "nobody:1"]).fails(2, "nobody");
    home.weft(&["capture", "host-1:2"]).fails(2, "ports 1 to 1, not 2");
    home.weft(&["capture", "switch-1-0:0"]).fails(2, "not 0");
    home.weft(&["capture", "all", "-w", "/no/such/folder/x"]).fails(2, "cannot write /no/such/folder/x");
    home.weft(&["capture", "all", "-w", "-", "--json"]).fails(2, "both a capture file and JSON");
    home.weft(&["capture", "all", "--ring", "4x10M"]).fails(2, "--write");
    home.weft(&["capture", "all", "-w", "x", "--ring", "10M"]).fails(2, "4x10M");
    home.weft(&["capture", "all", "-w", "-", "--ring", "4x10M"]).fails(2, "ring of files");
    home.weft(&["fault", "kill", "host-1"]).succeeds();
    home.weft(&["capture", "host-1:1"]).fails(1, "none of these nodes' agents is running");
}
