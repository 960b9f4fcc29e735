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

use weft_bundle::config::keys::Keys;
use weft_bundle::config::managers::PmPart;
use weft_bundle::folder::bundle;
use weft_control::process::ProcessKind;

use crate::manager::{Process, Seat};
use crate::start::Start;

/// Runs as the bundle says until a signal asks it to end. `metrics_port`: where it serves metrics on loopback, if not where the bundle says.
pub fn run(start: &Start, metrics_port: Option<u16>) -> anyhow::Result<()> {
    let PmPart { seat, options } = bundle::load(&start.bundle.manager(&start.name))?;
    let seat = Seat::new(seat, start, metrics_port)?;
    let Keys { m_key, sa_key, .. } = start.keys()?;
    let process = Process::begin(seat, &start.name, ProcessKind::Pm)?;
    let driver = driver::Driver::new(weft_pm::Options { m_key, sa_key, ..options }, process.events());
    process.run(driver)
}
