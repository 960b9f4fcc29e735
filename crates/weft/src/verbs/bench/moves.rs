//! `weft bench move`

use std::process::ExitCode;

use weft_bundle::folder::LabFolder;
use weft_perform::bench::moves::{Options, Report, run as measure};

use crate::cli::bench::BenchMoveArgs;
use crate::output::Table;

pub(in crate::verbs) fn run(folder: &LabFolder, args: &BenchMoveArgs) -> anyhow::Result<ExitCode> {
    let options = Options { count: args.count, pause_s: args.pause, allow_busy: args.allow_busy };
    super::show(&measure(folder, &options)?, args.json, text)
}

fn text(report: &Report) -> String {
    let mut table = Table::headed(
        "moves | count | LFT SMPs | rounds | median ms | p90 ms | downtime, median ms | p90 ms",
    );
    for (what, series) in [("within a leaf", &report.within_a_leaf), ("across", &report.across)] {
        let range = |counts: &[u32]| match (counts.iter().min(), counts.iter().max()) {
            (Some(least), Some(most)) if least == most => least.to_string(),
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ => "-".to_owned(),
        };
        let ms = |value: f64| format!("{value:.2}");
        table.row(&[
            &what,
            &series.took_ms.len(),
            &range(&series.smps),
            &range(&series.rounds),
            &ms(series.took.median_ms),
            &ms(series.took.p90_ms),
            &ms(series.downtime.median_ms),
            &ms(series.downtime.p90_ms),
        ]);
    }
    format!(
        "{}\n{} processes, {} s between moves; from the request to the last acknowledgement, by the subnet manager\n\n{table}\n\
         everything else used {:.1} % of a core meanwhile\n",
        report.machine,
        report.processes,
        report.pause_s,
        report.others_used * 100.0
    )
}
