//! The wall-clock driver: machines, links and attachment in one tokio process.
//!
//! An agent runs one device, or many packed together. Everything happens in one thread: the task that reads a
//! link's datagram hands the packet to the device and the device's answer back to the link before it looks at the
//! next one.
//!
//! ```text
//!   clients  ── begin, … ────▶┐
//!            ◀─ events ───────│ agent ═ QUIC, one connection per cable ═ other agents
//!   programs ── Attach, Send ▶│   └─ Node: devices, cables between them, hosts behind adapters
//!            ◀─ Receive ──────┘
//! ```
//!
//! [`run`] is a process's whole life; [`serve`] is the same inside a runtime that is there already.

mod agent;
mod asked;
mod begin;
mod cables;
mod capture;
mod channel;
mod client;
mod config;
mod core;
mod counter;
mod counts;
mod faults;
mod issm;
mod kept;
mod lateness;
mod line;
mod lines;
mod listener;
mod metrics;
mod names;
mod program;
mod programs;
mod rates;
mod record;
mod recording;
mod service;
mod shared;
mod socket;
mod status;
mod tap;
mod user;
mod visitors;
mod vms;
mod wiring;

pub use agent::{AgentError, run, serve};
pub use config::{AgentConfig, RECORD_BYTES_MAX};
