//! Names of what a node holds. A number is never given twice by the same node.

use serde::{Deserialize, Serialize};
use weft_device::ClientId;
use weft_wire::PortNum;

/// A device of the node, from the moment it is added until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(pub u32);

/// A port of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortId {
    /// The device.
    pub device: DeviceId,
    /// Its port; 0 is a switch's management port.
    pub port: PortNum,
}

/// A program attached to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Client {
    /// The device.
    pub device: DeviceId,
    /// The program's number there.
    pub number: ClientId,
}

/// Chosen by whoever asks, and repeated in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

impl PortId {
    /// Names a port.
    pub const fn new(device: DeviceId, port: PortNum) -> Self {
        Self { device, port }
    }
}

weft_wire::displayed!(DeviceId(number) => "device {number}");

weft_wire::displayed!(PortId { port, device } => "port {port} of {device}");
