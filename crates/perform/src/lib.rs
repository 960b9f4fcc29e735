//! Experiments, schedules of faults and benchmarks, carried out: on the processes of a laboratory, and in virtual time.
//!
//! ```text
//!   run     experiment ──▶ plan ──▶ stage: processes, or a simulation ──▶ recording ──▶ verdict, report
//!   chaos   seed ──▶ schedule ──▶ a laboratory, or a simulation ──▶ judged, and shrunk
//!   bench   a laboratory ──▶ numbers, if the machine was quiet
//! ```
//!
//! Values come back, and a front end ([`weft_bundle::folder::front`]) hears of progress; nothing here prints, and nothing knows a
//! command line.

pub mod bench;
pub mod chaos;
pub mod file_flows;
pub mod film;
pub mod run;
pub mod shaping;
