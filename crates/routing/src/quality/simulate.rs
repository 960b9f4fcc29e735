//! A pattern, run many times among participants in random order, and the metrics of ORCS.

use std::fmt;
use std::str::FromStr;

use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::Serialize;
use weft_topology::PortRef;

use super::congestion::Counter;
use super::participants::{Participants, endpoints};
use super::paths::{Endpoint, Paths};
use super::pattern::{Level, Levels, Traffic};
use super::random::generator;
use super::summary::{Figure, Summary};
use super::{UNREACHED_MAX, UnknownLid, Unreached};

use crate::sorted;

weft_wire::named! {
    /// What ORCS measures. The congestion of a flow is how many flows of its level use the link on its path that the most
    /// use, itself included.
    pub enum Metric {
        /// For each run, the greatest congestion of any flow in a level, added up over the levels.
        SumMaxCong = "sum_max_cong",
        /// For each flow of all runs and levels, its congestion; 0 for a flow that shares nothing, so that the least
        /// congestion of flows that share is 2 (Tasoulas 2017, section 2.5.2; ORCS's own output has 1 for 0).
        HistMaxCong = "hist_max_cong",
        /// For each run, the mean over its flows, whatever their level, of the share of bandwidth that they get: 1 divided
        /// by their congestion.
        HistAccBand = "hist_acc_band",
        /// For each run, the delay of the first group: a flow takes as long as its congestion, and begins when what its
        /// sender received in the level before has arrived; the delay is when the last flow is through. Flows of the
        /// second group count in the congestion alone.
        DepMaxDelay = "dep_max_delay",
        /// For each link that carries anything, how many flows do, added up over levels and runs.
        GetCableCong = "get_cable_cong",
    }
}

/// Why a text names no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no metric is called `{0}`; there are sum_max_cong, hist_max_cong, hist_acc_band, dep_max_delay and get_cable_cong"
)]
pub struct MetricError(pub String);

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        Self::named(text).ok_or_else(|| MetricError(text.to_owned()))
    }
}

weft_wire::defaults! {
    /// How a simulation is run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SimulateOptions {
        /// How many times.
        pub runs: u32 = 1,
        /// Decides all that is random. Each run has a generator of its own, from this and its number, so that results do
        /// not depend on the number of threads.
        pub seed: u64 = 0,
        /// Whether each run begins with the participants of each group in a new random order, as in ORCS; otherwise rank
        /// 0 is the first of the list.
        pub shuffle: bool = true,
        /// Whether `sum_max_cong`, `hist_max_cong` and `hist_acc_band` are of the first group's flows only. ORCS has them
        /// of all; the second group loads the links either way.
        pub first_group_only: bool = false,
    }
}

/// What a simulation found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// The pattern or the two.
    pub traffic: String,
    /// How many participants each group has.
    pub participants: [usize; 2],
    /// How many runs.
    pub runs: u32,
    /// The seed.
    pub seed: u64,
    /// How many flows were measured in all levels and runs; those that do not arrive are not among them.
    pub flows: u64,
    /// How many flows do not arrive, the second group's included.
    pub failures: u64,
    /// The first few of those.
    pub unreached: Vec<Unreached>,
    /// The greatest congestion of any flow.
    pub congestion_max: u64,
    /// As [`Metric::SumMaxCong`].
    pub sum_max_cong: Figure,
    /// As [`Metric::HistMaxCong`].
    pub hist_max_cong: Figure,
    /// As [`Metric::HistAccBand`]; the mean under `bisect` is the effective bisection bandwidth.
    pub hist_acc_band: Figure,
    /// As [`Metric::DepMaxDelay`].
    pub dep_max_delay: Figure,
    /// As [`Metric::GetCableCong`].
    pub get_cable_cong: Figure,
    /// Every link that carries anything, the busiest first.
    pub cables: Vec<CableCongestion>,
}

/// How much a link carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CableCongestion {
    /// The port that the link leaves.
    pub port: PortRef,
    /// The same for people, as in `switch-1-0[19]`.
    pub name: String,
    /// How many flows, added up over levels and runs.
    pub flows: u64,
}

/// Runs traffic among participants, in the current rayon pool.
///
/// # Errors
///
/// When a participant has a LID that no one has.
pub fn simulate(
    paths: &Paths<'_>,
    participants: &Participants,
    traffic: impl Into<Traffic>,
    options: &SimulateOptions,
) -> Result<Simulation, UnknownLid> {
    let traffic = traffic.into();
    let first = endpoints(paths, &participants.first)?;
    let second = endpoints(paths, &participants.second)?;
    let setting = Setting { paths, traffic, first: &first, second: &second, options };
    // Runs that cannot differ are run once.
    let ordered = !options.shuffle || !traffic.depends_on_order();
    let same = ordered && !traffic.is_random();
    let runs = if same { options.runs.min(1) } else { options.runs };
    let tally = (0..runs)
        .into_par_iter()
        .fold(|| Tally::new(&setting), |tally, run| tally.run(&setting, run))
        .reduce(|| Tally::new(&setting), Tally::merge);
    Ok(if same { tally.repeat(options.runs) } else { tally }.finish(&setting))
}

struct Setting<'s, 'a> {
    paths: &'s Paths<'a>,
    traffic: Traffic,
    first: &'s [Endpoint],
    second: &'s [Endpoint],
    options: &'s SimulateOptions,
}

/// Room to work in.
struct Scratch<'s, 'a> {
    counter: Counter<'s, 'a>,
    /// How many flows of a run have which congestion.
    meets: Vec<u64>,
    clock: Clock,
}

/// What some runs found, in their order. Everything but the values of single runs is whole numbers, so that it does
/// not matter how runs are put together.
struct Tally<'s, 'a> {
    scratch: Option<Box<Scratch<'s, 'a>>>,
    /// By run: the sum of greatest congestions, the share of bandwidth, the delay.
    runs: Vec<(u64, f64, u64)>,
    meets: Vec<u64>,
    links: Vec<u64>,
    failures: u64,
    unreached: Vec<(Endpoint, Endpoint)>,
}

impl<'s, 'a> Tally<'s, 'a> {
    fn new(setting: &Setting<'s, 'a>) -> Self {
        let links = vec![0; setting.paths.link_count()];
        Self { scratch: None, runs: Vec::new(), meets: Vec::new(), links, failures: 0, unreached: Vec::new() }
    }

    fn run(mut self, setting: &Setting<'s, 'a>, run: u32) -> Self {
        let mut scratch = self.scratch.take().unwrap_or_else(|| {
            let clock = Clock::new(setting.first.len());
            Box::new(Scratch { counter: Counter::new(setting.paths), meets: Vec::new(), clock })
        });
        scratch.meets.clear();
        scratch.clock.begin();
        let mut random = generator(setting.options.seed, run);
        let (mut first, mut second) = (setting.first.to_vec(), setting.second.to_vec());
        if setting.options.shuffle {
            first.shuffle(&mut random);
            second.shuffle(&mut random);
        }
        let mut levels = Levels::new(setting.traffic, first.len() as u32, second.len() as u32);
        first.append(&mut second);
        let mut sum_max = 0;
        while let Some(level) = levels.next(&mut random) {
            sum_max += u64::from(self.level(setting, &mut scratch, &first, &level));
        }
        self.runs.push((sum_max, share(&scratch.meets), scratch.clock.last));
        add(&mut self.meets, &scratch.meets);
        self.scratch = Some(scratch);
        self
    }

    /// Runs one level; the greatest congestion of the flows measured.
    fn level(
        &mut self,
        setting: &Setting<'s, 'a>,
        scratch: &mut Scratch<'s, 'a>,
        order: &[Endpoint],
        level: &Level,
    ) -> u32 {
        let ends = |(from, to): (u32, u32)| (order[from as usize], order[to as usize]);
        let border = setting.first.len() as u32;
        let Scratch { counter, meets, clock } = scratch;
        let mut worst = 0;
        let mut pairs = level.pairs();
        clock.next_level();
        counter.run(level.pairs().map(ends), |_, congestion| {
            let Some(pair @ (from, to)) = pairs.next() else { return };
            let own = from < border;
            let Some(congestion) = congestion else {
                self.failures += 1;
                if self.unreached.len() < UNREACHED_MAX && !self.unreached.contains(&ends(pair)) {
                    self.unreached.push(ends(pair));
                }
                return;
            };
            if own {
                clock.flow(from, to, congestion);
            }
            if own || !setting.options.first_group_only {
                worst = worst.max(congestion);
                let bin = congestion as usize;
                if meets.len() <= bin {
                    meets.resize(bin + 1, 0);
                }
                meets[bin] += 1;
            }
        });
        counter.add_to(&mut self.links);
        worst
    }

    /// Adds later runs.
    fn merge(mut self, later: Self) -> Self {
        self.runs.extend(later.runs);
        add(&mut self.meets, &later.meets);
        add(&mut self.links, &later.links);
        self.failures += later.failures;
        for pair in later.unreached {
            if self.unreached.len() < UNREACHED_MAX && !self.unreached.contains(&pair) {
                self.unreached.push(pair);
            }
        }
        self
    }

    /// The same run this often.
    fn repeat(mut self, times: u32) -> Self {
        self.runs = self.runs.iter().copied().cycle().take(times as usize).collect();
        for count in self.meets.iter_mut().chain(&mut self.links).chain([&mut self.failures]) {
            *count *= u64::from(times);
        }
        self
    }

    fn finish(self, setting: &Setting<'s, 'a>) -> Simulation {
        let Setting { paths, options, .. } = setting;
        let used = (0..).zip(&self.links).filter(|(_, flows)| **flows > 0);
        let mut cables: Vec<CableCongestion> = used
            .map(|(link, flows)| {
                let port = paths.port_of(link);
                CableCongestion { port, name: paths.fabric.port_name(port).to_string(), flows: *flows }
            })
            .collect();
        sorted::by_key(&mut cables, |cable| (std::cmp::Reverse(cable.flows), paths.fabric.rank(cable.port)));
        // Congestion 1 is that of a flow that shares nothing.
        let alone: u64 = self.meets.iter().take(2).sum();
        let sharing = (2..).zip(self.meets.iter().skip(2).copied());
        let shares: Vec<f64> = self.runs.iter().map(|(_, share, _)| *share).collect();
        Simulation {
            traffic: setting.traffic.to_string(),
            participants: [setting.first.len(), setting.second.len()],
            runs: options.runs,
            seed: options.seed,
            flows: self.meets.iter().sum(),
            failures: self.failures,
            unreached: self.unreached.iter().filter_map(|(a, b)| Unreached::new(paths, *a, *b)).collect(),
            congestion_max: self.meets.len().saturating_sub(1) as u64,
            sum_max_cong: occurrences(self.runs.iter().map(|(sum, ..)| *sum)),
            hist_max_cong: Figure::counted(std::iter::once((0, alone)).chain(sharing)),
            hist_acc_band: Figure::shares(&shares),
            dep_max_delay: occurrences(self.runs.iter().map(|(.., delay)| *delay)),
            get_cable_cong: occurrences(cables.iter().map(|cable| cable.flows)),
            cables,
        }
    }
}

/// The mean share of bandwidth of flows by congestion; 0 where there are none.
fn share(meets: &[u64]) -> f64 {
    let flows: u64 = meets.iter().sum();
    let shares = meets.iter().enumerate().map(|(congestion, flows)| *flows as f64 / congestion.max(1) as f64);
    if flows == 0 { 0.0 } else { shares.sum::<f64>() / flows as f64 }
}

fn add(totals: &mut Vec<u64>, more: &[u64]) {
    if totals.len() < more.len() {
        totals.resize(more.len(), 0);
    }
    for (total, more) in totals.iter_mut().zip(more) {
        *total += more;
    }
}

fn occurrences(values: impl Iterator<Item = u64>) -> Figure {
    let mut counts = std::collections::BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    Figure::counted(counts.iter().map(|(value, count)| (*value, *count)))
}

/// When what each rank received in a level has arrived, over the levels of a run.
struct Clock {
    level: u32,
    /// By rank: the level in which it received last, and when that had arrived; and the same for the level before.
    received: Vec<[(u32, u64); 2]>,
    /// When the last flow so far is through.
    last: u64,
}

impl Clock {
    fn new(ranks: usize) -> Self {
        Self { level: 0, received: vec![[(0, 0); 2]; ranks], last: 0 }
    }

    fn begin(&mut self) {
        self.level = 1;
        self.received.fill([(0, 0); 2]);
        self.last = 0;
    }

    fn next_level(&mut self) {
        self.level += 1;
    }

    fn flow(&mut self, from: u32, to: u32, takes: u32) {
        let before = self.level - 1;
        let sender = self.received[from as usize];
        let begins = sender.iter().find(|(level, _)| *level == before).map_or(0, |(_, at)| *at);
        let through = begins + u64::from(takes);
        let [last, earlier] = &mut self.received[to as usize];
        if last.0 == self.level {
            last.1 = last.1.max(through);
        } else {
            (*earlier, *last) = (*last, (self.level, through));
        }
        self.last = self.last.max(through);
    }
}

impl Simulation {
    /// The figure of a metric.
    pub fn figure(&self, metric: Metric) -> &Figure {
        match metric {
            Metric::SumMaxCong => &self.sum_max_cong,
            Metric::HistMaxCong => &self.hist_max_cong,
            Metric::HistAccBand => &self.hist_acc_band,
            Metric::DepMaxDelay => &self.dep_max_delay,
            Metric::GetCableCong => &self.get_cable_cong,
        }
    }

    /// The share of bandwidth that a flow gets on average, over runs: under `bisect` the effective bisection bandwidth.
    pub fn bandwidth(&self) -> Summary {
        self.hist_acc_band.summary
    }
}

impl fmt::Display for Simulation {
    /// All metrics in short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.participants;
        write!(f, "{}, {first} participants", self.traffic)?;
        if second > 0 {
            write!(f, " against {second}")?;
        }
        write!(f, ", {} runs, seed {}, {} flows", self.runs, self.seed, self.flows)?;
        if self.failures > 0 {
            write!(f, ", {} more that do not arrive", self.failures)?;
        }
        for metric in Metric::ALL {
            write!(f, "\n{metric}: {}", self.figure(metric).summary)?;
        }
        for flow in &self.unreached {
            write!(f, "\n  {flow}")?;
        }
        Ok(())
    }
}
