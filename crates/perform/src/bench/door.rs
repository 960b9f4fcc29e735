//! Cost of the network, beside the socket of this machine: for a verb through the hub's door, and for a subnet
//! manager that attaches to its agent.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use serde::Serialize;
use weft_bundle::folder::Base;
use weft_bundle::folder::front::Work;
use weft_bundle::place::groups::Pack;
use weft_lab::signals::{Interruption, SIGHUP, SIGINT, SIGTERM};

use super::own_lab::{self, OwnLab};
use super::placement::processes;
use super::quiet::{self, Household};

/// The laboratory that is started and taken down.
const LAB: &str = "bench-door";

/// The laboratories to start, and what to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Their topology file.
    pub file: PathBuf,
    /// Devices per agent process.
    pub pack: Pack,
    /// Pairs of `weft check`.
    pub checks: u32,
    /// Pairs of laboratories.
    pub runs: u32,
    /// Give numbers even if something else used the processor meanwhile.
    pub allow_busy: bool,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Processor, cores and kernel.
    pub machine: String,
    /// The topology file.
    pub file: String,
    /// The arguments of `weft up` beside the file.
    pub arguments: Vec<String>,
    /// Processes of a laboratory.
    pub processes: usize,
    /// What was measured both ways.
    pub compared: Vec<Compared>,
    /// What else ran meanwhile, in shares of one core.
    pub others_used: f64,
}

/// One thing both ways, in pairs.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// In words.
    pub what: &'static str,
    /// Seconds by the socket, of each pair.
    pub socket_s: Vec<f64>,
    /// Seconds over QUIC, of each pair.
    pub quic_s: Vec<f64>,
    /// The median of `socket_s`.
    pub socket_median_s: f64,
    /// The median of `quic_s`.
    pub quic_median_s: f64,
    /// Of the medians.
    pub ratio: f64,
    /// The ratio that is good enough.
    pub wanted_at_most: f64,
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

/// Starts laboratories with the front end's program, which must be `weft` or have its verbs.
///
/// # Errors
/// Where one does not come up, or something else used the processor meanwhile.
pub fn run(base: &Base, options: &Options) -> anyhow::Result<Report> {
    let interruption = Interruption::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let work = base.front().listener.work();
    let mut bench = Bench { base, options, interruption, work, others_used: 0.0 };
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
        file: options.file.display().to_string(),
        arguments: bench.arguments(),
        processes,
        compared,
        others_used: bench.others_used,
    };
    drop(bench);
    quiet::judge(report.others_used, options.allow_busy)?;
    Ok(report)
}

struct Bench<'a> {
    base: &'a Base,
    options: &'a Options,
    interruption: Interruption,
    work: Box<dyn Work>,
    /// The most of any part.
    others_used: f64,
}

impl Bench<'_> {
    /// Arguments of `weft up` besides the file.
    fn arguments(&self) -> Vec<String> {
        vec!["--pack".to_owned(), self.options.pack.to_string()]
    }

    fn start(&mut self, more: &[&str]) -> anyhow::Result<OwnLab> {
        let mut arguments = self.arguments();
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        let lab = OwnLab::start(self.base, LAB, &arguments, &self.options.file)?;
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
            own_lab::run(self.base, ways[way])?;
            Ok(began.elapsed().as_secs_f64())
        };
        let watch = Household::watch(Some(&lab.folder))?;
        let mut pairs = Vec::new();
        // The first pair is to warm up.
        for nth in 0..=self.options.checks {
            let of = self.options.checks;
            self.work.is_at(&|| format!("`check` both ways, {nth} of {of}"));
            let pair = self.pair(nth, take)?;
            pairs.extend((nth > 0).then_some(pair));
        }
        self.others_used = self.others_used.max(watch.others_used(&lab.folder)?);
        Ok((processes(&lab.folder)?.len(), pairs))
    }

    /// Laboratories, one after the other, whose subnet manager attaches by its agent's socket and over QUIC.
    fn ups(&mut self) -> anyhow::Result<Vec<[own_lab::Up; 2]>> {
        let mut pairs = Vec::new();
        for nth in 1..=self.options.runs {
            let of = self.options.runs;
            self.work.is_at(&|| format!("SUBNET UP both ways, {nth} of {of}"));
            let mut others_used = Vec::new();
            pairs.push(self.pair(nth, |way| {
                let attach = ["--attach-managers", ["unix", "quic"][way]];
                let arguments = self.arguments().into_iter().chain(attach.map(str::to_owned));
                let up =
                    OwnLab::start(self.base, LAB, &arguments.collect::<Vec<_>>(), &self.options.file)?.up;
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
