//! What a process counts, for Prometheus: a [`Page`] of metrics in the text format, and the HTTP server that shows it.
//!
//! Whoever exports makes its page anew for each scrape from what it has counted anyway, so that nothing is counted
//! twice and nothing is counted while nobody asks. [`serve`] is for a process with a runtime of its own; a driver that
//! waits with poll(2) has a [`Desk`], behind which a thread serves.
//!
//! ```text
//!   Prometheus ── GET /metrics ──▶ serve ── ask ──▶ Desk (driver's loop)
//!              ◀── text ── Page ◀── render ◀── answer ──┘
//! ```

mod connection;
mod desk;
mod page;
mod server;

pub use desk::{Desk, open_desk};
pub use page::{Family, Page};
pub use server::{CONNECTION_TIME_MAX, CONNECTIONS_MAX, NoAnswer, serve};
