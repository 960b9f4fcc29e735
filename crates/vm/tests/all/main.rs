//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../../../sim/tests/all/support/counts.rs"]
mod counts;
mod frozen;
mod holds;
mod hostile;
mod journal;
mod moves;
#[path = "../../../sim/tests/all/support/seeds.rs"]
mod seeds;
mod simulation;
mod support;
