//! Virtual machines and their flows, and moves that a subnet manager is asked for.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;

use weft_host::traffic::{
    Command, Destination, FlowId, FlowReport, FlowSpec, MoveBy, PathSource, Transport, Work,
};
use weft_sim::{Refusal, SaAnswer, Simulation, VmCommand, VmDone, VmIdentity, VmStep};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

/// The laboratory's own SA key.
pub(crate) const KEY: SmKey = SmKey(0x77);

/// The identity of a virtual machine.
pub(crate) fn identity(number: u64) -> VmIdentity {
    VmIdentity {
        guid: Guid(0x0011_0000_0000_0000 | number),
        port_guid: Guid(0x0022_0000_0000_0000 | number),
        description: format!("vm{number}"),
        p_keys: Vec::new(),
        rate_mbps: 0,
        weight: 1,
    }
}

/// The port of an adapter, or of a function.
pub(crate) fn port(node: NodeIndex) -> PortRef {
    PortRef::new(node, PortNum(1))
}

/// A step of the virtual machine `web`.
pub(crate) fn step(
    simulation: &mut Simulation,
    at: NodeIndex,
    epoch: u64,
    step: VmStep,
) -> Result<VmDone, Refusal> {
    simulation.vm(at, VmCommand { vm: "web".to_owned(), epoch, step })
}

/// A stream over a reliable connection to a port, as fast as the link and without end.
pub(crate) fn stream(number: u32, to: Guid) -> FlowSpec {
    FlowSpec {
        flow: FlowId(number),
        to: Destination::One(to),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 65_536,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    }
}

/// Opens both ends of a flow.
#[track_caller]
pub(crate) fn open(simulation: &mut Simulation, from: PortRef, to: PortRef, spec: FlowSpec) {
    let FlowSpec { flow, transport, work, message_bytes, .. } = spec.clone();
    let expect = Command::Expect { flow, from: None, transport, work, message_bytes };
    assert!(simulation.command(to, expect) && simulation.command(from, Command::Open(spec)));
}

/// What one end of a flow reports.
#[track_caller]
pub(crate) fn report(simulation: &Simulation, at: PortRef, flow: u32, sender: bool) -> FlowReport {
    let reports = simulation.stack(at).unwrap().reports();
    reports.into_iter().find(|report| report.flow == FlowId(flow) && report.sender == sender).unwrap()
}

/// Asks the subnet manager for a move, from a node: the answer's status, and the answer.
pub(crate) fn ask_move(simulation: &mut Simulation, from: NodeIndex, ask: &VmMove) -> Option<(u16, VmMove)> {
    let mut mad = Mad::default();
    SaMad::method.set(&mut mad.0, Method::Set);
    SaMad::attribute_id.set(&mut mad.0, sa_attribute::VM_MOVE);
    SaMad::sm_key.set(&mut mad.0, KEY);
    SaMad::data.set(&mut mad.0, ask.encode());
    let SaAnswer { head, records } = simulation.ask_sa(from, &mad)?;
    Some((head.status(), VmMove::from_bytes(&records)))
}

/// How many blocks each switch has been written.
pub(crate) fn writes(simulation: &Simulation) -> BTreeMap<NodeIndex, u64> {
    let of = |node: NodeIndex| simulation.device(node).map_or(0, |device| device.statistics().lft_writes);
    simulation.fabric().switches().map(|(node, _)| (node, of(node))).collect()
}
