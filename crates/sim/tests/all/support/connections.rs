//! Hosts with reliable connections.

#![allow(dead_code, reason = "not every test uses all of it")]

use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use weft_sim::Simulation;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::Guid;

/// The only cabled port of `host-N`.
pub(crate) fn host(simulation: &Simulation, number: u32) -> PortRef {
    let node: NodeIndex = simulation.fabric().find(&format!("host-{number}")).unwrap();
    PortRef::new(node, simulation.fabric().node(node).cabled_ports().next().unwrap().0)
}

/// A port's GUID.
pub(crate) fn guid(simulation: &Simulation, port: PortRef) -> Guid {
    simulation.fabric().port(port).unwrap().guid
}

/// A reliable connection from one host to another that never ends.
pub(crate) fn flow(simulation: &mut Simulation, from: u32, to: u32) -> FlowId {
    flow_of(simulation, from, to, 2048)
}

/// The same with packets of this many bytes.
pub(crate) fn flow_of(simulation: &mut Simulation, from: u32, to: u32, packet_bytes: u16) -> FlowId {
    let flow = FlowId(from * 100 + to);
    let (from, to) = (host(simulation, from), host(simulation, to));
    let (from_guid, to_guid) = (guid(simulation, from), guid(simulation, to));
    let transport = Transport::ReliableConnection;
    let expect =
        Command::Expect { flow, from: Some(from_guid), transport, work: Work::Stream, message_bytes: 65_536 };
    let open = Command::Open(FlowSpec {
        flow,
        to: Destination::One(to_guid),
        transport,
        work: Work::Stream,
        message_bytes: 65_536,
        packet_bytes,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    });
    assert!(simulation.command(to, expect) && simulation.command(from, open));
    flow
}

/// A reliable connection from one port to another that ends after some bytes.
pub(crate) fn flow_between(
    simulation: &mut Simulation,
    (from, to): (PortRef, PortRef),
    flow: u32,
    bytes: u64,
) {
    let flow = FlowId(flow);
    let (from_guid, to_guid) = (guid(simulation, from), guid(simulation, to));
    let (transport, work) = (Transport::ReliableConnection, Work::Stream);
    let expect = Command::Expect { flow, from: Some(from_guid), transport, work, message_bytes: 2048 };
    let open = Command::Open(FlowSpec {
        flow,
        to: Destination::One(to_guid),
        transport,
        work,
        message_bytes: 2048,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: Some(bytes),
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    });
    assert!(simulation.command(to, expect) && simulation.command(from, open));
}
