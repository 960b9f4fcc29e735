//! A fabric of virtualised adapters with one virtual machine as infiniband-diags see it, beside what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use serde_json::Value;
use weft_topology::{Adapter, Fabric, Node, NodeIndex, PortRef, Virtualised};
use weft_wire::{Guid, PortNum};

use crate::moves::{Functions, Lids};
use crate::opensm::hexadecimal;
use crate::{Lab, output_of};

/// No path has more nodes.
const NODES_MAX: usize = 20;

/// The only machine's address, which it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    lid: u16,
    guid: Guid,
}

impl Address {
    fn of(lab: &Lab) -> Self {
        let text = output_of(&mut lab.weft(&["vm", "ls", "--json"]));
        let list: Value = serde_json::from_str(&text).expect("--json prints JSON");
        let lid = list[0]["virtual_port_lid"].as_u64().and_then(|lid| u16::try_from(lid).ok());
        let guid = list[0]["virtual_port_guid"].as_str().map(hexadecimal);
        let (lid, guid) = lid.zip(guid).unwrap_or_else(|| panic!("no address in {list}"));
        Self { lid, guid: Guid(guid) }
    }
}

/// That tools at a host see the fabric with these functions and the only machine at `host`: `ibnetdiscover` all nodes and cables, `saquery` the
/// machine's records and a path, and `ibtracert` the path that forwarding tables lead along, which `ibroute` reads switch by switch.
/// With dynamic LIDs no other function is plugged in; with prepopulated ones all are, and subnet administration knows each. The nodes
/// of the path.
///
/// # Panics
/// When they see something else; it is in the message.
pub(crate) fn diags_see(
    lab: &Lab,
    fabric: &Fabric,
    functions: Functions,
    from: NodeIndex,
    host: NodeIndex,
) -> Vec<String> {
    let from = fabric.node(from);
    let machine = Address::of(lab);
    let printed = lab.says(from, "ibnetdiscover");
    let read = weft_topology::parse("ibnetdiscover", &printed).unwrap_or_else(|error| panic!("{error}"));
    let plan = fabric.virtualised(functions.each.into()).expect("adapters have room");
    let at = the_fabric(&read, &plan, functions.lids, machine);
    let vswitch = read.peer(at).expect("the machine has a cable");
    let beside = read.node(vswitch.node).cabled_ports().map(|(_, far)| read.node(far.node).guid);
    let pf = fabric.node(host).guid;
    assert!(
        beside.into_iter().any(|guid| guid == pf),
        "the machine is not beside {}: {printed}",
        fabric.node(host).description
    );
    assert!((3..3 + functions.each).contains(&vswitch.port.0), "the machine is in port {}", vswitch.port);
    if functions.lids == Lids::Prepopulated {
        all_functions(lab, from, &read, &plan);
    }

    records(lab, from, machine, read.node(at.node));
    let way = by_tables(lab, from, &read, machine.lid);
    assert_eq!(traced(lab, from, machine.lid), way, "ibtracert beside the tables");
    way
}

/// That all nodes and cables of the plan are read, and of its functions those that are meant to be plugged in: the machine's port.
fn the_fabric(read: &Fabric, plan: &Virtualised, lids: Lids, machine: Address) -> PortRef {
    let Virtualised { fabric: plan, adapters } = plan;
    let slots: BTreeSet<NodeIndex> = adapters.iter().flat_map(|of| of.vfs.iter().copied()).collect();
    let own: BTreeSet<Guid> = slots.iter().map(|slot| plan.node(*slot).guid).collect();
    let found = read.iter().find_map(|(index, node)| {
        let mut ports = node.end_ports().filter(|(_, port)| port.guid == machine.guid);
        ports.next().map(|(port, _)| PortRef::new(index, port))
    });
    let at = found.unwrap_or_else(|| panic!("ibnetdiscover does not see port {}", machine.guid));
    let nodes = |fabric: &Fabric, is_meant: &dyn Fn(NodeIndex) -> bool| -> BTreeMap<Guid, String> {
        let meant = fabric.iter().filter(|(index, _)| is_meant(*index));
        meant.map(|(_, node)| (node.guid, node.description.clone())).collect()
    };
    let cables = |fabric: &Fabric, is_meant: &dyn Fn(NodeIndex) -> bool| -> BTreeSet<[(Guid, PortNum); 2]> {
        let meant = fabric.cables().filter(|cable| is_meant(cable.a.node) && is_meant(cable.b.node));
        let end = |end: PortRef| (fabric.node(end.node).guid, end.port);
        meant.map(|cable| [end(cable.a), end(cable.b)]).collect()
    };
    let is_function = |node| node == at.node || own.contains(&read.node(node).guid);
    let (is_old, is_physical) = (|node| !is_function(node), |node| !slots.contains(&node));
    assert_eq!(nodes(read, &is_old), nodes(plan, &is_physical), "nodes by ibnetdiscover beside the plan");
    assert_eq!(cables(read, &is_old), cables(plan, &is_physical), "cables by ibnetdiscover beside the plan");

    // Functions change places with the machine, so only where there is one is known, and which there are.
    let place = |end: PortRef, fabric: &Fabric| (fabric.node(end.node).guid, end.port);
    let plugged: BTreeSet<(Guid, PortNum)> = (read.iter().filter(|(node, _)| is_function(*node)))
        .filter_map(|(node, _)| read.peer(PortRef::new(node, PortNum(1))))
        .map(|vswitch| place(vswitch, read))
        .collect();
    let meant: BTreeSet<(Guid, PortNum)> = match lids {
        Lids::Dynamic => read.peer(at).map(|vswitch| place(vswitch, read)).into_iter().collect(),
        Lids::Prepopulated => {
            adapters.iter().flat_map(Adapter::slots).map(|(vswitch, _)| place(vswitch, plan)).collect()
        }
    };
    assert_eq!(plugged, meant, "functions by ibnetdiscover beside those that are plugged in");
    at
}

/// That every function of the plan is read, has a LID of its own, and that subnet administration knows it; and the path to the last one.
fn all_functions(lab: &Lab, from: &Node, read: &Fabric, plan: &Virtualised) {
    let slots = plan.adapters.iter().flat_map(|of| of.vfs.iter());
    let own: BTreeSet<Guid> = slots.map(|slot| plan.fabric.node(*slot).guid).collect();
    let seen: BTreeSet<Guid> = read.nodes().iter().map(|node| node.guid).collect();
    assert_eq!(
        own.difference(&seen).collect::<Vec<_>>(),
        Vec::<&Guid>::new(),
        "ibnetdiscover sees all functions"
    );
    let printed = lab.says(from, "saquery NR");
    let mut lids: BTreeMap<u64, Guid> = BTreeMap::new();
    for record in printed.split("NodeRecord dump:").skip(1) {
        let guid = Guid(field(record, "node_guid"));
        if own.contains(&guid) {
            let before = lids.insert(field(record, "lid"), guid);
            assert_eq!(before, None, "two functions have a LID: {record}");
        }
    }
    assert_eq!(lids.values().copied().collect::<BTreeSet<_>>(), own, "node records of all functions");
    let (last, _) = lids.last_key_value().expect("there are functions");
    let last = u16::try_from(*last).expect("a LID has 16 bits");
    assert_eq!(traced(lab, from, last), by_tables(lab, from, read, last), "ibtracert beside the tables");
}

/// That subnet administration knows the machine's node and port, and a path to it.
fn records(lab: &Lab, from: &Node, machine: Address, node: &Node) {
    let lid = machine.lid;
    let port = lab.says(from, &format!("saquery PIR {lid}"));
    assert_eq!(field(&port, "EndPortLid"), u64::from(lid), "{port}");
    let record = lab.says(from, &format!("saquery NR {lid}"));
    assert_eq!(field(&record, "port_guid"), machine.guid.0, "{record}");
    assert_eq!(field(&record, "node_guid"), node.guid.0, "{record}");
    let own = own_lid(lab, from);
    let path = lab.says(from, &format!("saquery --src-to-dst {own}:{lid}"));
    assert_eq!((field(&path, "slid"), field(&path, "dlid")), (own, u64::from(lid)), "{path}");
    let gid: Ipv6Addr = text(&path, "dgid").parse().unwrap_or_else(|error| panic!("{error}: {path}"));
    assert_eq!(gid.to_bits() as u64, machine.guid.0, "{path}");
}

/// A value of a record that saquery prints: `dlid....................0xB`.
fn text<'a>(record: &'a str, name: &str) -> &'a str {
    let value = record.lines().find_map(|line| {
        let after = line.trim().strip_prefix(name)?;
        after.starts_with('.').then(|| after.trim_start_matches('.').trim())
    });
    value.unwrap_or_else(|| panic!("no {name} in {record}"))
}

/// The same where it is a number.
fn field(record: &str, name: &str) -> u64 {
    number(text(record, name)).unwrap_or_else(|| panic!("{name} is no number in {record}"))
}

/// `0xB` or `11`.
fn number(text: &str) -> Option<u64> {
    if text.starts_with("0x") { Some(hexadecimal(text)) } else { text.parse().ok() }
}

/// As `ibaddr` prints it: `LID start 26 end 26`.
fn own_lid(lab: &Lab, node: &Node) -> u64 {
    let printed = lab.says(node, "ibaddr -L");
    printed.split_whitespace().nth(2).and_then(number).unwrap_or_else(|| panic!("no LID in {printed}"))
}

/// The nodes of the path that `ibtracert` prints.
fn traced(lab: &Lab, from: &Node, lid: u16) -> Vec<String> {
    let printed = lab.says(from, &format!("ibtracert {} {lid}", own_lid(lab, from)));
    let steps = printed.lines().filter(|line| line.starts_with('[') || line.starts_with("From"));
    steps.filter_map(|line| Some(line.split('"').nth(1)?.trim().to_owned())).collect()
}

/// The nodes that packets for a LID pass by the switches' tables and the cables.
fn by_tables(lab: &Lab, from: &Node, read: &Fabric, lid: u16) -> Vec<String> {
    let start = read.by_guid(from.guid).expect("ibnetdiscover sees its own host");
    let (port, _) = read.node(start).cabled_ports().next().expect("the host has a cable");
    let (mut way, mut out) = (vec![from.description.clone()], PortRef::new(start, port));
    while way.len() < NODES_MAX {
        let far = read.peer(out).unwrap_or_else(|| panic!("a table leads out of no cable: {way:?}"));
        let node = read.node(far.node);
        way.push(node.description.clone());
        if !node.is_switch() {
            return way;
        }
        let printed = lab.says(from, &format!("ibroute -G 0x{:016x} {lid} {lid}", node.guid.0));
        // `0x000b 003 : (Channel Adapter portguid …`
        let row = printed.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let row = words.next().filter(|word| word.starts_with("0x")).map(hexadecimal)?;
            words.next().filter(|_| row == u64::from(lid))?.parse().ok()
        });
        let row = row.unwrap_or_else(|| panic!("no row for LID {lid} at {}: {printed}", node.description));
        out = PortRef::new(far.node, PortNum(row));
    }
    panic!("packets go round: {way:?}")
}
