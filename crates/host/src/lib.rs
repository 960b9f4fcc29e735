//! The InfiniBand software of a host.
//!
//! [`mad::MadLayer`] is what stands between a management program and a port: what a kernel's MAD layer does for one
//! open port. Like everything above the line it is a machine: no sockets, no clock, no threads.

pub mod mad;
