//! Reasons for which a node waits.

use weft_device::DeviceTimer;
use weft_host::mad::MadTimer;
use weft_host::stack::StackTimer;

use crate::{Client, DeviceId, PortId};

weft_wire::worded! {
    /// What a node waits for: which of its machines wants to be woken, and what for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NodeTimer {
        /// A device.
        Device(id: DeviceId, timer: DeviceTimer) => ("{id}: {timer}"),
        /// The host behind a port.
        Host(at: PortId, timer: StackTimer) => ("host of {at}: {timer}"),
        /// The MAD layer of an attached program.
        Layer(client: Client, timer: MadTimer) => ("program {} of {}: {timer}", client.number.0, client.device),
        /// A frame arrives over a long cable.
        Held => ("frame on a long cable"),
        /// A link that flaps goes, or comes back.
        Flap => ("link that flaps"),
    }
}
