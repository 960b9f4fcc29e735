//! `weft bench`
use crate::cli::BenchSmpArgs;
use crate::lab::LabFolder;
use std::process::ExitCode;
pub(super) fn smp(_lab: &LabFolder, _args: &BenchSmpArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
pub(super) fn echo() -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
