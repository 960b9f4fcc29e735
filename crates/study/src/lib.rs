//! Studies beside papers: quantities that no running fabric is needed for, or that a running fabric has measured, and what a
//! paper prints for them.
//!
//! ```text
//!   migrations: trees ──▶ placement ──▶ pattern ──▶ walk: tables after each tenth ──▶ report
//!   smp: Measured on live agents ──▶ k and r of the equations ──▶ report
//! ```
//!
//! Nothing here reads a file or a clock: a report is a set of texts by name, which the caller writes.

pub mod fit;
pub mod migrations;
pub mod smp;
