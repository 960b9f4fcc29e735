//! Attaching a management program to a port of the fabric.
//!
//! An agent listens on a Unix stream socket. A management program (the subnet manager, `weft check`, a bench)
//! connects, names a port of one of the agent's devices, and from then on sends and receives MADs through that
//! port and no other way. The same socket answers the laboratory's questions about the agent.
//!
//! ```text
//!   program ── Attach, Send, Control ──▶ agent        each message one frame:
//!           ◀─ Attached, Receive, Reply ─             u32 little-endian length, then bincode
//! ```
//!
//! [`Client`] is the blocking side. The agent's side is [`Decoder`] and [`encode_into`], which know no socket.
//! [`launch`] is what agents and the subnet manager tell the launcher while a laboratory comes up, and [`lock`] is
//! how a laboratory knows which processes are its own.
//!
//! [`ibsim`] is the other protocol of attachment: that of ibsim, for programs under its stock library.
//!
//! Nothing read from a socket is trusted: frames have a largest length, and a frame that does not decode is an
//! error that ends that connection, never the process.

mod capture;
mod client;
mod codec;
pub mod ibsim;
pub mod launch;
pub mod lock;
mod message;
pub mod user_mad;

pub use capture::{CaptureTotals, Captured, Tap, TappedPort};
pub use client::{Client, ClientError};
pub use codec::{Decoder, FrameError, Message, encode_into};
pub use message::{
    AgentStatus, Attached, ClientMessage, ControlReply, ControlRequest, DeviceAccount, DeviceStatus,
    HostFlows, LaneAccount, Lateness, PortEnd, PortStatus, PortTotals, ServerMessage,
};
