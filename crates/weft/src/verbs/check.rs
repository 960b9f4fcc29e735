//! `weft check`

use std::process::ExitCode;

use weft_bundle::folder::LabFolder;
use weft_lab::check::{check, text};
use weft_lab::view::Lab;

use crate::cli::CheckArgs;
use crate::output::show;

pub(super) fn run(folder: &LabFolder, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let report = check(&Lab::load_live(folder)?, &args.options())?;
    show(&report, args.json, text)?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
