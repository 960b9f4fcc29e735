//! The performance manager's process: the loop of [`crate::manager`] around its machine, and what comes of its events.
//!
//! ```text
//!   PerformanceManager ─snapshot─▶ control (`weft top`, `weft status`), /metrics
//!       (machine)      ──events──▶ control
//! ```

mod driver;
mod page;
mod translate;

use driver::PmFigures;
use weft_bundle::config::managers::PmPart;
use weft_bundle::folder::bundle;
use weft_control::process::ProcessKind;

use crate::cli::MeteredProcessArgs;
use crate::manager::{Process, Seat, loopback};

/// What the performance manager's process goes by.
#[derive(Clone, Debug)]
pub(crate) struct PmConfig {
    /// Its name among the processes.
    pub(crate) name: String,
    /// Where it sits.
    pub(crate) seat: Seat,
    /// What the machine is told.
    pub(crate) options: weft_pm::Options,
}

impl PmConfig {
    /// From the laboratory's bundle.
    pub(crate) fn of_bundle(args: &MeteredProcessArgs) -> anyhow::Result<Self> {
        let process = &args.process;
        let PmPart { seat, options } = bundle::load(&process.bundle().manager(&process.name))?;
        let mut seat = Seat::new(seat, process)?;
        seat.metrics = args.metrics_port.map(loopback).or(seat.metrics);
        let m_key = process.keys()?.m_key;
        Ok(Self { name: process.name.clone(), seat, options: weft_pm::Options { m_key, ..options } })
    }
}

/// Runs until a signal asks it to end.
pub(crate) fn run(config: PmConfig) -> anyhow::Result<()> {
    let process = Process::begin(&config.seat, &config.name, ProcessKind::Pm)?;
    let driver = driver::Driver::new(config, process.events());
    process.run(driver)
}
