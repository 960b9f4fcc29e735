//! The arguments about the performance manager and metrics.

use std::path::PathBuf;

use clap::Args;
use weft_machine::Time;
use weft_pm::DetectorKind;
use weft_wire::ServiceLevel;

use super::choice::{Word, choice};

/// Options of the performance manager.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Performance manager")]
pub(crate) struct PmArgs {
    /// Start a performance manager in each piece of the fabric that has a subnet manager: it sweeps counters, finds hot spots and moves flows to a slow lane
    #[arg(long)]
    pub(crate) pm: bool,

    /// Node whose first cabled port the performance manager uses, or NODE:PORT; repeat it for each piece of the fabric
    /// [default: the first HCA beside the subnet manager's]
    #[arg(long, value_name = "NODE", requires = "pm")]
    pub(crate) pm_at: Vec<String>,

    /// Milliseconds between the starts of two sweeps
    #[arg(long, value_name = "MS", default_value_t = 2000, requires = "pm", value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub(crate) pm_interval: u64,

    /// Maximum outstanding requests
    #[arg(long, value_name = "COUNT", default_value_t = 64, requires = "pm", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) pm_window: u32,

    /// Rules by which hot spots are found: `weft`, or `printed` for algorithm 1 of dFtree as the paper prints it
    #[arg(long, value_name = "RULES", default_value = "weft", requires = "pm", value_parser = choice(DETECTORS))]
    pub(crate) pm_detector: DetectorKind,

    /// PortXmitWait, in ticks of 4 ns per second of fabric time, above which a port is congested; 2500000 is 1 % [default: 100000; 24200000 with
    /// --rates and the rules `weft`]
    #[arg(long, value_name = "TICKS", requires = "pm")]
    pub(crate) pm_threshold: Option<u64>,

    /// The same for a further hot spot beside others, in three sweeps in a row [default: --pm-threshold in one sweep; 1.8 times that with --rates]
    #[arg(long, value_name = "TICKS", requires = "pm")]
    pub(crate) pm_further_threshold: Option<u64>,

    /// Share of its link's rate, 0 to 1, below which a congested host is a contributor or a victim
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, requires = "pm", value_parser = share)]
    pub(crate) pm_utilisation_limit: f64,

    /// Consecutive sweeps above the threshold that begin a hot spot, and below it that end one
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "pm", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pm_hysteresis: u32,

    /// Ask hosts to move; false only shows hot spots
    #[arg(long, value_name = "BOOL", default_value_t = true, requires = "pm", action = clap::ArgAction::Set)]
    pub(crate) pm_repath: bool,

    /// Sweep counters by lane as well
    #[arg(long, value_name = "BOOL", default_value_t = true, requires = "pm", action = clap::ArgAction::Set)]
    pub(crate) pm_lanes: bool,

    /// Sweep PortRcvErrorDetails as well
    #[arg(long, value_name = "BOOL", default_value_t = false, requires = "pm", action = clap::ArgAction::Set)]
    pub(crate) pm_errors: bool,

    /// Report to the subnet manager what hosts receive, at most once in the given number of sweeps; it learns weights of hosts from that, or
    /// their order with --order received
    #[arg(long, value_name = "SWEEPS", requires = "pm", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) learn_weights: Option<u32>,

    /// Service level of the slow lane
    #[arg(long, value_name = "SL", default_value_t = 1, requires = "pm", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) slow_sl: u8,
}

impl PmArgs {
    /// The same as the manager's options. `dilation`: nanoseconds of the laboratory's time in one of fabric time.
    /// `is_shaped`: whether packets take time on its cables.
    pub(crate) fn options(&self, dilation: u32, is_shaped: bool) -> weft_pm::Options {
        let mut options = weft_pm::Options {
            interval: Time::from_millis(self.pm_interval),
            window: self.pm_window,
            dilation,
            detector: self.pm_detector,
            utilisation_limit: self.pm_utilisation_limit,
            repath: self.pm_repath,
            learn_weights: self.learn_weights.unwrap_or(0),
            slow_sl: ServiceLevel(self.slow_sl),
            hysteresis: (self.pm_hysteresis, self.pm_hysteresis),
            lanes: self.pm_lanes,
            errors: self.pm_errors,
            ..weft_pm::Options::default()
        };
        options.set_thresholds(is_shaped, self.pm_threshold, self.pm_further_threshold);
        options
    }
}

/// Rules of the performance manager.
const DETECTORS: &[Word<DetectorKind>] = &[
    ("weft", "Algorithm 1 with further rules", DetectorKind::Weft),
    ("printed", "Algorithm 1 as the paper prints it", DetectorKind::Printed),
];

/// A share from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to 1".into()),
    }
}

/// `top`
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print one table and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object and exit
    #[arg(long)]
    pub(crate) json: bool,
    /// Milliseconds between updates
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=600_000))]
    pub(crate) every: u64,
    /// Rows to show at first; on a screen the keys p, f and v change it
    #[arg(long, value_name = "ROWS", default_value = "ports", value_parser = choice(VIEWS))]
    pub(crate) view: View,
    /// Order of the rows, the highest first; on a screen the key s takes the next one
    #[arg(long, value_name = "KEY", default_value = "waiting", value_parser = choice(SORTS))]
    pub(crate) sort: Sort,
    /// Maximum rows [default: as many as the terminal has room for; all with --once or --json]
    #[arg(long, value_name = "COUNT")]
    pub(crate) rows: Option<usize>,
}

/// The rows of `top`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Ports,
    Flows,
    Machines,
}

/// Rows.
const VIEWS: &[Word<View>] = &[
    ("ports", "Ports, by the performance manager's counters", View::Ports),
    ("flows", "Flows", View::Flows),
    ("machines", "Virtual machines", View::Machines),
];

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Waiting,
    Sent,
    Received,
    Used,
    Name,
}

impl Sort {
    /// The one after it, and after the last the first.
    pub(crate) fn next(self) -> Self {
        let place = SORTS.iter().position(|(_, _, sort)| *sort == self).unwrap_or_default();
        SORTS[(place + 1) % SORTS.len()].2
    }
}

/// Orders of rows.
const SORTS: &[Word<Sort>] = &[
    ("waiting", "Ports by the share of the time in which data waits", Sort::Waiting),
    ("sent", "By what is sent; flows by their rate", Sort::Sent),
    ("received", "By what is received", Sort::Received),
    ("used", "By the share of the link's rate", Sort::Used),
    ("name", "By name", Sort::Name),
];

/// `metrics`
#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// List the addresses that serve metrics instead
    #[arg(long, conflicts_with = "output")]
    pub(crate) list: bool,
    /// Print JSON instead of a table
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// File to write instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
