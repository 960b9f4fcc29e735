//! Metrics of a process for Prometheus, and the HTTP server that shows them.
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
//! A page that stays the same for a while is kept compressed, as long as somebody scrapes ([`Source::editions`]).
//!
//! A [`Guard`] says who may look: on loopback everyone there, on other addresses clients with a
//! token over TLS. [`serve_site`] is the server under it, also of the hub's own [`Site`].

mod content;
mod exporter;
mod guard;
mod gzip;
mod page;
mod places;
mod server;
mod wire;

pub use content::{Content, Pieces};
pub use exporter::{NoAnswer, Source, prometheus_text, serve};
pub use guard::{Guard, TokenHash, Unguarded};
pub use hyper::header;
pub use hyper::{Method, Response, StatusCode};
pub use page::{Family, Page, counter, gauge, registered};
pub use places::{PROVED_MAX, STREAMS_MAX, UNPROVED_MAX};
pub use server::{
    ANSWER_TIME_MAX, Asked, Counts, PIECE_TIME_MAX, POSTED_BYTES_MAX, PROOF_TIME_MAX, Posted, Site,
    WORK_TIME_MAX, serve_site, text,
};
