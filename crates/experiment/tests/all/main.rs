//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod compared;
mod errors;
mod files;
mod mutated;
mod partitions;
mod predict;
mod report;
mod routing;
mod schedules;
mod vms;
