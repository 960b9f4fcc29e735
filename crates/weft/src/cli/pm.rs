//! The arguments about the performance manager and metrics.

use std::path::PathBuf;

use clap::Args;
use weft_machine::Time;
use weft_wire::ServiceLevel;

use super::ProcessArgs;

/// What the performance manager is told.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Performance manager")]
pub(crate) struct PmArgs {
    /// Start a performance manager, which sweeps counters, finds hot spots and has flows moved to a slow lane
    #[arg(long)]
    pub(crate) pm: bool,

    /// The node whose first cabled port it is attached to; by default the first HCA that is not the subnet manager's
    #[arg(long, value_name = "NODE", requires = "pm")]
    pub(crate) pm_at: Option<String>,

    /// Milliseconds from the start of one sweep to that of the next
    #[arg(long, value_name = "MS", default_value_t = 2000, requires = "pm", value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub(crate) pm_interval: u64,

    /// Requests under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 64, requires = "pm", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) pm_window: u32,

    /// Ticks of 4 ns that data waits in a second of fabric time, above which a port is congested; 2500000 is 1 % of
    /// the time
    #[arg(long, value_name = "TICKS", default_value_t = 100_000, requires = "pm")]
    pub(crate) pm_threshold: u64,

    /// A congested host below this share of its link's rate, 0 to 1, takes part in a hot spot or suffers from one
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, requires = "pm", value_parser = share)]
    pub(crate) pm_utilisation_limit: f64,

    /// Sweeps in a row that a port must be above the threshold to become a hot spot, and below it to be none any more
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "pm", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pm_hysteresis: u32,

    /// Whether hosts are asked to move; otherwise hot spots are only shown
    #[arg(long, value_name = "BOOL", default_value_t = true, requires = "pm", action = clap::ArgAction::Set)]
    pub(crate) pm_repath: bool,

    /// Whether counters by lane are swept too
    #[arg(long, value_name = "BOOL", default_value_t = true, requires = "pm", action = clap::ArgAction::Set)]
    pub(crate) pm_lanes: bool,

    /// Whether what received errors are made of is swept too (PortRcvErrorDetails)
    #[arg(long, value_name = "BOOL", default_value_t = false, requires = "pm", action = clap::ArgAction::Set)]
    pub(crate) pm_errors: bool,

    /// The service level of the slow lane
    #[arg(long, value_name = "SL", default_value_t = 1, requires = "pm", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) slow_sl: u8,
}

impl PmArgs {
    /// The same as the manager's options. `dilation`: nanoseconds of the laboratory's time in one of fabric time.
    pub(crate) fn options(&self, dilation: u32) -> weft_pm::Options {
        weft_pm::Options {
            interval: Time::from_millis(self.pm_interval),
            window: self.pm_window,
            dilation,
            threshold: self.pm_threshold,
            utilisation_limit: self.pm_utilisation_limit,
            repath: self.pm_repath,
            slow_sl: ServiceLevel(self.slow_sl),
            hysteresis: (self.pm_hysteresis, self.pm_hysteresis),
            lanes: self.pm_lanes,
            errors: self.pm_errors,
            ..weft_pm::Options::default()
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to 1".into()),
    }
}

/// The hidden verbs that are processes which serve metrics.
#[derive(Debug, Args)]
pub(crate) struct MeteredProcessArgs {
    /// What every process is told
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Serve metrics for Prometheus on this TCP port of the loopback, instead of the one in the configuration
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) metrics_port: Option<u16>,
}

/// `top`
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print one table and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object and end
    #[arg(long)]
    pub(crate) json: bool,
    /// Milliseconds between pictures
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=600_000))]
    pub(crate) every: u64,
    /// Rows at most; by default as many as the terminal has room for, and with --once or --json all
    #[arg(long, value_name = "COUNT")]
    pub(crate) rows: Option<usize>,
}

/// `metrics`
#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// Print the addresses that serve metrics instead
    #[arg(long, conflicts_with = "output")]
    pub(crate) list: bool,
    /// Print JSON instead of a table
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// Write the scrape file here instead of printing it
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
