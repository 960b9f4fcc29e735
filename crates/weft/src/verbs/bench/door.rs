//! `weft bench door`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use weft_perform::bench::door::{Options, Report, run as measure};

use super::super::report;
use crate::cli::bench::BenchDoorArgs;
use crate::output::Table;

/// How the pairs are named.
const WAYS: [&str; 2] = ["socket", "QUIC"];

pub(in crate::verbs) fn run(args: BenchDoorArgs) -> anyhow::Result<ExitCode> {
    let BenchDoorArgs { file, pack, checks, runs, report: folder, allow_busy, json } = args;
    report::prepare(folder.as_deref())?;
    let report = measure(&crate::front::base(), &Options { file, pack, checks, runs, allow_busy })?;
    let shown = (!json).then(|| text(&report));
    report::publish(&report, folder.as_deref(), files, shown.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn files(report: &Report) -> BTreeMap<String, String> {
    // Nothing in it can fail to be written: keys are texts.
    let json =
        serde_json::to_string_pretty(report).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    let mut csv = "what,pair,way,seconds\n".to_owned();
    for compared in &report.compared {
        for (way, samples) in WAYS.iter().zip([&compared.socket_s, &compared.quic_s]) {
            for (pair, seconds) in (1..).zip(samples) {
                let _ = writeln!(csv, "\"{}\",{pair},{way},{seconds:.6}", compared.what);
            }
        }
    }
    let page = format!("# Through the network instead of a socket\n\n```text\n{}```\n", text(report));
    [("report.md", page), ("report.json", json), ("pairs.csv", csv)]
        .map(|(name, text)| (name.to_owned(), text))
        .into()
}

fn text(report: &Report) -> String {
    let mut table = Table::headed("medians | pairs | socket s | QUIC s | ratio | wanted");
    for compared in &report.compared {
        table.row(&[
            &compared.what,
            &compared.socket_s.len(),
            &format!("{:.3}", compared.socket_median_s),
            &format!("{:.3}", compared.quic_median_s),
            &format!("{:.2}", compared.ratio),
            &format!("<= {:.1}", compared.wanted_at_most),
        ]);
    }
    let (machine, file, arguments) = (&report.machine, &report.file, report.arguments.join(" "));
    let (processes, others) = (report.processes, report.others_used * 100.0);
    format!(
        "{machine}\n{file} {arguments}, {processes} processes\n\n{table}\neverything else used {others:.1} % of a core meanwhile\n"
    )
}
