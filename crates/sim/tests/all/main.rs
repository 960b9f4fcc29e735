//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod administration;
mod bring_up;
mod chaos;
mod checkers;
mod churn;
mod congestion_control;
mod crossbars;
mod cut_off;
mod faults;
#[path = "../../examples/first_sim.rs"]
mod first_sim;
mod host_bus;
mod keys;
mod latency;
mod learning;
mod loop_of_repath;
mod management;
mod managers;
mod recabling;
mod recording;
mod repair;
mod schedules;
mod shares;
mod signalling;
mod support;
mod tenants;
mod tools;
mod traffic;
mod vm_levels;
mod vm_lids;
mod vm_manager;
mod vm_moves;
mod vm_notices;
mod vm_numbers;
mod vm_peers;
mod vm_rates;
mod vm_schedules;
mod vm_silence;
mod vm_tenants;
mod vm_unlike;
mod vm_watched;
mod vms;
mod vswitches;
mod windows;
