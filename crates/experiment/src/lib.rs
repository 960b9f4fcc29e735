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

mod file;
mod plan;
mod recording;
mod resolve;
mod spec;
mod verdict;

pub use file::{ExperimentFile, FileError};
pub use plan::{Action, BeffPart, BeffTag, FlowPlan, ManagementLane, Oracle, Plan, PortPlace, RunId, Step};
pub use recording::{
    Conservation, Driver, FlowSample, FlowTotal, LaneConservation, Late, Mark, MarkKind, PortSample,
    Recording, Sample,
};
pub use spec::*;
pub use verdict::{Finding, Outcome, Verdict};
