//! An agent's content, as one machine: devices, the hosts and MAD layers on them, and the cables between them.
//!
//! ```text
//!                       ┌──────────────────────── Node ───────────────────────┐
//!   Arrived, LinkUp ───▶│ device ◀──cable──▶ device ◀──cable──▶ device        │───▶ Transmit, SetLink
//!   Send, Attach ──────▶│   ▲ ▲                ▲                  ▲           │───▶ Deliver, Answer
//!   Command ───────────▶│ stack MAD layer    stack              stack         │───▶ Event
//!                       └─────────────────────────────────────────────────────┘
//! ```
//!
//! A [`Node`] is fed one [`Input`] and drained of [`Output`]s, like every machine. Devices, hosts, programs and cables
//! come and go by [`Request`]s while it runs; each has a name that is never given twice, and each request has one
//! answer with the id that the driver chose.
//!
//! **One drain order.** What an input causes is done in this order: the outputs of the device that it went to; what its
//! hosts gave it meanwhile; what it has for its hosts, one by one with all that follows; then, one at a time with all that
//! follows, the timers that were due when the node was woken, what hosts have yet to hear, and the frames on cables between
//! the node's ports. No device is fed while its outputs are taken. A drain is bounded ([`NodeOptions::steps_max`]): when
//! [`Node::is_unfinished`] says so, the driver feeds [`Input::Continue`], which is an input like others and is recorded;
//! any other input goes on with the rest too. So the same inputs at the same times give the same
//! outputs, whichever driver gave them.

mod cables;
mod clients;
mod degraded;
mod desk;
mod devices;
mod drain;
mod held;
mod hosts;
mod id;
mod impair;
mod impaired;
mod input;
mod new_device;
mod node;
mod output;
mod parts;
mod reason;
pub mod recording;
mod requests;
mod slots;
mod timers;
mod topology;
mod vms;

pub use desk::Desk;
pub use id::{Client, DeviceId, PortId, RequestId};
pub use impair::ImpairmentCounts;
pub use input::{Input, Message, Request};
pub use new_device::NewDevice;
pub use node::{Node, NodeOptions, Taker};
pub use output::{Answer, LinkLoss, Output, Reading, Refusal, ToHost};
pub use reason::NodeTimer;
pub use topology::device_config;
pub use vms::{SlotState, SlotStatus, VM_NAME_BYTES_MAX, VmCommand, VmDone, VmIdentity, VmRefusal, VmStep};
pub use weft_device::Frame;
