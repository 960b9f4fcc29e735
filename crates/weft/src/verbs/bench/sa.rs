//! `weft bench sa`

use std::process::ExitCode;

use weft_bundle::folder::LabFolder;
use weft_perform::bench::sa::{Options, Report, run as measure};

use crate::cli::bench::BenchSaArgs;
use crate::output::Table;

pub(in crate::verbs) fn run(folder: &LabFolder, args: &BenchSaArgs) -> anyhow::Result<ExitCode> {
    let &BenchSaArgs { clients, record, window, cache, seconds, allow_busy, json } = args;
    let options = Options { clients, window, record, cache, seconds, allow_busy };
    super::show(&measure(folder, &options)?, json, text)
}

fn text(report: &Report) -> String {
    let mut table =
        Table::headed("manager | clients | window | answers/s | p50 us | p99 us | max us | busy | failed");
    let us = |value: f64| format!("{value:.0}");
    table.row(&[
        &report.manager,
        &report.clients,
        &report.window,
        &format!("{:.0}", report.answers_per_s),
        &us(report.answer_us.p50),
        &us(report.answer_us.p99),
        &us(report.longest_us),
        &report.busy,
        &report.failed,
    ]);
    let (machine, lab, hosts, agents) = (&report.machine, &report.lab, report.hosts, report.agents);
    let (lookups, answers, records, took) = (report.lookups, report.answers, report.records, report.took_s);
    let (asked, cache, repeated) = (report.record, report.cache, report.repeated);
    let others = report.others_used * 100.0;
    format!(
        "{machine}\nlab `{lab}`, {hosts} hosts, {agents} agents; record {asked}, cache {cache}\n\n{table}\n\
         {lookups} connections, {answers} answers with {records} records in {took:.3} s, {repeated} questions repeated\n\
         everything else used {others:.1} % of a core meanwhile\n"
    )
}
