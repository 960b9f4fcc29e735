//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod attach;
mod capture;
mod common;
mod config;
mod fabric;
mod faults;
mod panic;
mod programs;
mod recabling;
mod slots;
mod traffic;
mod users;
mod visitors;
