//! `weft check`

use std::process::ExitCode;
use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_lab::check::{check, text};
use weft_lab::paints::{self, Colour};
use weft_lab::view::Lab;

use crate::cli::CheckArgs;
use crate::drawing;
use crate::output::show;

pub(super) fn run(folder: &LabFolder, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    args.picture.as_deref().map(drawing::format_of).transpose()?;
    let lab = Lab::load_live(folder)?;
    let report = check(&lab, &args.options())?;
    if let Some(path) = &args.picture {
        let mut look = paints::look(&lab, Colour::State, Duration::ZERO)?;
        let sound = if report.ok { "every host reaches every other" } else { "problems" };
        look.title = format!("{}: {sound}", lab.folder.name());
        drawing::put_problems(&mut look, &lab.fabric, &report.problems);
        look.words.extend(drawing::sentences(report.notes.iter().map(String::as_str)));
        drawing::write(path, &lab.fabric, &look)?;
    }
    show(&report, args.json, text)?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
