//! The MAD layer of one open port: registrations, answers by transaction id, timeouts and retries, RMPP both ways.
//!
//! One [`MadLayer`] stands for one open port of one program (one open `umad` file), and the driver attaches it to the
//! device as one client. It behaves as Linux' `ib_umad` over `ib_mad` does, so that programs written for it find what
//! they expect:
//!
//! ```text
//!   program                         MadLayer                             device attachment
//!     │ Register{request, ..} ────────▶│ Claim{agent, registration} ───────────▶│ (only if it has methods)
//!     │                                │◀──────────────── Claimed{agent, outcome}│
//!     │◀── Registered{request, agent}  │                                        │
//!     │    or Refused{request, reason} │                                        │
//!     │ Send{agent, ..} ──────────────▶│ Transmit(mad), again after a timeout ─▶│
//!     │    or SendRefused{agent, ..}   │                                        │
//!     │    and Deliver{agent, status}  │    to a program that waits for an answer
//!     │◀── Deliver{agent, status: 0}   │◀────────────────────────── Receive(mad)│
//!     │◀── Deliver{agent, status: 110} │    when no one answered                │
//!     │ Unregister{agent} ────────────▶│ Release{agent} ───────────────────────▶│
//! ```
//!
//! * **Registrations.** At most [`Limits::agents`] (32) per port; the lowest free number is given. What a registration
//!   may be is checked here ([`RegisterError`]); whether another has its methods already, the device says, who knows
//!   them all: [`Output::Claim`] asks and [`Input::Claimed`] answers, before anything else is fed if the driver can.
//!   A registration without methods claims nothing and stands at once.
//! * **Transaction ids.** In a request the upper half of the transaction id is the layer's: it is overwritten by a
//!   number of the registration's own, never 0 and below 65536, and comes back so in the answer and in a timed-out
//!   send. The device uses the 16 bits above it. In an answer that a program sends nothing is changed.
//! * **Sends** with `timeout_ms` 0 expect no answer and are forgotten at once, except RMPP messages, whose
//!   acknowledgements are awaited. Otherwise the send is repeated `retries` times, each time after `timeout_ms`
//!   milliseconds; then [`Output::Deliver`] returns its first 24 bytes with [`TIMED_OUT`]. An answer to nothing (late,
//!   or the second one) is dropped and counted; the sender of a long one gets an Abort.
//!   While an answer comes in by RMPP the request does not time out. A message that could not be transferred comes
//!   back with [`TIMED_OUT`] too; one to which no answer is expected only if no one acknowledged it.
//! * **What no one asked for** goes to the registration whose class, version, vendor and methods cover it, with the
//!   transaction id as it came.
//! * **RMPP** (IBA 13.6) is the layer's when the registration has `rmpp_version` 1, the class has an RMPP header and
//!   the message's header says that it is active Data: [`Input::Send`] takes the headers of one MAD followed by data of any
//!   length, and [`Output::Deliver`] gives the same. With `rmpp_version` 0 every segment is a MAD like others.
//! * **Bounds**: sends outstanding, messages being received, their bytes; see [`Limits`] and [`Stats`]. The driver
//!   drains the outputs after each input; what waits for a program that does not read is the driver's to bound.
//!
//! The driver calls [`weft_machine::Machine::handle_timeout`] when [`weft_machine::Machine::poll_timeout`] says so.

mod agents;
mod layer;
mod sends;
mod timers;
mod types;

pub use layer::MadLayer;
pub use timers::MadTimer;
pub use types::{
    Address, AgentId, AgentRequest, Input, Limits, Output, RegisterError, SendError, Stats, TIMED_OUT,
};
