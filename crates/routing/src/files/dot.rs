//! The DOT graphs that ORCS reads: cables and tables in one text.
//!
//! ```text
//! digraph network {
//!   "0000000000000001" -> "H0000000000000012" [ key="0000000000000001:port-003 to H0000000000000012", comment="H0000000000000012" ];
//!   "H0000000000000012" -> "0000000000000001" [ key="H0000000000000012 to 0000000000000001", comment="*" ];
//! }
//! ```
//!
//! An edge is one direction of a cable. Its comment lists, with commas, the destinations that the node sends by it; `*`
//! is all. Nodes whose names begin with `H` are hosts, others switches. ORCS's `get_network_graph` names hosts by port
//! GUID and switches by node GUID, puts ports into the keys, and lists switches too, by `H` and their GUID; that is what
//! [`write_dot`] writes.

use std::collections::BTreeMap;
use std::fmt::Write;

use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use crate::lids::Lids;
use crate::sorted;
use crate::tables::Routes;

/// Writes cables and tables as ORCS reads them: switches by GUID and port, behind a host's cable the way from the host.
/// Of an end port with several LIDs the first is written. What a switch sends to itself is not, nor are routers.
pub fn write_dot(fabric: &Fabric, lids: &Lids, routes: &Routes) -> String {
    let mut text = "digraph network {\n".to_owned();
    let mut destinations: BTreeMap<Guid, (PortRef, weft_wire::Lid)> = BTreeMap::new();
    for port_lids in lids.iter() {
        let guid = fabric.port(port_lids.port).map_or(Guid(0), |port| port.guid);
        destinations.entry(guid).or_insert((port_lids.port, port_lids.base));
    }
    let mut switches: Vec<(NodeIndex, Guid)> =
        fabric.switches().map(|(index, node)| (index, node.guid)).collect();
    sorted::by_key(&mut switches, |(_, guid)| *guid);
    for (index, guid) in switches {
        let mut served: BTreeMap<PortNum, String> = BTreeMap::new();
        for (destination, (_, lid)) in &destinations {
            let served = served.entry(routes.port(index, *lid)).or_default();
            let comma = if served.is_empty() { "" } else { "," };
            let _ = write!(served, "{comma}H{:016x}", destination.0);
        }
        for (port, peer) in fabric.node(index).cabled_ports() {
            let Some(to) = name(fabric, peer) else { continue };
            let from = format!("{:016x}", guid.0);
            let served = served.get(&port).map_or("", String::as_str);
            let _ = writeln!(
                text,
                "  \"{from}\" -> \"{to}\" [ key=\"{from}:port-{:03} to {to}\", comment=\"{served}\" ];",
                port.0
            );
            if !fabric.node(peer.node).is_switch() {
                let _ = writeln!(text, "  \"{to}\" -> \"{from}\" [ key=\"{to} to {from}\", comment=\"*\" ];");
            }
        }
    }
    text.push_str("}\n");
    text
}

/// What `get_network_graph` calls the node behind a port.
fn name(fabric: &Fabric, port: PortRef) -> Option<String> {
    let node = fabric.node(port.node);
    match node.kind {
        weft_wire::NodeType::Switch => Some(format!("{:016x}", node.guid.0)),
        weft_wire::NodeType::Hca => Some(format!("H{:016x}", fabric.port(port)?.guid.0)),
        _ => None,
    }
}
