//! `weft check`

use std::process::ExitCode;

use weft_bundle::folder::LabFolder;
use weft_lab::check::check;
use weft_lab::view::Lab;

use crate::cli::CheckArgs;
use crate::output::{print, print_json};

pub(super) fn run(folder: &LabFolder, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let report = check(&Lab::load_live(folder)?, &args.options())?;
    match args.json {
        true => print_json(&report)?,
        false => print(&report.text())?,
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
