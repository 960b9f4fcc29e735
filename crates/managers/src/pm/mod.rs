//! The performance manager's process: the loop of [`crate::manager`] around its machine, and what comes of its events.
//!
//! ```text
//!   PerformanceManager ─snapshot─▶ control (`weft top`, `weft status`), /metrics
//!       (machine)      ──events──▶ control
//! ```

mod driver;
mod figures;
mod page;
mod translate;

use weft_bundle::config::managers::PmPart;
use weft_bundle::folder::bundle;
use weft_control::process::ProcessKind;

use crate::manager::{Process, Seat, loopback};
use crate::start::Start;

/// What the performance manager's process goes by.
#[derive(Clone, Debug)]
pub struct PmConfig {
    /// Its name among the processes.
    pub name: String,
    /// Where it sits.
    pub seat: Seat,
    /// What the machine is told.
    pub options: weft_pm::Options,
}

impl PmConfig {
    /// From the laboratory's bundle.
    pub fn of_bundle(process: &Start, metrics_port: Option<u16>) -> anyhow::Result<Self> {
        let PmPart { seat, options } = bundle::load(&process.bundle.manager(&process.name))?;
        let mut seat = Seat::new(seat, process)?;
        seat.metrics = metrics_port.map(loopback).or(seat.metrics);
        let m_key = process.keys()?.m_key;
        Ok(Self { name: process.name.clone(), seat, options: weft_pm::Options { m_key, ..options } })
    }
}

/// Runs until a signal asks it to end.
pub fn run(config: PmConfig) -> anyhow::Result<()> {
    let process = Process::begin(&config.seat, &config.name, ProcessKind::Pm)?;
    let driver = driver::Driver::new(config, process.events());
    process.run(driver)
}
