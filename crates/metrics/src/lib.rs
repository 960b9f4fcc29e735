//! What a process counts, for Prometheus, and the HTTP server that shows it.
//!
//! A process keeps what it counts itself in a [`prometheus::Registry`] of its own, never in the global one. What its
//! machines have counted anyway becomes a [`Page`] on demand, so that nothing is counted twice and nothing is counted
//! while nobody asks.
//!
//! ```text
//!   Prometheus ── GET /metrics ──▶ serve ── page ──▶ Source (the driver)
//!              ◀── text ── Page, then the registry ◀──┘
//! ```

mod connection;
mod page;
mod server;

pub use page::{Family, Page};
pub use server::{CONNECTION_TIME_MAX, CONNECTIONS_MAX, NoAnswer, Source, serve};
