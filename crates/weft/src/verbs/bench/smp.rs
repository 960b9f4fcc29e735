//! `weft bench smp`

use std::process::ExitCode;

use weft_bundle::folder::LabFolder;
use weft_perform::bench::smp::{Quantiles, Report};
use weft_perform::bench::{SmpOptions, lft, smp};

use super::super::report;
use super::lft_text;
use crate::cli::bench::BenchSmpArgs;
use crate::output::{Table, or_dash};

pub(in crate::verbs) fn run(folder: &LabFolder, args: &BenchSmpArgs) -> anyhow::Result<ExitCode> {
    report::prepare(args.report.as_deref())?;
    let options = SmpOptions { count: args.count, updates: args.updates, allow_busy: args.allow_busy };
    if !args.lft {
        return super::show(&smp::run(folder, &options)?, args.json, text);
    }
    let found = lft::run(folder, &options)?;
    let shown = (!args.json).then(|| lft_text::text(&found));
    report::publish(&found, args.report.as_deref(), weft_study::smp::Report::files, shown.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn text(report: &Report) -> String {
    let us = |value: f64| format!("{value:.1}");
    let mut text = format!("{}\nattached to `{}`\n\n", report.machine, report.attached_to);
    for compared in &report.compared {
        let mut table = Table::headed("round trip, one at a time | p50 us | p99 us | ratio");
        let mut row = |what: &str, quantiles: Quantiles, ratio: Option<f64>| {
            let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            table.row(&[&what, &us(quantiles.p50), &us(quantiles.p99), &ratio]);
        };
        row("bare QUIC datagram, 290 bytes", compared.bare_quic_us, Some(1.0));
        row("program to its own agent", compared.own_agent_us, None);
        row("program to the neighbouring agent", compared.neighbour_us, Some(compared.attached_ratio));
        text += &format!(
            "{}\n{table}agent to the neighbouring agent, the difference of the two: {:.1} us, ratio {:.2}\n\n",
            compared.placement.text(),
            compared.agent_to_agent_us,
            compared.agent_to_agent_ratio
        );
    }
    let mut hops =
        Table::headed("hops, all on one core | to | directed p50 us | p99 | LID-routed p50 us | p99");
    for row in &report.hops {
        let lid = |pick: fn(&Quantiles) -> f64| or_dash(row.lid_routed_us.as_ref().map(pick).map(us));
        hops.row(&[
            &row.hops,
            &row.target,
            &us(row.directed_us.p50),
            &us(row.directed_us.p99),
            &lid(|quantiles| quantiles.p50),
            &lid(|quantiles| quantiles.p99),
        ]);
    }
    let mut windows = Table::headed("window, placed by the scheduler | SMPs/s, neighbour | SMPs/s, farthest");
    for row in &report.windows {
        let rate = |value: f64| format!("{value:.0}");
        windows.row(&[&row.window, &rate(row.neighbour_per_s), &rate(row.farthest_per_s)]);
    }
    text += &format!("{hops}\n{windows}\n");
    text + &format!("everything else used {:.1} % of a core meanwhile\n", report.others_used * 100.0)
}
