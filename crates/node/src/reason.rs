//! Reasons for which a node waits.

use std::fmt;

use weft_device::DeviceTimer;
use weft_host::mad::MadTimer;
use weft_host::stack::StackTimer;

use crate::{Client, DeviceId, PortId};

/// What a node waits for: which of its machines wants to be woken, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeTimer {
    /// A device.
    Device(DeviceId, DeviceTimer),
    /// The host behind a port.
    Host(PortId, StackTimer),
    /// The MAD layer of an attached program.
    Layer(Client, MadTimer),
    /// A frame arrives over a long cable.
    Held,
    /// A link that flaps goes, or comes back.
    Flap,
}

impl fmt::Display for NodeTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(id, timer) => write!(f, "{id}: {timer}"),
            Self::Host(at, timer) => write!(f, "host of {at}: {timer}"),
            Self::Layer(Client { device, number }, timer) => {
                write!(f, "program {} of {device}: {timer}", number.0)
            }
            Self::Held => f.write_str("frame on a long cable"),
            Self::Flap => f.write_str("link that flaps"),
        }
    }
}
