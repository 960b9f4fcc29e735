//! What a program and an agent say to each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_host::traffic::{Command, FlowReport};
use weft_wire::{
    AddressedMad, Guid, Lid, NodeType, PhysState, PortNum, PortState, Registration, VirtualLane,
};

use crate::Message;
use crate::capture::{CaptureTotals, Captured, Tap};

/// What a program sends to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// Attaches this connection to a port; at most once per connection.
    Attach {
        /// The node the port belongs to.
        node: Guid,
        /// The port; 0 is a switch's management port.
        port: PortNum,
        /// Which MADs that nobody asked for should come here.
        registrations: Vec<Registration>,
    },
    /// Sends a MAD through the port. Only after [`ServerMessage::Attached`].
    Send(AddressedMad),
    /// A question to the agent itself; needs no attachment.
    Control {
        /// Chosen by the program and repeated in the reply.
        request: u32,
        /// What is asked.
        body: ControlRequest,
    },
}

/// What an agent sends to a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The attachment stands.
    Attached(Attached),
    /// A MAD arrived for this attachment.
    Receive(AddressedMad),
    /// The agent will not do what was asked, and closes the connection.
    Refused {
        /// Why, for a human.
        reason: String,
    },
    /// A packet crossed a cable that this connection captures ([`ControlRequest::Capture`]).
    Captured(Captured),
    /// The answer to a [`ClientMessage::Control`].
    Reply {
        /// The number of the question.
        request: u32,
        /// The answer.
        body: ControlReply,
    },
    /// The link of the HCA port that this connection is attached to came up or went down.
    PortChanged {
        /// Whether there is a link now.
        up: bool,
    },
}

impl Message for ClientMessage {
    const FRAME_BYTES_MAX: usize = 64 * 1024;
}

impl Message for ServerMessage {
    const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
}

/// The port a connection is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The number of the attachment within its device.
    pub client: u16,
    /// The node.
    pub node: Guid,
    /// The GUID of the port.
    pub port_guid: Guid,
    /// The port.
    pub port: PortNum,
}

/// A question to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlRequest {
    /// Who are you, and which devices do you run?
    Status,
    /// The state and counters of every port of every device.
    Ports,
    /// Plugs or unplugs this end of a cable.
    SetCable {
        /// The node at this end.
        node: Guid,
        /// The port at this end.
        port: PortNum,
        /// Whether the cable is to be plugged in.
        up: bool,
    },
    /// From now on, tell this connection of the packets that cross cables here ([`ServerMessage::Captured`]). At most
    /// once per connection; it ends with [`ControlRequest::EndCapture`] or with the connection.
    Capture(Tap),
    /// Tell no more packets, and answer behind the last one.
    EndCapture,
    /// Tell the host behind an adapter's port to do something.
    Host {
        /// The adapter.
        node: Guid,
        /// Its port.
        port: PortNum,
        /// What to do.
        command: Command,
    },
    /// What became of the flows of every host.
    Flows,
    /// What became of the packets of the data lanes, device by device.
    Account,
    /// Begin anew to measure how late the agent is ([`AgentStatus::lateness`]).
    ResetLateness,
    /// Stop in order.
    Shutdown,
}

/// An agent's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlReply {
    /// The answer to [`ControlRequest::Status`].
    Status(AgentStatus),
    /// The answer to [`ControlRequest::Ports`], in order of node and port.
    Ports(Vec<PortStatus>),
    /// The answer to [`ControlRequest::EndCapture`].
    CaptureEnded(CaptureTotals),
    /// The answer to [`ControlRequest::Flows`], in order of node and port.
    Flows(Vec<HostFlows>),
    /// The answer to [`ControlRequest::Account`], in order of node.
    Account(Vec<DeviceAccount>),
    /// Done, nothing to tell.
    Done,
    /// Not done.
    Failed {
        /// Why, for a human.
        reason: String,
    },
}

/// What an agent tells of the flows of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFlows {
    /// The adapter's port.
    pub end: PortEnd,
    /// The agent's clock, in nanoseconds: the one that the times in the reports are of.
    pub now_ns: u64,
    /// Its flows.
    pub flows: Vec<FlowReport>,
}

/// The account of a device's data lanes since the device was switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceAccount {
    /// The node.
    pub node: Guid,
    /// Whether on every lane what came in is what went out, is held, or was dropped; no buffer is over its size; and no
    /// port has promised more than it has room for.
    pub sound: bool,
    /// The lanes that anything ever was on. 15 stands for packets whose service level has no lane.
    pub lanes: Vec<LaneAccount>,
}

/// Packets on one data lane of a device. One that a switch moves to another lane is counted on the lane it is on.
///
/// Over a whole fabric what the devices transmitted is what they received, except for what was on a cable when its link
/// went down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneAccount {
    /// The lane.
    pub lane: VirtualLane,
    /// Came in over a cable.
    pub received: u64,
    /// Came from the host, from an attached program or from the device itself.
    pub injected: u64,
    /// Came from another lane of the device.
    pub moved_in: u64,
    /// Went to another lane of the device.
    pub moved_out: u64,
    /// Went out into a cable.
    pub transmitted: u64,
    /// Given to the host.
    pub to_host: u64,
    /// Given to the device's own agents and to attached programs.
    pub to_own: u64,
    /// Dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// In the device's buffers now.
    pub held: u64,
}

/// What an agent tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The agent's name in the laboratory.
    pub agent: String,
    /// Its process, as itself sees it.
    pub pid: u32,
    /// The version of weft it runs.
    pub version: String,
    /// Its devices, in order of GUID.
    pub devices: Vec<DeviceStatus>,
    /// What happened to the agent, counted since it began. What it refused or dropped is listed from the start,
    /// other events once they have happened.
    pub counts: BTreeMap<String, u64>,
    /// How late it does what its devices and hosts want done at a moment, since it began or since
    /// [`ControlRequest::ResetLateness`].
    pub lateness: Lateness,
}

/// How late deadlines were met. A stall counts once for each millisecond of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// How many there were.
    pub count: u64,
    /// Half of them were not later, in nanoseconds; at most an eighth too much.
    pub p50_ns: u64,
    /// 99 of 100 were not later.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

/// What an agent tells of one of its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// The node's GUID.
    pub node: Guid,
    /// The node's description.
    pub description: String,
    /// What it is.
    pub node_type: NodeType,
    /// External ports.
    pub ports: u8,
    /// How many of its cables have a link.
    pub links_up: u32,
    /// How many of its ports have a cable.
    pub links_total: u32,
    /// How many programs are attached to it.
    pub clients: u32,
    /// Sets of linear forwarding table blocks that it has carried out.
    pub lft_writes: u64,
}

/// One end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortEnd {
    /// The node.
    pub node: Guid,
    /// Its port.
    pub port: PortNum,
}

/// What an agent tells of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// The port itself.
    pub end: PortEnd,
    /// The port at the other end of the cable, if one is cabled.
    pub peer: Option<PortEnd>,
    /// Its logical state.
    pub state: PortState,
    /// Its physical state.
    pub phys_state: PhysState,
    /// Whether the link to the peer's agent stands.
    pub link_up: bool,
    /// Whether this end of the cable is plugged in ([`ControlRequest::SetCable`]).
    pub plugged: bool,
    /// The port's base LID; 0 as long as it has none.
    pub lid: Lid,
    /// LinkWidthActive, as in PortInfo.
    pub width_active: u8,
    /// LinkSpeedActive.
    pub speed_active: u8,
    /// LinkSpeedExtActive.
    pub speed_ext_active: u8,
    /// What the port counted.
    pub totals: PortTotals,
}

/// A port's counters, in the units of PortCountersExtended (IBA 16.1.4.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTotals {
    /// Packets sent.
    pub xmit_packets: u64,
    /// Four-byte words sent.
    pub xmit_words: u64,
    /// Packets received.
    pub rcv_packets: u64,
    /// Four-byte words received.
    pub rcv_words: u64,
    /// Of those sent, the ones to one receiver.
    pub unicast_xmit_packets: u64,
    /// Of those received, the ones to one receiver.
    pub unicast_rcv_packets: u64,
    /// Of those sent, the ones to many receivers.
    pub multicast_xmit_packets: u64,
    /// Of those received, the ones to many receivers.
    pub multicast_rcv_packets: u64,
    /// Minor link errors.
    pub symbol_errors: u64,
    /// How often the link recovered by re-training.
    pub link_error_recovery: u64,
    /// How often the link went down.
    pub link_downed: u64,
    /// Packets that arrived damaged.
    pub rcv_errors: u64,
    /// Packets that arrived marked as bad.
    pub rcv_remote_physical_errors: u64,
    /// Packets that could not be forwarded.
    pub rcv_switch_relay_errors: u64,
    /// Packets that could not be sent.
    pub xmit_discards: u64,
    /// Packets not sent because of a constraint.
    pub xmit_constraint_errors: u64,
    /// Packets not accepted because of a constraint.
    pub rcv_constraint_errors: u64,
    /// How often local errors passed their threshold.
    pub local_link_integrity_errors: u64,
    /// How often overruns passed their threshold.
    pub excessive_buffer_overrun_errors: u64,
    /// VL 15 packets for which there was no buffer.
    pub vl15_dropped: u64,
    /// Ticks of 4 ns that data waited without being sent.
    pub xmit_wait: u64,
    /// Peers refused because certificate or hello did not match the cabling.
    pub peers_refused: u64,
}
