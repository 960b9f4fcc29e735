//! Measured costs of SMPs.

use std::fmt;

use serde::Serialize;

/// On how many switches figure 7 was measured.
pub const SWITCHES: usize = 6;

/// How long a switch of figure 7 takes for an SMP, in microseconds: 300 ms for 768 SMPs on each of six switches at the same time
/// (section 7.1). That a switch is the bottleneck, and not its manager, is an assumption.
pub const PAPER_CHIP_US: u64 = 390;

/// How an SMP finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// By a directed route: each switch on the way changes it.
    Directed,
    /// By the LID of the switch.
    LidRouted,
}

/// What an SMP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reads a block of a forwarding table.
    Get,
    /// Writes a block of a forwarding table.
    LftSet,
}

impl Route {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Directed, Self::LidRouted];
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directed => "directed",
            Self::LidRouted => "LID-routed",
        })
    }
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Get, Self::LftSet];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "Get",
            Self::LftSet => "LFT Set",
        })
    }
}

/// SMPs to one switch, or in turns to all of them, with a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The switch; none for all in turns.
    pub target: Option<String>,
    /// How many hops away it is; the mean where there are several.
    pub hops: f64,
    /// Their route.
    pub route: Route,
    /// What they do.
    pub kind: Kind,
    /// How many are outstanding.
    pub window: u32,
    /// How many were acknowledged.
    pub smps: u32,
    /// From the first one sent to the last one acknowledged.
    pub seconds: f64,
}

impl Series {
    /// Microseconds for each.
    pub fn each_us(&self) -> f64 {
        self.seconds * 1e6 / f64::from(self.smps.max(1))
    }

    /// Acknowledged per second.
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { f64::from(self.smps) / self.seconds } else { 0.0 }
    }
}

/// LFT updates on all switches together, as figure 7 counts them, several times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Burst {
    /// How many in all.
    pub smps: u32,
    /// Their route.
    pub route: Route,
    /// How many are outstanding.
    pub window: u32,
    /// From the first one sent to the last one acknowledged, of each time.
    pub seconds: Vec<f64>,
}

impl Burst {
    /// The median in milliseconds.
    pub fn median_ms(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).map_or(0.0, |seconds| seconds * 1e3)
    }
}

/// All that a bench has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// The machine in one line.
    pub machine: String,
    /// The laboratory.
    pub lab: String,
    /// The port that SMPs came from.
    pub attached_to: String,
    /// How long a device takes to process an SMP, in microseconds; 0 where agents are not held back.
    pub processing_us: u64,
    /// The switches that were written, in order.
    pub switches: Vec<String>,
    /// SMPs to one switch at each distance, and to all.
    pub series: Vec<Series>,
    /// Figure 7.
    pub bursts: Vec<Burst>,
    /// What else ran meanwhile, in shares of one core.
    pub others_used: f64,
}

impl Measured {
    /// The series to all switches of a kind and route, by window.
    pub fn to_all(&self, kind: Kind, route: Route) -> impl Iterator<Item = &Series> {
        let fits =
            move |series: &&Series| series.target.is_none() && (series.kind, series.route) == (kind, route);
        self.series.iter().filter(fits)
    }

    /// The fastest series to all switches.
    pub fn best(&self, kind: Kind) -> Option<&Series> {
        let all = Route::ALL.into_iter().flat_map(|route| self.to_all(kind, route));
        all.max_by(|a, b| a.per_second().total_cmp(&b.per_second()))
    }
}
