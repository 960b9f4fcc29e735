//! `weft bench door`: what the network costs, beside the socket of this machine: for a verb through the hub's door, and for a subnet
//! manager that attaches to its agent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use serde::Serialize;
use weft_lab::signals::{Interruption, SIGHUP, SIGINT, SIGTERM};

use super::super::report;
use super::own_lab::{self, OwnLab};
use super::placement::processes;
use super::quiet::{self, Household};
use crate::cli::BenchDoorArgs;
use crate::output::Table;
use crate::progress::Ticker;

/// The laboratory that is started and taken down.
const LAB: &str = "bench-door";

/// How the pairs are named.
const WAYS: [&str; 2] = ["socket", "QUIC"];

#[derive(Debug, Serialize)]
struct Report {
    machine: String,
    file: String,
    arguments: Vec<String>,
    processes: usize,
    compared: Vec<Compared>,
    /// What else ran meanwhile, in shares of one core.
    others_used: f64,
}

/// One thing both ways, in pairs.
#[derive(Debug, Serialize)]
struct Compared {
    what: &'static str,
    /// Seconds, by pair.
    socket_s: Vec<f64>,
    quic_s: Vec<f64>,
    socket_median_s: f64,
    quic_median_s: f64,
    /// Of the medians.
    ratio: f64,
    wanted_at_most: f64,
}

impl Compared {
    fn of(what: &'static str, pairs: &[[f64; 2]], wanted_at_most: f64) -> Self {
        let [socket_s, quic_s] = [0, 1].map(|way| pairs.iter().map(|pair| pair[way]).collect::<Vec<f64>>());
        let (socket_median_s, quic_median_s) = (median(&socket_s), median(&quic_s));
        let ratio = quic_median_s / socket_median_s;
        Self { what, socket_s, quic_s, socket_median_s, quic_median_s, ratio, wanted_at_most }
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

pub(in crate::verbs) fn run(args: &BenchDoorArgs) -> anyhow::Result<ExitCode> {
    let interruption = Interruption::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    report::prepare(args.report.as_deref())?;
    let mut bench = Bench { args, interruption, ticker: Ticker::begin(), others_used: 0.0 };
    let (processes, checks) = bench.checks()?;
    let ups = bench.ups()?;
    let pick = |pick: fn(&own_lab::Up) -> f64| -> Vec<[f64; 2]> {
        ups.iter().map(|pair| [pick(&pair[0]), pick(&pair[1])]).collect()
    };
    let compared = vec![
        Compared::of("`weft check`, and `weft --at … check`", &checks, 1.5),
        Compared::of("the subnet manager's part, and with --attach-managers quic", &pick(|up| up.sm_s), 1.3),
        Compared::of(
            "`weft up` to SUBNET UP, and with --attach-managers quic",
            &pick(|up| up.subnet_up_s),
            1.3,
        ),
    ];
    let report = Report {
        machine: quiet::machine(),
        file: args.file.display().to_string(),
        arguments: bench.arguments(),
        processes,
        compared,
        others_used: bench.others_used,
    };
    drop(bench);
    if !args.allow_busy {
        quiet::judge(report.others_used)?;
    }
    let shown = (!args.json).then(|| text(&report));
    report::publish(&report, args.report.as_deref(), files, shown.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

struct Bench<'a> {
    args: &'a BenchDoorArgs,
    interruption: Interruption,
    ticker: Ticker,
    /// The most of any part.
    others_used: f64,
}

impl Bench<'_> {
    /// What `weft up` is told besides the file.
    fn arguments(&self) -> Vec<String> {
        vec!["--pack".to_owned(), self.args.pack.to_string()]
    }

    fn start(&mut self, more: &[&str]) -> anyhow::Result<OwnLab> {
        let mut arguments = self.arguments();
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        let lab = OwnLab::start(LAB, &arguments, &self.args.file)?;
        self.others_used = self.others_used.max(lab.up.others_used);
        Ok(lab)
    }

    /// Seconds of `weft check` on one laboratory, by its sockets and by its hub's door, and how many processes that has.
    fn checks(&mut self) -> anyhow::Result<(usize, Vec<[f64; 2]>)> {
        let door = free_port()?;
        let lab = self.start(&["--hub-door", &door])?;
        let identity = lab.folder.bundle().identity("operator");
        let identity = identity.to_str().context("the laboratory's folder is not UTF-8")?;
        let ways: [&[&str]; 2] =
            [&["--lab", LAB, "check"], &["--at", &door, "--identity", identity, "check"]];
        let take = |way: usize| -> anyhow::Result<f64> {
            let began = Instant::now();
            own_lab::run(ways[way])?;
            Ok(began.elapsed().as_secs_f64())
        };
        let watch = Household::watch(Some(&lab.folder))?;
        let mut pairs = Vec::new();
        // The first pair is to warm up.
        for nth in 0..=self.args.checks {
            let of = self.args.checks;
            self.ticker.tell(|| format!("`check` both ways, {nth} of {of}"));
            let pair = self.pair(nth, take)?;
            pairs.extend((nth > 0).then_some(pair));
        }
        self.others_used = self.others_used.max(watch.others_used(&lab.folder)?);
        Ok((processes(&lab.folder)?.len(), pairs))
    }

    /// Laboratories, one after the other, whose subnet manager attaches by its agent's socket and over QUIC.
    fn ups(&mut self) -> anyhow::Result<Vec<[own_lab::Up; 2]>> {
        let mut pairs = Vec::new();
        for nth in 1..=self.args.runs {
            let of = self.args.runs;
            self.ticker.tell(|| format!("SUBNET UP both ways, {nth} of {of}"));
            let mut others_used = Vec::new();
            pairs.push(self.pair(nth, |way| {
                let attach = ["--attach-managers", ["unix", "quic"][way]];
                let arguments = self.arguments().into_iter().chain(attach.map(str::to_owned));
                let up = OwnLab::start(LAB, &arguments.collect::<Vec<_>>(), &self.args.file)?.up;
                others_used.push(up.others_used);
                Ok(up)
            })?);
            self.others_used = others_used.into_iter().fold(self.others_used, f64::max);
        }
        Ok(pairs)
    }

    /// Takes both, now one first and now the other.
    fn pair<T: Copy>(
        &self,
        nth: u32,
        mut take: impl FnMut(usize) -> anyhow::Result<T>,
    ) -> anyhow::Result<[T; 2]> {
        self.interruption.check()?;
        let first = nth as usize % 2;
        let one = take(first)?;
        self.interruption.check()?;
        let other = take(1 - first)?;
        Ok(if first == 0 { [one, other] } else { [other, one] })
    }
}

/// Where a hub's door can be.
fn free_port() -> anyhow::Result<String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no UDP port is free")?;
    Ok(socket.local_addr()?.to_string())
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
    let mut table = Table::new(&["medians", "pairs", "socket s", "QUIC s", "ratio", "wanted"]);
    for compared in &report.compared {
        table.row([
            compared.what.to_owned(),
            compared.socket_s.len().to_string(),
            format!("{:.3}", compared.socket_median_s),
            format!("{:.3}", compared.quic_median_s),
            format!("{:.2}", compared.ratio),
            format!("<= {:.1}", compared.wanted_at_most),
        ]);
    }
    let (machine, file, arguments) = (&report.machine, &report.file, report.arguments.join(" "));
    let (processes, others) = (report.processes, report.others_used * 100.0);
    format!(
        "{machine}\n{file} {arguments}, {processes} processes\n\n{table}\neverything else used {others:.1} % of a core meanwhile\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle_and_ratios_are_of_medians() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        // The third pair was disturbed.
        let compared = Compared::of("x", &[[1.0, 2.0], [2.0, 3.0], [90.0, 3.0]], 1.5);
        assert!((compared.ratio - 1.5).abs() < 1e-12, "{compared:?}");
        assert_eq!((compared.socket_s, compared.quic_s), (vec![1.0, 2.0, 90.0], vec![2.0, 3.0, 3.0]));
    }
}
