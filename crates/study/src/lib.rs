//! Studies beside papers: quantities that no running fabric is needed for, or that a running fabric has measured, and what a
//! paper prints for them.
//!
//! ```text
//!   migrations: trees ──▶ placement ──▶ pattern ──▶ walk: tables after each tenth ──▶ report
//!   signalling: meshes, one cable cut ──▶ changed paths ──▶ datagrams and latencies by each method
//!   smp: Measured on live agents ──▶ k and r of the equations ──▶ report
//! ```
//!
//! Nothing here reads a file or a clock: a report is a set of texts by name, which the caller writes.

pub mod fit;
pub mod migration_signalling;
pub mod migrations;
pub mod signalling;
pub mod smp;

/// What a report is of, and where the paper prints it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
struct Source {
    title: &'static str,
    source: &'static str,
}
