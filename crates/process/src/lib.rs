//! The common part of every weft process: a log, events, an identity, a lock, a registry of metrics, an orderly stop, and its end of the
//! control protocol.
//!
//! ```text
//!   clients ── lines ──▶ Server ── requests ──▶ Service (the process's own part)
//!           ◀─ lines ──    │  └── events ◀───── EventLog ◀── publish ── machine's driver
//!   Prometheus ─ HTTP ─▶ /metrics, /healthz (only with --metrics)
//! ```
//!
//! A process with a tokio runtime of its own (an agent) serves in it: [`Server::serve`] takes any listener's streams,
//! [`Server::converse`] any stream with a role. A driver that waits with poll(2) (the managers) has a [`Desk`]: a
//! thread serves, takes the signals, and rings when something is for the driver.
//!
//! [`Client`] is the blocking side, for verbs.

mod client;
mod clock;
mod counts;
mod crowd;
mod desk;
pub mod early;
mod events;
mod files;
mod holdings;
mod identity;
mod limits;
pub mod lock;
pub mod log;
mod poll;
mod server;
mod service;
mod socket;
mod watch;

pub use client::{Client, ClientError, all_pages, unexpected};
pub use clock::{CLOCK_OFFSET, Clock, utc_now};
pub use counts::{Counts, DoorCounts};
pub use crowd::{Crowd, Crowded, Requester, Seat};
pub use desk::{Call, Desk, DeskOptions, Manned, open_desk};
pub use events::{
    Batch, EVENT_BYTES_MAX, EVENTS_MAX, EventLog, MERGED_BYTES_MAX, MERGED_EVENTS_MAX, Origin, Reader,
};
pub use files::{FailingFiles, Files, SystemFiles, replace, replace_on, rewrite};
pub use holdings::Holdings;
pub use identity::{identity, started};
pub use limits::{CLIENTS_MAX, CLIENTS_OF_ONE_MAX};
pub use poll::{poll_for, raise_file_limit, readable};
pub use server::{Server, WRITE_PATIENCE};
pub use service::{Capture, NoCapture, Papers, Service, not_here};
pub use socket::{Socket, bind, is_welcome, next_client};
pub use watch::{Change, changes};
