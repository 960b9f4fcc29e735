//! Common ground of every manager that talks to a fabric: directed-route paths, request builders, and transactions with
//! a window, a timeout and retries.
//!
//! Nothing here does I/O or reads a clock. A manager offers requests, takes what may go onto the wire now, feeds
//! what came back, and asks for the requests that no one answered:
//!
//! ```text
//!            offer(key, mad)          poll_transmit(now)
//!  manager ─────────────────▶ queue ────────────────────▶ window (max_wire_smps) ──▶ the fabric
//!          ◀──────────────────────────────────────────────────────┘
//!   Completed{key, mad, rtt} from handle_response(now, mad) │ Failed{key, ..} from poll_failed(now)
//! ```
//!
//! ```
//! use weft_machine::Time;
//! use weft_mgmt::{DirectedPath, Limits, Request, SmpRoute, Transactions};
//! use weft_wire::{AttributeId, Method};
//!
//! let mut transactions = Transactions::new(Limits::default());
//! let route = SmpRoute::Directed(DirectedPath::HERE);
//! transactions.offer("who am I", Request::get(AttributeId::NodeInfo, 0).by(&route)).unwrap();
//! let mut sent = transactions.poll_transmit(Time::ZERO).unwrap();
//! weft_wire::Smp::method.set(&mut sent.mad.0, Method::GetResp);
//! let done = transactions.handle_response(Time::from_micros(90), &sent).unwrap();
//! assert_eq!((done.key, done.rtt), ("who am I", Time::from_micros(90)));
//! ```

mod pace;
mod path;
mod request;
pub mod rmpp;
mod stats;
mod tables;
mod timers;
mod transactions;
mod window;

pub use path::{DirectedPath, PathError};
pub use request::{Request, SmpRoute, congestion, own_port, perf, subnet_administration};
pub use stats::{Rtt, Stats};
pub use tables::{component_mask, records};
pub use timers::{RequestTimer, TransferTimer};
pub use transactions::{Completed, Failed, Limits, Refused, Transactions};
pub use window::{BadWindow, WINDOW_MAX, Window, WindowReason, WindowState};
