//! A device that is to be added to a node.

use serde::{Deserialize, Serialize};
use weft_device::DeviceConfig;
use weft_host::stack::StackOptions;
use weft_wire::PortNum;

/// A device to be switched on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewDevice {
    /// What it is like.
    pub config: DeviceConfig,
    /// A number that the device did not have lately ([`Device::with_incarnation`](weft_device::Device::with_incarnation)).
    pub incarnation: u64,
    /// The ports behind which there is a host.
    pub hosts: Vec<PortNum>,
    /// What those hosts are like.
    pub stack: Option<StackOptions>,
}
