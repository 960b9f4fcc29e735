//! `weft bench up`

use std::process::ExitCode;

use weft_perform::bench::up::{Options, Report, run as measure};

use crate::cli::bench::BenchUpArgs;
use crate::output::{Table, or_dash};

pub(in crate::verbs) fn run(args: BenchUpArgs) -> anyhow::Result<ExitCode> {
    let BenchUpArgs { file, pack, max_wire_smps, runs, idle_seconds, burn_cores, json } = args;
    let options = Options { file, pack, max_wire_smps, runs, idle_seconds, burn_cores };
    super::show(&measure(&crate::front::base(), &options)?, json, text)
}

fn text(report: &Report) -> String {
    let mut table = Table::headed(
        "run | processes | SUBNET UP s | SM's part s | SMPs | PSS MiB | idle cores | flaps | others %",
    );
    for (number, run) in (1..).zip(&report.runs) {
        table.row(&[
            &number,
            &run.processes,
            &format!("{:.3}", run.subnet_up_s),
            &format!("{:.3}", run.sm_s),
            &run.smps,
            &format!("{:.0}", run.pss_mib),
            &or_dash(run.idle_cores.map(|cores| format!("{cores:.2}"))),
            &or_dash(run.flaps),
            &format!("{:.1}", run.others_used * 100.0),
        ]);
    }
    format!("{}\n{} {}\n\n{table}", report.machine, report.file, report.arguments.join(" "))
}
