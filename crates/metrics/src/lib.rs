//! What a process counts, for Prometheus, and the HTTP server that shows it.
//!
//! A process keeps what it counts itself in a [`prometheus::Registry`] of its own, never in the global one. What its
//! machines have counted anyway becomes a [`Page`] of the same metric families on demand, so that nothing is counted twice
//! and nothing is counted between requests. A page is no `Collector` of the registry, because `collect` must answer
//! at once and a driver's figures are awaited.
//!
//! ```text
//!   Prometheus ── GET /metrics ──▶ serve ── page ──▶ Source (the driver)
//!              ◀── text ── Page, then the registry ◀──┘
//! ```
//!
//! A [`Guard`] says who may look: on loopback everybody there, elsewhere who shows a token over TLS.

mod connection;
mod guard;
mod page;
mod server;
mod wire;

pub use guard::{Guard, TokenHash, Unguarded};
pub use page::{Family, Page};
pub use server::{CONNECTION_TIME_MAX, CONNECTIONS_MAX, NoAnswer, Source, serve};
pub use wire::Wire;
