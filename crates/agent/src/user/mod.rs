//! Programs of libibumad: the kernel's ib_umad, as far as it has sockets.
//!
//! ```text
//!   line.rs    a connection: datagrams in, and a bounded queue of them out
//!   serve.rs   accepts connections and reads them
//!   ports.rs   open ports: one MAD layer each, between connection and device
//!   far.rs     connections of programs that run elsewhere
//!   facts.rs   what a program is told of adapters and ports
//!   issm.rs    the file that makes a subnet manager of whoever holds it open
//! ```

mod facts;
mod far;
mod issm;
mod line;
mod ports;
mod serve;

pub(crate) use facts::ca_attributes;
pub(crate) use far::converse;
pub(crate) use issm::IssmFiles;
pub(crate) use line::Line;
pub(crate) use ports::{Lines, errno};
pub(crate) use serve::{accept, listen};
