//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod fabric;
mod generate;
mod includes;
mod psmn_x5;
mod reader;
mod recable;
mod sites;
mod virtualise;
