//! Events of an agent.

use weft_wire::{Lid, PortNum, TrapNumber, VirtualLane};

use crate::agent::{PortEnd, PortState};
use crate::fault::{Damage, FaultId};
use crate::tagged::tagged;
use crate::{HexGuid, Utc};

tagged! {
    /// What happened to an agent, its devices and its links. `guid` and `node` name a device.
    AgentEvent by "event" {
        /// A port became Active, or ceased to be.
        PortState = "port-state" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The state before.
            from: PortState,
            /// The state now.
            to: PortState,
        },
        /// The ends of a cable have no width or no speed in common.
        LinkMismatch = "link-mismatch" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
        },
        /// A port was given another LID, or a slot of virtual machines its first one.
        LidChanged = "lid-changed" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The LID before.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            from: Lid,
            /// The LID now.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            to: Lid,
        },
        /// A device sent a trap.
        TrapSent = "trap-sent" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The trap's number.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            trap: TrapNumber,
        },
        /// A trap was not answered, and is not sent again.
        TrapAbandoned = "trap-abandoned" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The trap's number.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            trap: TrapNumber,
        },
        /// A request showed another M_Key. The first is told, and every doubling.
        MKeyViolation = "m-key-violation" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// How many there have been.
            count: u64,
        },
        /// The other end of a cable sent more than its credit.
        CreditOverrun = "credit-overrun" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The lane.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            lane: VirtualLane,
        },
        /// A link came up.
        LinkUp = "link-up" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The other end.
            peer: Option<PortEnd>,
        },
        /// A link came up at a lower rate than this end can do.
        LinkDegraded = "link-degraded" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The other end.
            peer: Option<PortEnd>,
            /// The rate as it is, such as `1xHDR`.
            rate: String,
            /// The best rate that this end can do.
            supported: String,
        },
        /// A link went down.
        LinkDown = "link-down" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The other end.
            peer: Option<PortEnd>,
            /// Why, for people.
            reason: String,
        },
        /// A peer was refused. Of each peer and reason the first is told, and every doubling.
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
        },
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
        },
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
        },
        /// A cable was put into a port.
        CableConnected = "cable-connected" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The other end.
            peer: PortEnd,
        },
        /// A cable was taken out of a port.
        CableDisconnected = "cable-disconnected" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
            /// The port.
            #[cfg_attr(feature = "schema", schemars(with = "u8"))]
            port: PortNum,
            /// The other end.
            peer: PortEnd,
        },
        /// A program read too slowly and was sent away.
        SlowProgram = "slow-program" {
            /// Messages that were dropped.
            dropped: u64,
        },
        /// The agent's links changed; changes within some milliseconds are told as one.
        Links = "links" {
            /// Ends of cables here that have a link.
            up: u32,
            /// Ends of cables here.
            total: u32,
            /// Cables that the agent has to dial and that have no link yet.
            to_dial: u32,
        },
        /// A device was added to the agent.
        DeviceAdded = "device-added" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
        },
        /// A device was removed from the agent.
        DeviceRemoved = "device-removed" {
            /// The node.
            guid: HexGuid,
            /// Its description.
            node: String,
        },
    }
}
