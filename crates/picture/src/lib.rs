//! Pictures: of a fabric, and charts of what was measured ([`chart`]).
//!
//! A [`View`] says what is shown of the cabling, [`layout`] gives each mark a place, and a writer makes a document of both.
//!
//! ```text
//!   Fabric ─▶ View (marks, hosts folded into their switches; bundles of cables) ─▶ layout: tiers, ring, grid or springs
//!                                                                             └─▶ svg, html, mermaid, dot
//! ```
//!
//! The same fabric always gives the same picture: order and ties follow the cabling's own order, and nothing is drawn from a clock or
//! a random source.

pub mod chart;
mod document;
pub mod layout;
mod paint;
mod view;
mod words;

pub use document::{Group, Look, cable_at, dot, html, mermaid, svg};
pub use paint::{Paint, STEPS};
pub use view::{Bundle, Mark, MarkId, View};
