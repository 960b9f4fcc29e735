//! The InfiniBand software of a host.
//!
//! * [`mad::MadLayer`] is what stands between a management program and a port: what a kernel's MAD layer does for one
//!   open port.
//! * [`stack::Stack`] is a host that uses the fabric: path records and subscriptions, queue pairs and flows.
//!
//! Like everything above the line both are machines: no sockets, no clock, no threads.

pub mod mad;
pub mod stack;

pub use weft_vocabulary::traffic;
