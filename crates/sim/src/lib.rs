//! A whole fabric in virtual time: the driver of tests and of large studies.

mod bring_up;
mod cable;
mod check;
mod config;
mod fault;
mod options;
mod probe;
mod queue;
mod rule;
mod schedule;
mod simulation;
mod trace;

pub use bring_up::{BringUp, BringUpError, bring_up};
pub use check::{CheckReport, Violation};
pub use config::device_config;
pub use fault::Fault;
pub use options::{SimOptions, TraceMode};
pub use rule::{RandomLoss, Rule, Verdict};
pub use schedule::Schedule;
pub use simulation::{NotQuiet, SimStatistics, Simulation};
pub use trace::Trace;
