//! `weft bench`

mod door;
mod lft_text;
mod moves;
mod sa;
mod smp;
mod up;

use std::process::ExitCode;

use serde::Serialize;

use crate::output::{self, print};

pub(super) use door::run as door;
pub(super) use moves::run as moves;
pub(super) use sa::run as sa;
pub(super) use smp::run as smp;
pub(super) use up::run as up;

/// The other end of bare QUIC round trips.
pub(super) fn echo() -> anyhow::Result<()> {
    weft_perform::bench::echo(|address| print(&format!("{address}\n")))
}

/// Prints a report as JSON or as text.
/// Prints a report.
fn show<R: Serialize>(report: &R, json: bool, text: fn(&R) -> String) -> anyhow::Result<ExitCode> {
    output::show(report, json, text).map(|()| ExitCode::SUCCESS)
}
