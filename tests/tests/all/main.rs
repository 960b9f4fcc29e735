//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod apart;
mod boards;
mod boards_stirred;
mod compose;
mod congestion;
mod containers;
mod counters;
mod diags;
mod docs;
mod engines;
mod figures;
mod hosts;
mod ibsim;
mod isolation;
mod keys;
mod kinds;
mod kubernetes;
mod managers;
mod matrix;
mod mounted;
mod old_compose;
mod opensm;
mod opensm_lab;
mod osmtest;
mod page;
mod partitions;
mod prepopulated;
mod prometheus;
mod python;
mod rough;
mod routes;
mod routing;
mod saved_lash;
mod swarm;
mod takeovers;
mod tools_image;
mod umad;
mod vfs;
mod vm_moves;
mod vm_silence;
mod vms;
