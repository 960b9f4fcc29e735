//! An engine's input, as the document that programs read.

use weft_control::report::engine::{ENGINE_VERSION, EngineFabric, EngineLids, EngineNode, EnginePort};
use weft_routing::Input;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::Guid;

/// The fabric that a program is to route.
pub(crate) fn fabric_of(input: &Input<'_>) -> EngineFabric {
    let Input { fabric, lids, options } = input;
    let (switches, hosts): (Vec<_>, Vec<_>) = fabric.iter().partition(|(_, node)| node.is_switch());
    let nodes = |nodes: Vec<(NodeIndex, _)>| nodes.iter().map(|(index, _)| node(fabric, *index)).collect();
    let lids = lids.iter().map(|lids| EngineLids {
        lid: lids.base.0,
        lmc: lids.lmc,
        guid: guid(fabric.node(lids.port.node).guid),
        port: lids.port.port.0,
    });
    EngineFabric {
        version: ENGINE_VERSION,
        lanes: options.lanes,
        roots: options.roots.iter().copied().map(guid).collect(),
        switches: nodes(switches),
        hosts: nodes(hosts),
        lids: lids.collect(),
    }
}

fn node(fabric: &Fabric, index: NodeIndex) -> EngineNode {
    let node = fabric.node(index);
    let ports = node.cabled_ports().map(|(port, peer)| {
        let link = fabric.port(PortRef::new(index, port)).map(|port| port.link);
        EnginePort {
            port: port.0,
            peer_guid: guid(fabric.node(peer.node).guid),
            peer_port: peer.port.0,
            rate_gbps: link.map_or(0, weft_topology::LinkRate::signalling_bits_per_second) as f64 / 1e9,
        }
    });
    EngineNode { guid: guid(node.guid), name: fabric.label(index), ports: ports.collect() }
}

/// A GUID as documents have it.
fn guid(guid: Guid) -> String {
    format!("0x{:016x}", guid.0)
}
