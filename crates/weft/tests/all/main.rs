//! All integration tests of this crate in one executable: each more is linked for itself.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod apart;
mod ask;
mod at;
mod attach;
mod bench_sa;
mod capture;
mod chaos;
mod check;
mod common;
mod compose;
mod congestion_tables;
#[path = "../../../sim/tests/all/support/counts.rs"]
mod counts;
mod doors;
mod engines;
mod events;
mod exec;
mod faults;
mod fixed_share;
mod flows;
mod flows_lost;
mod flows_shaped;
mod graph;
mod hub;
mod ibsim;
mod identity;
mod input;
mod lab;
mod managers;
mod names;
mod partitions;
mod parts;
mod pieces;
mod pieces_managers;
mod plan;
mod pm;
mod recabling;
mod recabling_by_chance;
mod recabling_interrupted;
mod record;
mod relay;
#[path = "../../../sim/tests/all/support/replay.rs"]
mod replay;
mod resume;
mod routes;
mod run;
mod run_conditions;
mod run_hot_spot;
mod run_signalling;
mod run_victims;
mod schedule;
#[path = "../../../sim/tests/all/support/seeds.rs"]
mod seeds;
mod shell;
mod study;
mod subnet;
mod tapes;
mod terminal;
mod topo;
mod ui;
mod vfs;
mod vm_kills;
mod vm_levels;
mod vm_schedules;
mod vms;
