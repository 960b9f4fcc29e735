//! A whole fabric in virtual time: the driver of tests and of large studies.
//!
//! The machines are those that run as processes: every device of `weft-device`, the subnet manager of `weft-sm`.
//! Here they share one queue of things to happen, ordered by time and then by the order in which they were
//! decided. Delays and chances come from one seed, so a seed is a run: the same trace, byte for byte.
//!
//! ```text
//!                ┌──────────── queue by (time, sequence) ◀──────────┐
//!                ▼                                                  │ arrivals, wake-ups,
//!   Fault ──▶ Simulation ──▶ Device (one per node) ──▶ outputs ─────┤ link changes
//!                │      ├──▶ SubnetManager ──────────▶ outputs ─────┤
//!                │      ├──▶ PerformanceManager ─────▶ outputs ─────┤
//!                │      ├──▶ VmManager ──────────────▶ outputs ─────┤
//!                │      └──▶ Stack (one per HCA port)▶ outputs ─────┘
//!                ├──▶ Rule: packets pass, come late, or are lost; those of lane 15, or all
//!                ├──▶ Trace: a line for everything, or a hash over them
//!                └──▶ check, check_traffic, probe: is it as it should be?
//! ```
//!
//! A [`Simulation`] composes parts, each in a folder of its own: `clock` (time, queue and chance), `nodes` (the processes of agents),
//! `cabling` (cables, links and packets on them), `programs` (where managers are attached), `managers` (their machines), `observers`
//! (trace, counts and recordings) and `turn` (what belongs to the node whose turn it is).
//!
//! A cable's link is up when both devices are on, both ends allow it and the cable is whole. When that ends, the
//! ends notice at different times up to the link timeout; when it begins again before that, they learn of both at
//! once. What is under way goes with the link.
//!
//! ```
//! use weft_machine::Time;
//! use weft_sim::{Fault, SimOptions, Simulation};
//! use weft_topology::generate::{GenerateOptions, ring};
//!
//! let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
//! let mut simulation = Simulation::new(&fabric, SimOptions::default(), 4711);
//! simulation.run_until_quiet(Time::from_secs(60)).unwrap();
//! assert_eq!(simulation.check().unwrap().lids, 8);
//!
//! let cable = fabric.cables().find(|cable| fabric.node(cable.b.node).is_switch()).unwrap();
//! simulation.apply(Fault::LinkDown(cable.a));
//! simulation.run_until_quiet(Time::from_secs(120)).unwrap();
//! simulation.check().unwrap();
//! ```

mod administration;
mod bring_up;
mod bug;
mod cabling;
mod change;
mod chaos;
mod check;
mod clock;
mod conservation;
mod fault;
mod managers;
mod nodes;
mod observers;
mod options;
mod probe;
mod programs;
mod rule;
mod schedule;
mod simulation;
mod snapshot;
mod turn;
mod world;

pub use administration::SaAnswer;
pub use bring_up::{BringUp, BringUpError, bring_up, bring_up_watched};
pub use bug::{SeededBug, UnknownBug};
pub use change::Change;
pub use chaos::{ChaosFinding, ChaosReport, ChaosSite};
pub use check::{CheckReport, Violation};
pub use conservation::TrafficReport;
pub use fault::Fault;
pub use managers::DiskCounts;
pub use nodes::Requests;
pub use observers::{Kept, SimStatistics, Trace, TrafficAccount};
pub use options::{DiskOptions, SimOptions, StandbyOptions, TraceMode};
pub use rule::{RandomLoss, Rule, Verdict};
pub use schedule::Schedule;
pub use simulation::{NotQuiet, Simulation};
pub use snapshot::Snapshot;
pub use turn::Load;
pub use weft_fault::Process;
pub use weft_node::{
    Refusal, SlotState, SlotStatus, ToHost, VmCommand, VmDone, VmIdentity, VmRefusal, VmStep,
};
