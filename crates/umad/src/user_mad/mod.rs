//! Messages of libibumad's stand-in to an agent: the kernel's ib_umad, over a SEQPACKET Unix socket.
//!
//! Beside the stream socket of weft's own programs an agent listens on a second one ([`socket_path`]). Each
//! datagram is one message, so a message is sent and taken as a whole whichever thread or process does it.
//!
//! ```text
//!   open port:  program ── Open ──────────────▶ agent     one connection per umad_open_port
//!                       ◀──────────────── Done ─
//!                       ── MAD, MAD … ────────▶           umad_send
//!                       ◀──────── MAD, MAD … ──           umad_recv
//!   control:    program ── Register, Ca, Port … ▶ agent   a connection of its own, one answer per question
//!                       ◀─ Registered, … ──────
//! ```
//!
//! A datagram begins with an eight-byte preamble. A MAD follows it as the kernel's 64-byte `struct ib_user_mad`
//! ([`UserMad`]) and its first [`MAD_SIZE`](weft_wire::MAD_SIZE) bytes; what is longer, which only RMPP makes,
//! travels complete in a sealed memory file beside it ([`Datagram`]).
//!
//! An open port is named in control messages by a [`Token`] of the program's making, so that the stand-in keeps no
//! table. Nothing read from a socket is trusted: what does not decode is an error that ends that connection.

mod control;
mod datagram;
mod header;
mod preamble;
mod question;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use control::{AgentRegistration, CaAttributes, PortAttributes, Reply, Request, Token};
pub use datagram::{Datagram, FromClient, Incoming, decode_client, flatten, read_file, receive, unflatten};
pub use header::{UserMad, UserMadAddress};
pub use preamble::{Malformed, Preamble};
pub use question::{REPLY_BYTES_MAX, connect, listen, open, question};

/// The longest data of one MAD after its header, RMPP reassembled: a table of 65 535 PathRecords fits in.
pub const DATA_BYTES_MAX: usize = 16 << 20;

/// The longest datagram that a client may send.
pub const REQUEST_BYTES_MAX: usize = 512;

/// The socket of libibumad's stand-in, beside that of weft's own programs.
pub fn socket_path(attach_socket: &Path) -> PathBuf {
    let mut path = OsString::from(attach_socket);
    path.push(".umad");
    path.into()
}
