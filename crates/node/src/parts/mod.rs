//! The parts of a node beside its devices and cables, as they are kept; the files of the same names say what the node does with them.

mod clients;
mod degraded;
mod hosts;
mod impaired;

pub(crate) use clients::{Attachment, Clients, Layer};
pub(crate) use degraded::{Active, DegradedPorts};
pub(crate) use hosts::{Host, host_client, host_port};
pub(crate) use impaired::{ImpairedPort, ImpairedPorts};
