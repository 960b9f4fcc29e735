//! The protocol's lines, as one program.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod lines;
mod refusals;
