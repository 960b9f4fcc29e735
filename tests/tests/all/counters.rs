//! perfquery and ibqueryerrors judge the performance manager: all three read the same counters after an experiment.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_judges::{Lab, output_of};
use weft_topology::{Fabric, Node, parse};

/// No condition takes longer, or it never comes.
const TIME_MAX: Duration = Duration::from_secs(60);

/// dFtree's tree. Two hosts send to a third, and then there is rest for as long as anybody may want to look.
fn experiment() -> String {
    let topology = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/dftree-1.topo");
    format!(
        r#"
title = "Two into one, and then rest"
source = "a test"
duration = 300
run = "live"

[fabric]
topology = "{}"

[pm]
mode = "watch"
interval = 0.5
at = "host-2"

[flow.1-5]
from = "host-1"
to = "host-5"
start = 0
stop = 3

[flow.6-5]
from = "host-6"
to = "host-5"
start = 0
stop = 3

[window]
steady = [1, 3]
"#,
        topology.display()
    )
}

fn fabric() -> Fabric {
    parse("dftree-1.topo", include_str!("../../../topologies/dftree-1.topo")).unwrap()
}

/// What the performance manager knows of every port, and how many sweeps it has made. Nothing before it has made one.
fn swept(lab: &Lab) -> Option<(u64, Vec<Value>)> {
    let output = lab.weft(&["top", "--json"]).output().unwrap();
    let top: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some((top["sweep"].as_u64()?, top["ports"].as_array()?.clone()))
}

/// A switch's ports as the performance manager knows them.
fn of_switch<'a>(ports: &'a [Value], switch: &Node) -> Vec<&'a Value> {
    let guid = switch.guid.to_string();
    ports.iter().filter(|port| port["node_guid"] == guid.as_str()).collect()
}

fn wait_of(port: &Value) -> u64 {
    port["totals"]["port_xmit_wait"].as_u64().unwrap()
}

/// Waits until the hot spot's port has waited, and two sweeps apart has waited no more.
fn wait_for_rest(lab: &Lab) {
    let start = Instant::now();
    let mut before = (0, 0);
    loop {
        assert!(start.elapsed() < TIME_MAX, "no rest within {TIME_MAX:?}: {before:?}");
        let Some((sweep, ports)) = swept(lab) else { continue };
        let hot = ports.iter().find(|port| port["peer"] == "host-5:1").map_or(0, wait_of);
        if hot > 0 && hot == before.1 && sweep >= before.0 + 2 {
            return;
        }
        if hot != before.1 {
            before = (sweep, hot);
        }
    }
}

/// What the performance manager knows two sweeps from now: the second of them began after this.
fn swept_again(lab: &Lab) -> Vec<Value> {
    let start = Instant::now();
    let (sweep, _) = swept(lab).unwrap();
    loop {
        assert!(start.elapsed() < TIME_MAX, "the manager does not sweep any more");
        match swept(lab) {
            Some((later, ports)) if later >= sweep + 2 => return ports,
            _ => {}
        }
    }
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    line.trim_start_matches('.').trim().parse().unwrap()
}

/// What ibqueryerrors says of a port, which it does only when there is something to say.
fn line_of<'a>(errors: &'a str, switch: &Node, port: u64) -> Option<&'a str> {
    let begin = format!("GUID {:#x} port {port}:", switch.guid.0);
    errors.lines().map(str::trim_start).find(|line| line.starts_with(&begin))
}

/// A counter of it, in brackets; 0 where it is not named.
fn in_brackets(line: Option<&str>, name: &str) -> u64 {
    let begin = format!("[{name} == ");
    let rest = line.and_then(|line| line.split_once(&begin));
    rest.map_or(0, |(_, rest)| rest.split([' ', ']']).next().unwrap().parse().unwrap())
}

/// Questions are traffic too, and some wait. So what a tool reads lies between what the manager knows before and after it,
/// and where nothing has moved meanwhile it is the same number.
#[test]
fn perfquery_ibqueryerrors_and_the_manager_read_the_same() {
    let lab = Lab::begin_run(&experiment());
    wait_for_rest(&lab);
    let fabric = fabric();
    let host = fabric.nodes().iter().find(|node| node.description == "host-3").unwrap();
    let before = swept(&lab).unwrap().1;
    // It exits with 1 when it has found something.
    let errors = String::from_utf8(lab.command("ibqueryerrors", host, &[]).output().unwrap().stdout).unwrap();
    let places = fabric.switches().flat_map(|(_, switch)| {
        of_switch(&before, switch).into_iter().map(move |known| (switch, known)).collect::<Vec<_>>()
    });
    let mut read = Vec::new();
    for (switch, known) in places {
        let of_port = ["lid", "port"].map(|key| known[key].as_u64().unwrap());
        let perfquery = |options: &[&str]| {
            output_of(lab.command("perfquery", host, &[]).args(options).args(of_port.map(|n| n.to_string())))
        };
        let line = line_of(&errors, switch, of_port[1]);
        read.push((switch, known, line, perfquery(&[]), perfquery(&["-x"])));
    }
    let after = swept_again(&lab);
    let mut same = 0;
    for (switch, known, line, basic, extended) in read {
        let later = of_switch(&after, switch).into_iter().find(|port| port["port"] == known["port"]).unwrap();
        let waited = wait_of(known)..=wait_of(later);
        let (by_perfquery, by_errors) = (number(&basic, "PortXmitWait"), in_brackets(line, "PortXmitWait"));
        assert!(waited.contains(&by_perfquery) && waited.contains(&by_errors), "{waited:?}: {basic}{line:?}");
        same += u32::from(*waited.start() > 0 && waited.start() == waited.end());
        // Nothing has gone wrong since the fabric came up, when a few packets were too early.
        for (name, of) in [
            ("SymbolErrorCounter", "symbol_error_counter"),
            ("PortRcvErrors", "port_rcv_errors"),
            ("PortXmitDiscards", "port_xmit_discards"),
            ("VL15Dropped", "vl15_dropped"),
        ] {
            let said = [number(&basic, name), in_brackets(line, name)].map(Some);
            assert_eq!(said, [known["totals"][of].as_u64(); 2], "{name}: {basic}{line:?}");
        }
        for (name, of) in [
            ("PortXmitData", "port_xmit_data"),
            ("PortRcvData", "port_rcv_data"),
            ("PortXmitPkts", "port_xmit_pkts"),
            ("PortRcvPkts", "port_rcv_pkts"),
            ("PortUnicastXmitPkts", "port_unicast_xmit_pkts"),
        ] {
            let [least, most] = [known, later].map(|known| known["totals"][of].as_u64().unwrap());
            let said = number(&extended, name);
            assert!(said > 0 && (least..=most).contains(&said), "{name}: {said}, {least} to {most}");
        }
    }
    assert!(same >= 1, "the hot spot's port has waited, and rests: {errors}");
}
