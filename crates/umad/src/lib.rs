//! Attaching a management program to a port of the fabric.
//!
//! An agent listens on a Unix stream socket. A management program (the subnet manager, `weft check`, a bench)
//! connects, names a port of one of the agent's devices, and from then on sends and receives MADs through that
//! port and no other way. Questions about the agent itself are for its control socket.
//!
//! ```text
//!   program ── Attach, Send ──────▶ agent        each message one frame:
//!           ◀─ Attached, Receive ──             u32 little-endian length, then bincode
//! ```
//!
//! [`Client`] is the blocking side. The agent's side is [`Decoder`] and [`encode_into`], which know no socket.
//!
//! Nothing read from a socket is trusted: frames have a largest length, and a frame that does not decode is an
//! error that ends that connection, never the process.

mod client;
mod codec;
mod message;
pub mod user_mad;

pub use client::{Client, ClientError};
pub use codec::{Decoder, FrameError, Message, encode_into};
pub use message::{Attached, ClientMessage, ServerMessage, VERSION};
