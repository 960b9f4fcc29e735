//! The live page of a laboratory: what it shows, how that changes, and the server that a browser asks.
//!
//! ```text
//!   a laboratory ─▶ State ─▶ Stage: one key, then merge patches ─▶ streams of readers (Pages, over weft-metrics' HTTP)
//!                              └─▶ ring of the last ten minutes ─▶ tape file: key frames and patches, sought by time
//! ```
//!
//! Nothing here knows a laboratory: whoever gathers its state gives it to the [`Stage`], and whoever may act on it is a
//! [`Stagehand`]. A tape is the page's own state with times, so it has no keys and no packets in it.

mod act;
mod assets;
mod flow;
mod http;
pub mod merge;
mod ring;
mod serve;
mod stage;
pub mod state;
pub mod tape;

pub use prometheus::Registry;

pub use act::{Act, Done, Refusal, Stagehand};
pub use flow::{FlowHops, hops};
pub use http::{Assets, Pages, Source};
pub use ring::{KEPT, Mark, Span};
pub use serve::{Film, record, serve};
pub use stage::{Counts, Line, Piece, Reader, Stage};
pub use state::State;
