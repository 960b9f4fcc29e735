//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod detection;
mod fake;
mod machine;
mod real;
mod reports;
