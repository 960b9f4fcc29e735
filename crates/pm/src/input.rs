use serde::{Deserialize, Serialize};
use weft_wire::{AddressedMad, Guid, PortNum};

/// What happens to the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // Most inputs are MADs; boxing them would cost more than it saves.
pub enum Input {
    /// It is attached to a port: it can send and receive from now on.
    Attached {
        /// The node.
        node_guid: Guid,
        /// The port's GUID.
        port_guid: Guid,
        /// The port; 0 on a switch.
        port: PortNum,
    },
    /// It is attached no more. What is known is kept until it is attached again.
    Detached,
    /// A MAD for it.
    Receive(AddressedMad),
    /// The own port's link came up or went down. A switch's port 0 has no link.
    PortChanged {
        /// Whether there is a link now.
        up: bool,
    },
    /// The operator wants the fabric asked for again.
    Refresh,
    /// The manager is to end: every host that was asked to move is asked to move back, and no one is asked to move any
    /// more. [`Snapshot::moves`] tells when nothing is left to be done.
    ///
    /// [`Snapshot::moves`]: crate::Snapshot::moves
    Withdraw,
}
