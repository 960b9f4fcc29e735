use serde::{Deserialize, Serialize};
use weft_routing::Partitions;
use weft_wire::{AddressedMad, Guid, PortNum};

use crate::Instruction;

/// What happens to the subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // Most inputs are MADs; boxing them would cost more than it saves.
pub enum Input {
    /// It can send and receive now: it sits behind this port. A heavy sweep begins.
    ///
    /// The attachment must deliver, besides answers: traps (class SubnLid, methods Trap and TrapRepress) and
    /// SMInfo requests (classes SubnLid and SubnDirected, methods Get and Set); see [`registrations`].
    ///
    /// [`registrations`]: crate::registrations
    Attached {
        /// The node's GUID.
        node_guid: Guid,
        /// The port's GUID.
        port_guid: Guid,
        /// The port's number.
        port: PortNum,
    },
    /// The attachment is gone. Everything in flight is lost; what is known is kept until it is attached again.
    Detached,
    /// A MAD arrived: an answer, a trap, or another manager's question.
    Receive(AddressedMad),
    /// The link of the port that it sits behind came up or went down. Who drives the attachment knows that without
    /// any packet. A switch's port 0 has no link.
    PortChanged {
        /// Whether there is a link now.
        up: bool,
    },
    /// The operator wants a sweep.
    Resweep {
        /// Discover everything again, rather than only look for changes.
        heavy: bool,
    },
    /// There are other partitions, which [`Options`](crate::Options) has had so far. [`Event::PartitionsTaken`] says when ports
    /// have their keys.
    ///
    /// [`Event::PartitionsTaken`]: crate::Event::PartitionsTaken
    Partitions(Partitions),
    /// The operator wants another manager commanded, which only the master can do. [`Event::Instructed`] says what
    /// became of it.
    ///
    /// [`Event::Instructed`]: crate::Event::Instructed
    Instruct {
        /// The port that the other manager is behind.
        guid: Guid,
        /// What it is to do.
        instruction: Instruction,
    },
}
