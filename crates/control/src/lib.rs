//! A laboratory's API: typed requests, answers and events, as JSON lines over any stream.
//!
//! ```text
//!   client ── {"v":1,"id":7,"request":{"type":"sm-status"}} ──▶ process
//!          ◀─ {"v":1,"id":7,"answer":{"type":"sm-status", …}} ─
//!          ── {"v":1,"id":8,"request":{"type":"events"}} ──▶
//!          ◀─ {"v":1,"id":8,"answer":{"type":"subscribed", …}} ─
//!          ◀─ {"v":1,"id":8,"event":{"area":"sm","event":"subnet-up", …}} ─  and so on
//! ```
//!
//! This crate is sans-IO: it knows lines and their meaning, no sockets, no files and no clock. [`LineDecoder`] cuts a
//! stream into lines of bounded length, [`RequestLine::parse`] tells a request from everything else a client may send,
//! and [`ReplyLine`] is what goes back. [`Role`] says which requests a client may make. [`report`] has the JSON that verbs print. The published
//! schemas (`docs/control.schema.json`, `docs/schemas`) and the tables of `docs/control.md` come from these types (feature `schema`).
//!
//! ```
//! use weft_control::{Request, RequestLine};
//!
//! let line = RequestLine { id: 7, request: Request::SmStatus }.to_line();
//! assert_eq!(line, "{\"v\":1,\"id\":7,\"request\":{\"type\":\"sm-status\"}}\n");
//! assert_eq!(RequestLine::parse(line.trim_end().as_bytes()).unwrap().request, Request::SmStatus);
//! ```

pub mod agent;
mod answer;
mod error;
pub mod event;
pub mod fault;
pub mod flow;
mod hex;
pub mod hub;
mod line;
mod message;
mod p_keys;
mod page;
pub mod pm;
pub mod process;
#[cfg(feature = "schema")]
pub mod published;
pub mod report;
mod request;
mod role;
#[cfg(feature = "schema")]
pub mod schema;
pub mod sm;
pub mod traffic;
mod utc;
pub mod vm;
pub mod vmm;

pub use answer::Answer;
pub use error::{Error, ErrorCode};
pub use event::{Event, EventKind};
pub use hex::HexBytes;
pub use line::{LineDecoder, LineError};
pub use message::{BadRequest, ReplyBody, ReplyLine, RequestLine};
pub use p_keys::{KeyBlock, PartitionsTaken, p_keys_missing};
pub use page::{NamePage, Page, PastPlace};
pub use request::{EventFilter, Request, Since};
pub use role::Role;
pub use utc::{Incarnation, InvalidTime, Utc};
pub use weft_vocabulary::HexGuid;
pub use weft_vocabulary::routing::PlannedRoutes;

/// The version of the protocol. It changes when a line of this version would be misread by the version before.
pub const VERSION: u32 = 1;

/// The longest request, in bytes without its line end.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// The longest answer or event, in bytes without its line end.
pub const REPLY_BYTES_MAX: usize = 16 << 20;

/// The most items in one answer that lists things; a client asks for the next page behind the last item.
pub const PAGE_ITEMS_MAX: u32 = 4096;
