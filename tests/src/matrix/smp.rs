//! Programs that read and write single attributes of the subnet management agents.

use std::collections::BTreeMap;

use weft_routing::trace;
use weft_topology::{Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use super::{Case, case};
use crate::Site;
use crate::opensm::hexadecimal;
use crate::site::{expect_equal, expect_field, field};

pub(super) const CASES: &[Case] = &[
    case("sminfo", "LID and GUID of the master, its state", sm_info),
    case("smpquery nodeinfo LID", "kind, ports, GUIDs, vendor and device of every node", node_info_by_lid),
    case("smpquery -D nodeinfo PATH", "the same of every neighbour", node_info_by_path),
    case("smpquery -c nodeinfo LID PATH", "the same, by LID and then by path", node_info_combined),
    case(
        "smpquery -G nodedesc GUID",
        "description, with the LID asked from the SA",
        node_description_by_guid,
    ),
    case("smpquery nodedesc", "the description of every node", node_description),
    case("smpquery portinfo", "LID, states, width and speed of every cabled port", port_info),
    case("smpquery switchinfo", "LinearFdbTop, EnhancedPort0 of every switch", switch_info),
    case("smpquery pkeys", "the default partition's key", p_keys),
    case("smpquery sl2vl", "a row for every input of a switch's port", sl_to_vl),
    case("smpquery vlarb", "both tables", vl_arbitration),
    case("smpquery guidinfo", "the port's GUID", guid_info),
    case("smpquery mepi", "the vendor's extended port information, or its refusal", mellanox_port_info),
    case("smpquery PIE", "extended port information, or that the port has none", port_info_extended),
    case("ibaddr", "GID and LID of the own port", own_address),
    case("ibaddr -G GUID", "the LID of every port's GUID", address_of_guid),
    case("ibroute LID", "every entry of every switch's table", route),
    case("dump_lfts", "every entry of every table, in one run", dump_tables),
    case("dump_mfts", "every switch", dump_multicast),
    case("ibtracert A B", "every hop of the paths to all hosts", trace_route),
    case("ibportstate LID PORT query", "states of a port and of its peer", port_state),
    case("smpdump -D PATH ATTRIBUTE", "the bytes of NodeInfo", dump),
];

fn sm_info(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("sminfo", &[])?;
    let (port, _) = site.fabric.node(site.host).end_ports().next().ok_or("a host without a port")?;
    let guid = site.fabric.node(site.host).ports[usize::from(port.0)].guid.0;
    let start = format!("sminfo: sm lid {} sm guid {guid:#x}, ", site.lid(site.host));
    if !text.starts_with(&start) || !text.trim_end().ends_with("SMINFO_MASTER") {
        return Err(format!("{:?} does not begin with {start:?}", text.trim()));
    }
    Ok(())
}

fn is_node_info_of(text: &str, node: &Node) -> Result<(), String> {
    let kind = if node.is_switch() { "Switch" } else { "Channel Adapter" };
    expect_field(text, "NodeType", kind)?;
    expect_field(text, "NumPorts", &node.port_count().to_string())?;
    expect_field(text, "Guid", &node.guid.to_string())?;
    expect_field(text, "SystemGuid", &node.system_image_guid.to_string())?;
    expect_field(text, "DevId", &format!("{:#06x}", node.device_id))?;
    expect_field(text, "VendorId", &format!("{:#08x}", node.vendor_id))
}

fn node_info_by_lid(site: &Site<'_>) -> Result<(), String> {
    for (index, node) in site.fabric.iter() {
        let text = site.read("smpquery", &["nodeinfo", &site.lid(index).to_string()])?;
        is_node_info_of(&text, node)?;
    }
    Ok(())
}

/// The switch that the usual host is cabled to, and by which port of the host.
fn first_switch(site: &Site<'_>) -> (PortNum, NodeIndex) {
    let (port, peer) = site.fabric.node(site.host).cabled_ports().next().expect("the host has a cable");
    (port, peer.node)
}

fn node_info_by_path(site: &Site<'_>) -> Result<(), String> {
    let (out, switch) = first_switch(site);
    for (port, peer) in site.fabric.node(switch).cabled_ports() {
        let text = site.read("smpquery", &["-D", "nodeinfo", &format!("0,{out},{port}")])?;
        is_node_info_of(&text, site.fabric.node(peer.node))?;
    }
    Ok(())
}

fn node_info_combined(site: &Site<'_>) -> Result<(), String> {
    let (switch, _) = site.far_switch();
    for (port, peer) in site.fabric.node(switch).cabled_ports() {
        let path = format!("0,{port}");
        let text = site.read("smpquery", &["-c", "nodeinfo", &site.lid(switch).to_string(), &path])?;
        is_node_info_of(&text, site.fabric.node(peer.node))?;
    }
    Ok(())
}

fn described(text: &str) -> &str {
    text.trim().trim_start_matches("Node Description:").trim_start_matches('.')
}

fn node_description(site: &Site<'_>) -> Result<(), String> {
    for (index, node) in site.fabric.iter() {
        let text = site.read("smpquery", &["nodedesc", &site.lid(index).to_string()])?;
        expect_equal("description", &described(&text), &node.description.as_str())?;
    }
    Ok(())
}

fn node_description_by_guid(site: &Site<'_>) -> Result<(), String> {
    let node = site.fabric.node(site.other_host());
    let (_, port) = node.end_ports().next().ok_or("a host without a port")?;
    let text = site.read("smpquery", &["-G", "nodedesc", &port.guid.to_string()])?;
    expect_equal("description", &described(&text), &node.description.as_str())
}

fn port_info(site: &Site<'_>) -> Result<(), String> {
    for (index, node) in site.fabric.iter() {
        for (port, _) in node.cabled_ports() {
            let lid = site.lid_of_port(PortRef::new(index, port));
            let text = site.read("smpquery", &["portinfo", &lid.to_string(), &port.to_string()])?;
            let own = if node.is_switch() { Lid(0) } else { lid };
            expect_field(&text, "Lid", &own.to_string())?;
            expect_field(&text, "LinkState", "Active")?;
            expect_field(&text, "PhysLinkState", "LinkUp")?;
            let rate = node.ports[usize::from(port.0)].link.to_string();
            let (width, speed) = rate.split_once('x').ok_or("a rate without a width")?;
            expect_field(&text, "LinkWidthActive", &format!("{width}X"))?;
            let gigabits = BTreeMap::from([("SDR", "2.5 Gbps"), ("DDR", "5.0 Gbps"), ("QDR", "10.0 Gbps")]);
            if let Some(wanted) = gigabits.get(speed) {
                expect_field(&text, "LinkSpeedActive", wanted)?;
            }
        }
    }
    Ok(())
}

fn switch_info(site: &Site<'_>) -> Result<(), String> {
    for (index, node) in site.fabric.switches() {
        let text = site.read("smpquery", &["switchinfo", &site.lid(index).to_string()])?;
        let top = field(&text, "LinearFdbTop").and_then(|top| top.parse::<u16>().ok());
        if top.is_none_or(|top| top < site.lids.top().0) {
            return Err(format!("LinearFdbTop is {top:?}, below the highest LID {}", site.lids.top()));
        }
        expect_field(&text, "EnhancedPort0", if node.enhanced_port0 { "1" } else { "0" })?;
    }
    Ok(())
}

fn p_keys(site: &Site<'_>) -> Result<(), String> {
    for (index, _) in site.fabric.hosts() {
        let text = site.read("smpquery", &["pkeys", &site.lid(index).to_string(), "1"])?;
        let first = text.split_whitespace().nth(1);
        if !matches!(first, Some("0xffff" | "0x7fff")) {
            return Err(format!("the first key is {first:?}"));
        }
    }
    Ok(())
}

fn sl_to_vl(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = site.far_switch();
    let text = site.read("smpquery", &["sl2vl", &site.lid(switch).to_string(), &port.to_string()])?;
    let rows = text.lines().filter(|line| line.starts_with("ports: in")).count();
    expect_equal("rows", &rows, &(usize::from(site.fabric.node(switch).port_count()) + 1))?;
    let row = text.lines().find(|line| line.starts_with("ports: in")).unwrap_or_default();
    let lanes =
        row.split_once("| ").map(|(_, lanes)| lanes.split('|').filter(|l| !l.trim().is_empty()).count());
    expect_equal("service levels", &lanes, &Some(16))
}

fn vl_arbitration(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = site.far_switch();
    let text = site.read("smpquery", &["vlarb", &site.lid(switch).to_string(), &port.to_string()])?;
    let weights: Vec<&str> = text.lines().filter(|line| line.starts_with("WEIGHT:")).collect();
    expect_equal("tables", &weights.len(), &2)?;
    let is_set = |line: &&str| line.split('|').any(|w| w.trim().starts_with("0x") && w.trim() != "0x0");
    if weights.iter().any(is_set) { Ok(()) } else { Err("no lane has any weight".into()) }
}

fn guid_info(site: &Site<'_>) -> Result<(), String> {
    for (index, host) in site.fabric.hosts() {
        let text = site.read("smpquery", &["guidinfo", &site.lid(index).to_string()])?;
        let first = text.split_whitespace().nth(1).map(hexadecimal).map(Guid);
        let (_, port) = host.end_ports().next().ok_or("a host without a port")?;
        expect_equal("the first GUID", &first, &Some(port.guid))?;
    }
    Ok(())
}

/// A port either has the attribute or refuses it with a status; what must not be is silence.
fn mellanox_port_info(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = site.far_switch();
    let said = site.run("smpquery", &["mepi", &site.lid(switch).to_string(), &port.to_string()]);
    if said.code == 0 {
        return field(&said.out, "LinkSpeedActive").map(drop).ok_or("no LinkSpeedActive".into());
    }
    if said.err.contains("timed out") { Err("no answer at all".into()) } else { Ok(()) }
}

fn port_info_extended(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = site.far_switch();
    let said = site.run("smpquery", &["PIE", &site.lid(switch).to_string(), &port.to_string()]);
    if said.code == 0 {
        return field(&said.out, "FECModeActive").map(drop).ok_or("no FECModeActive".into());
    }
    let refused = said.err.contains("doesn't indicate PortInfoExtended support");
    if refused { Ok(()) } else { Err(said.err.lines().next().unwrap_or("nothing said").to_owned()) }
}

fn own_address(site: &Site<'_>) -> Result<(), String> {
    let lid = site.lid(site.host).0;
    let text = site.read("ibaddr", &[])?;
    expect_equal("ending", &text.trim().ends_with(&format!("LID start {lid:#x} end {lid:#x}")), &true)
}

fn address_of_guid(site: &Site<'_>) -> Result<(), String> {
    for (index, node) in site.fabric.iter() {
        let (_, port) = node.end_ports().next().ok_or("a node without a port")?;
        let lid = site.lid(index).0;
        let text = site.read("ibaddr", &["-G", &port.guid.to_string()])?;
        if !text.trim().ends_with(&format!("LID start {lid:#x} end {lid:#x}")) {
            return Err(format!("{}: {}", port.guid, text.trim()));
        }
    }
    Ok(())
}

/// `0x0001 001 : (…)`, a line an entry.
fn entries(text: &str) -> BTreeMap<Lid, PortNum> {
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let (lid, port) = (words.next()?.strip_prefix("0x")?, words.next()?);
        Some((Lid(u16::from_str_radix(lid, 16).ok()?), PortNum(port.parse().ok()?)))
    };
    text.lines().filter_map(entry).collect()
}

fn is_table_of(site: &Site<'_>, text: &str, switch: NodeIndex) -> Result<(), String> {
    let known = site.lids.iter().map(|lids| (lids.base, site.routes.port(switch, lids.base)));
    expect_equal(&site.fabric.node(switch).id, &entries(text), &known.collect())
}

fn route(site: &Site<'_>) -> Result<(), String> {
    for (index, _) in site.fabric.switches() {
        is_table_of(site, &site.read("ibroute", &[&site.lid(index).to_string()])?, index)?;
    }
    Ok(())
}

fn dump_tables(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("dump_lfts", &[])?;
    let mut found = 0;
    for part in text.split("Unicast lids ").skip(1) {
        let guid = part.split_whitespace().skip_while(|word| *word != "guid").nth(1).ok_or("no GUID")?;
        let switch = site.fabric.by_guid(Guid(hexadecimal(guid))).ok_or("a switch that is not there")?;
        is_table_of(site, part, switch)?;
        found += 1;
    }
    expect_equal("switches", &found, &site.fabric.switches().count())
}

fn dump_multicast(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("dump_mfts", &[])?;
    let switches = text.lines().filter(|line| line.starts_with("Multicast mlids")).count();
    expect_equal("switches", &switches, &site.fabric.switches().count())
}

/// `[1] -> switch port {0x…}[32] lid …`, a line a cable.
fn trace_route(site: &Site<'_>) -> Result<(), String> {
    let from = site.lid(site.host);
    for (index, _) in site.fabric.hosts().filter(|(index, _)| *index != site.host) {
        let to = site.lid(index);
        let text = site.read("ibtracert", &[&from.to_string(), &to.to_string()])?;
        let found: Vec<(PortNum, PortNum)> = text.lines().filter_map(crossing).collect();
        let (port, _) = site.fabric.node(site.host).end_ports().next().ok_or("a host without a port")?;
        let path = trace(site.fabric, &site.lids, &site.routes, PortRef::new(site.host, port), to);
        let path = path.map_err(|error| error.to_string())?;
        let wanted = path.hops.windows(2).map(|hops| (hops[0].exit, hops[1].entry)).collect();
        expect_equal(&format!("from {from} to {to}"), &found, &wanted)?;
    }
    Ok(())
}

fn crossing(line: &str) -> Option<(PortNum, PortNum)> {
    let (out, rest) = line.strip_prefix('[')?.split_once("] -> ")?;
    let entry = rest.split_once("}[")?.1.split_once(']')?.0;
    Some((PortNum(out.parse().ok()?), PortNum(entry.parse().ok()?)))
}

fn port_state(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = site.far_switch();
    let text = site.read("ibportstate", &[&site.lid(switch).to_string(), &port.to_string(), "query"])?;
    let (own, peer) = text.split_once("Peer PortInfo:").ok_or("nothing of the peer")?;
    for part in [own, peer] {
        expect_field(part, "LinkState", "Active")?;
        expect_field(part, "PhysLinkState", "LinkUp")?;
    }
    let wanted = site.fabric.peer(PortRef::new(switch, port)).ok_or("a port without a cable")?;
    let line = peer.lines().find(|line| line.starts_with("# Port info:")).unwrap_or_default();
    expect_equal("peer", &line.ends_with(&format!("port {}", wanted.port)), &true)
}

/// A cable between a switch and a host that is not the usual one.
fn host_cable(site: &Site<'_>) -> Result<(NodeIndex, PortNum), String> {
    let host = site.fabric.node(site.other_host());
    let (_, peer) = host.cabled_ports().next().ok_or("a host without a cable")?;
    let is_switch = site.fabric.node(peer.node).kind == NodeType::Switch;
    if is_switch { Ok((peer.node, peer.port)) } else { Err("a host that hangs on a host".into()) }
}

pub(super) fn port_state_changes(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = host_cable(site)?;
    let (lid, port) = (site.lid(switch).to_string(), port.to_string());
    let until = |state: &str| {
        // Each question is a program of its own, so that asking itself takes its time.
        for _ in 0..400 {
            let text = site.read("smpquery", &["portinfo", &lid, &port])?;
            if field(&text, "LinkState") == Some(state) {
                return Ok(());
            }
        }
        Err(format!("the port does not become {state}"))
    };
    site.read("ibportstate", &[&lid, &port, "disable"])?;
    let down = until("Down");
    site.read("ibportstate", &[&lid, &port, "enable"])?;
    until("Active")?;
    site.read("ibportstate", &[&lid, &port, "reset"])?;
    until("Active").and(down)
}

fn dump(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("smpdump", &["-D", "0", "0x11"])?;
    let digits: String = text.lines().take(4).flat_map(str::split_whitespace).collect();
    let guid = format!("{:016x}", site.fabric.node(site.host).guid.0);
    expect_equal("node GUID at byte 12", &digits.get(24..40), &Some(guid.as_str()))
}
