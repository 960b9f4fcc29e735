//! Experiments as files: what they say, and the reports of their runs.
//!
//! ```text
//!   text ──parse──▶ ExperimentFile ──runs──▶ RunId ──plan──▶ Plan ──(a runner)──▶ Recording
//!                        │  one per choice of variants and seed   │                  │
//!                        └───────────────────┬────────────────────┴──────────────────┘
//!                                            ▼
//!                          judge ──▶ Verdict, report ──▶ Markdown, SVG, CSV, JSON
//! ```
//!
//! Nothing here reads a file or a clock: texts come from the caller, and what is to be written goes back to it.
//! All times of a file are wall-clock seconds from the moment when the fabric is up, and all rates are Gb/s of fabric
//! time, as the papers print them.

mod driver;
mod faults;
mod file;
mod judge;
mod measure;
mod migration;
mod number;
mod plan;
mod predict;
mod recording;
mod report;
mod resolve;
mod result;
mod shaping;
mod spec;
mod verdict;

pub use driver::Driver;
pub use faults::FaultLog;
pub use file::{Beside, ExperimentFile, FileError, Omitted, ScheduleFile};
pub use judge::judge;
pub use migration::{Counted, Migrated, MigrationRecord, Outcome as MigrationOutcome};
pub use plan::{
    Action, BeffPart, BeffTag, FlowPlan, GivenLevel, ManagementLane, Oracle, Plan, PortPlace, RunId, Step,
    VmPlan, VmsPlan,
};
pub use predict::{PredictedState, Prediction, predict};
pub use recording::{
    Conservation, FlowSample, FlowTotal, HostReconfigurations, LaneConservation, Late, Mark, MarkKind,
    PortSample, Recording, Sample,
};
pub use report::{ConditionRow, FidelityRow, GainFinding, Report, Table, conditions, fidelity_table, index};
pub use result::{FlowResult, PortResult, RunResult};
pub use shaping::{InvalidRates, Shaping};
pub use spec::*;
pub use verdict::{Finding, Outcome, Verdict};
