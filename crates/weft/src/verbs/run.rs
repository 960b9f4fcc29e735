//! `weft run`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use weft_bundle::failure::EXIT_INTERRUPTED;
use weft_perform::run::{Options, Progress, Stop, Summary, run as make};

use crate::cli::run::RunArgs;
use crate::output::{self, Table, say};
use crate::progress;

/// `lab`: the name of live runs' laboratories.
pub(super) fn run(lab: Option<&str>, args: RunArgs) -> anyhow::Result<ExitCode> {
    let lab = lab.map_or_else(|| format!("run-{}", std::process::id()), str::to_owned);
    let bar = Bar(ProgressBar::with_draw_target(None, progress::target()));
    let progress = bar.0.clone();
    let (json, keeps) = (args.json, args.report.is_some());
    let outcome = make(&crate::front::base(), &lab, &options(args), Arc::new(bar))?;
    progress.finish_and_clear();
    let shown = outcome.summary.and_then(|summary| show(&summary, json));
    match outcome.stopped {
        None => shown,
        Some(Stop::Failed(error)) => Err(error),
        Some(Stop::Interrupted { ended, wanted }) => {
            if let Err(error) = shown {
                crate::failure::report(&error);
            }
            let rest = if keeps { "; continue with --resume" } else { "" };
            say(&format!("interrupted: {ended} of {wanted} runs have ended{rest}"));
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
    }
}

fn options(args: RunArgs) -> Options {
    let RunArgs { files, all, report, resume, simulated, both, allow_busy, .. } = args;
    let RunArgs { only, seeds, crossbar, lane_share, conditions, profile, jobs, tape, .. } = args;
    Options {
        files,
        all,
        report,
        tape,
        resume,
        simulated,
        both,
        allow_busy,
        only,
        seeds,
        crossbar,
        lane_share,
        conditions,
        profile,
        jobs,
    }
}

/// A bar on a terminal; otherwise a line for each run that has ended.
#[derive(Debug)]
struct Bar(ProgressBar);

impl Progress for Bar {
    fn begins(&self, runs: usize) {
        self.0.set_length(runs as u64);
        self.0.set_style(progress::style("{pos}/{len} {msg} {elapsed}"));
        self.0.enable_steady_tick(Duration::from_millis(500));
    }

    fn is_at(&self, text: &str) {
        self.0.set_message(text.to_owned());
    }

    fn has_ended(&self, text: &str) {
        self.0.inc(1);
        if let Some(all) = self.0.length().filter(|all| *all > 1 && self.0.is_hidden()) {
            say(&format!("{}/{all} {text}", self.0.position()));
        }
    }
}

/// Says what became of each run.
fn show(summary: &Summary, json: bool) -> anyhow::Result<ExitCode> {
    output::show(summary, json, text)?;
    summary.invalid.iter().for_each(|run| say(&format!("invalid: {run}")));
    summary.failures.iter().for_each(|failure| say(&format!("not as expected: {failure}")));
    Ok(ExitCode::from(summary.code()))
}

fn text(summary: &Summary) -> String {
    let mut table = Table::headed("experiment | run | driver | result | paper");
    for row in &summary.runs {
        let (agree, printed) = row.paper;
        let paper = if printed == 0 { String::new() } else { format!("{agree} of {printed} agree") };
        table.row(&[&row.experiment, &row.run, &row.driver, &row.result, &paper]);
    }
    let report = summary.report.as_ref().map(|path| format!("report: {path}\n")).unwrap_or_default();
    format!("{table}{report}")
}
