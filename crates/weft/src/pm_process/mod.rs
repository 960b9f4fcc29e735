//! The performance manager's process: the loop of [`crate::manager`] around its machine, and what comes of its events.
//!
//! ```text
//!   PerformanceManager ─snapshot─▶ control (`weft top`, `weft status`), /metrics
//!       (machine)      ──events──▶ control, events.jsonl
//! ```

mod driver;
mod page;
mod translate;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_control::process::ProcessKind;

use driver::PmFigures;

use crate::lab::names::PM;
use crate::manager::{Process, Seat, load_config, loopback};

/// What the performance manager's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PmConfig {
    /// What every manager is told.
    #[serde(flatten)]
    pub(crate) seat: Seat,
    /// What the machine is told.
    pub(crate) options: weft_pm::Options,
}

impl PmConfig {
    /// Reads what the laboratory wrote down.
    pub(crate) fn load(
        path: &Path,
        launch: Option<PathBuf>,
        metrics_port: Option<u16>,
    ) -> anyhow::Result<Self> {
        let mut config: Self = load_config(path)?;
        config.seat.launch = launch.or(config.seat.launch);
        config.seat.metrics = metrics_port.map(loopback).or(config.seat.metrics);
        Ok(config)
    }
}

/// Runs until a signal asks it to end.
pub(crate) fn run(config: PmConfig) -> anyhow::Result<()> {
    let process = Process::begin(&config.seat, PM, ProcessKind::Pm)?;
    let driver = driver::Driver::new(config, process.events());
    process.run(driver)
}
