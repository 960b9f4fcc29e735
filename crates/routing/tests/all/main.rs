//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod balance;
mod collapse;
mod damaged;
mod dot;
mod files;
#[path = "../../examples/first_engine.rs"]
mod first_engine;
mod ftree;
mod keeps;
mod lash;
mod learned;
mod management;
mod moves;
mod oracle;
mod partitions_file;
mod pftree;
mod quality;
mod repair;
mod saved;
mod sssp;
mod trees;
mod verify;
mod vftree;
mod virtual_rows;
mod vswitch;
