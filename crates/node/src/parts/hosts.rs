//! Hosts behind adapters' ports, and their numbers at the device.

use weft_device::ClientId;
use weft_host::stack::Stack;
use weft_wire::PortNum;

use crate::timers::TimerId;

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) stack: Stack,
    pub(crate) timer: TimerId,
    pub(crate) is_attached: bool,
}

/// The number that the host behind a port has at its device.
pub(crate) fn host_client(port: PortNum) -> ClientId {
    ClientId(ClientId::HOSTS + u16::from(port.0))
}

/// The port whose host a number is.
pub(crate) fn host_port(client: ClientId) -> Option<PortNum> {
    client.0.checked_sub(ClientId::HOSTS).and_then(|port| u8::try_from(port).ok()).map(PortNum)
}
