//! Events of an agent.

use std::fmt;

use weft_vocabulary::told;
use weft_vocabulary::words::lower;
use weft_wire::{Lid, PKey, PortNum, Printable, ServiceLevel, TrapNumber, VirtualLane};

use crate::agent::{PortEnd, PortState};
use crate::fault::{Damage, FaultId};
use crate::{HexGuid, Utc};

told! {
    /// What happened to an agent, its devices and its links. `guid` and `node` name a device.
    AgentEvent by "event" {
        /// A port became Active, or ceased to be.
        PortState = "port-state" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The state before.
            from: PortState,
            /// The state now.
            to: PortState,
        } => ("{} to {}", lower(from), lower(to)),
        /// The ends of a cable have no width or no speed in common.
        LinkMismatch = "link-mismatch" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
        } => ("the ends of the cable have no width or speed in common"),
        /// A port was given another LID, or a slot of virtual machines its first one.
        LidChanged = "lid-changed" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The LID before.
            from: Lid,
            /// The LID now.
            to: Lid,
        } => ("LID {from} becomes {to}"),
        /// A device sent a trap.
        TrapSent = "trap-sent" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The trap's number.
            trap: TrapNumber,
        } => ("sends trap {trap}"),
        /// A trap was not answered, and is not sent again.
        TrapAbandoned = "trap-abandoned" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The trap's number.
            trap: TrapNumber,
        } => ("gives up trap {trap}: no answer"),
        /// A request showed another M_Key. The first is reported, and every doubling.
        MKeyViolation = "m-key-violation" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// How many there have been.
            count: u64,
        } => ("wrong M_Key, {count} so far"),
        /// The other end of a cable sent more than its credit.
        CreditOverrun = "credit-overrun" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The lane.
            lane: VirtualLane,
        } => ("the peer overran its credit on lane {lane}"),
        /// A link came up.
        LinkUp = "link-up" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The other end.
            peer: Option<PortEnd>,
        } => ("link up{}", Peer(peer)),
        /// A link came up at a lower rate than this end can do.
        LinkDegraded = "link-degraded" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The other end.
            peer: Option<PortEnd>,
            /// The rate as it is, such as `1xHDR`.
            rate: String,
            /// The best rate that this end can do.
            supported: String,
        } => ("link runs at {rate}, and could at {supported}{}", Peer(peer)),
        /// A link went down.
        LinkDown = "link-down" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The other end.
            peer: Option<PortEnd>,
            /// Why, for people.
            reason: String,
        } => ("link down ({}){}", Printable(reason), Peer(peer)),
        /// A peer was refused. Of each peer and reason the first is reported, and every doubling.
        PeerRefused = "peer-refused" {
            /// Its address.
            address: String,
            /// Why, for people.
            reason: String,
            /// How often.
            count: u64,
            /// The port that it is cabled to, where that is known.
            end: Option<PortEnd>,
            /// The description of that port's node.
            node: Option<String>,
        } => ("refused {}: {}, {count} so far", Printable(address), Printable(reason)),
        /// A fault began, or began again with the agent.
        FaultSet = "fault-set" {
            /// The fault.
            id: FaultId,
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// What is broken.
            damage: Damage,
            /// When it ends by itself.
            until: Option<Utc>,
        } => ("fault {id}: {damage}{}", until.map_or_else(String::new, |until| format!(" until {until}"))),
        /// A fault ended.
        FaultCleared = "fault-cleared" {
            /// The fault.
            id: FaultId,
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// What was broken.
            damage: Damage,
            /// Whether its time was over; else a client cleared it.
            expired: bool,
        } => ("fault {id} ended ({}): {damage}", if *expired { "its time is over" } else { "cleared" }),
        /// A cable was put into a port.
        CableConnected = "cable-connected" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The other end.
            peer: PortEnd,
        } => ("cable to {peer} put in"),
        /// A cable was taken out of a port.
        CableDisconnected = "cable-disconnected" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            port: PortNum,
            /// The other end.
            peer: PortEnd,
        } => ("cable to {peer} taken out"),
        /// A packet of a data lane was dropped. An agent tells of two in a second, and counts the others.
        PacketDropped = "packet-dropped" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port at which it arrived, or by which it was to leave.
            port: PortNum,
            /// Why, as the reasons of `account` are called.
            reason: String,
            /// From this LID.
            slid: Lid,
            /// To this one.
            dlid: Lid,
            /// On this service level.
            service_level: ServiceLevel,
            /// In the partition of this key; none of a raw packet.
            p_key: Option<PKey>,
            /// Drops of this agent before it that had no event.
            more: u64,
        } => ("dropped a packet from LID {slid} to {dlid} on SL {service_level} ({}){}", Printable(reason), before_it(*more)),
        /// A program read too slowly and was sent away.
        SlowProgram = "slow-program" {
            /// Messages that were dropped.
            dropped: u64,
        } => ("a program read too slowly and was sent away; {dropped} messages dropped"),
        /// The agent's links changed; changes within some milliseconds are reported as one.
        Links = "links" {
            /// Ends of cables here that have a link.
            up: u32,
            /// Ends of cables here.
            total: u32,
            /// Cables that the agent has to dial and that have no link yet.
            to_dial: u32,
        } => ("{up} of {total} links up, {to_dial} to dial"),
        /// A device was added to the agent.
        DeviceAdded = "device-added" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
        } => ("added"),
        /// A device was removed from the agent.
        DeviceRemoved = "device-removed" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
        } => ("removed"),
    }
}

/// Where something happened: a device, and the port where it is about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The device's NodeGUID.
    pub guid: HexGuid,
    /// Its description.
    pub node: &'a str,
    /// The port.
    pub port: Option<PortNum>,
}

impl AgentEvent {
    /// The device and the port that it is about.
    pub fn place(&self) -> Option<Place<'_>> {
        let (guid, node, port) = match self {
            Self::PortState { guid, node, port, .. }
            | Self::LinkMismatch { guid, node, port }
            | Self::LidChanged { guid, node, port, .. }
            | Self::MKeyViolation { guid, node, port, .. }
            | Self::CreditOverrun { guid, node, port, .. }
            | Self::LinkUp { guid, node, port, .. }
            | Self::LinkDegraded { guid, node, port, .. }
            | Self::LinkDown { guid, node, port, .. }
            | Self::PacketDropped { guid, node, port, .. }
            | Self::CableConnected { guid, node, port, .. }
            | Self::CableDisconnected { guid, node, port, .. } => (guid, node, Some(*port)),
            Self::FaultSet { guid, node, damage, .. } | Self::FaultCleared { guid, node, damage, .. } => {
                (guid, node, Some(damage.end().port))
            }
            Self::TrapSent { guid, node, .. }
            | Self::TrapAbandoned { guid, node, .. }
            | Self::DeviceAdded { guid, node }
            | Self::DeviceRemoved { guid, node } => (guid, node, None),
            Self::PeerRefused { end: Some(end), node: Some(node), .. } => (&end.node, node, Some(end.port)),
            Self::PeerRefused { .. } | Self::SlowProgram { .. } | Self::Links { .. } => return None,
        };
        Some(Place { guid: *guid, node, port })
    }
}

/// The other end of a link, where it is known.
struct Peer<'a>(&'a Option<PortEnd>);

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|peer| write!(f, ", peer {peer}"))
    }
}

/// Drops that had no event of their own.
fn before_it(more: u64) -> String {
    if more == 0 { String::new() } else { format!(", and {more} before it") }
}
