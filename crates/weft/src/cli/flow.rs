//! The arguments of `flow` and `traffic`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use weft_lab::flows::Pattern;

use super::choice::{Word, choice};
use super::events::duration;

/// Verbs for flows.
#[derive(Debug, Subcommand)]
pub(crate) enum FlowVerb {
    /// Start a flow from a host or virtual machine to another
    Start(FlowStartArgs),
    /// List flows: throughput, bytes, repeated packets, times of messages or round trips, and why they ended
    Ls(FlowLsArgs),
    /// Show a flow: its times, and its path cable by cable with lane, rate, wait and the flows that share it
    Show(FlowShowArgs),
    /// Show packets dropped, with whose they were and why, and flows that begin and end
    Observe(FlowObserveArgs),
    /// Stop flows: what is under way arrives, then both hosts forget them
    Stop(FlowStopArgs),
}

/// Verbs for patterns of flows.
#[derive(Debug, Subcommand)]
pub(crate) enum TrafficVerb {
    /// Start a pattern of flows as a set; `weft flow stop --set SET` stops it
    Start(TrafficStartArgs),
}

/// What a flow does.
#[derive(Debug, Args)]
pub(crate) struct FlowShapeArgs {
    /// Maximum rate of each flow in MB/s (10^6 bytes of wall-clock second) [default: 4, and 32 for all flows together]
    ///
    /// In a laboratory with --rates: in Gb/s of fabric time, whole packets counted [default: as fast as the fabric].
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "unlimited")]
    pub(crate) rate: Option<f64>,
    /// As fast as the processes can: flows, links and managers compete for the processors
    #[arg(long)]
    pub(crate) unlimited: bool,
    /// Bytes of a message
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    pub(crate) size: u32,
    /// Bytes of body in a packet, a multiple of 4 up to the path's MTU
    #[arg(long, value_name = "BYTES", default_value_t = 2048)]
    pub(crate) packet: u16,
    /// Send one message and wait for one back, again and again; the latency is that of round trips
    #[arg(long)]
    pub(crate) ping_pong: bool,
    /// Unreliable datagrams instead of a reliable connection
    #[arg(long)]
    pub(crate) datagrams: bool,
    /// End after this many bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<u64>,
    /// End after this time, such as 30s
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) lasts: Option<Duration>,
}

/// `flow start`
#[derive(Debug, Args)]
pub(crate) struct FlowStartArgs {
    /// Sending host: NODE, NODE:PORT or vm:NAME
    pub(crate) from: String,
    /// Receiving host: NODE, NODE:PORT or vm:NAME
    pub(crate) to: String,
    /// Name: 1 to 64 letters, digits, `-`, `_` and `.` [default: flow-N]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What it does
    #[command(flatten)]
    pub(crate) shape: FlowShapeArgs,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `flow ls`
#[derive(Debug, Args)]
pub(crate) struct FlowLsArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Add the path of each flow by the switches' tables, with the lane of each cable; takes a second
    #[arg(long)]
    pub(crate) paths: bool,
}

/// `flow show`
#[derive(Debug, Args)]
pub(crate) struct FlowShowArgs {
    /// The flow, as `weft flow ls` lists it
    pub(crate) name: String,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `flow observe`
#[derive(Debug, Args)]
pub(crate) struct FlowObserveArgs {
    /// Go on with what happens from now, until the laboratory ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only packets and flows from this host or vm:NAME
    #[arg(long, value_name = "NODE")]
    pub(crate) from: Option<String>,
    /// Only packets and flows to this host or vm:NAME
    #[arg(long, value_name = "NODE")]
    pub(crate) to: Option<String>,
    /// Only packets of the partition of this P_Key, such as 0x8001
    #[arg(long, value_name = "P_KEY", value_parser = p_key)]
    pub(crate) partition: Option<u16>,
    /// Only these verdicts
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = choice(VERDICTS))]
    pub(crate) verdict: Vec<Verdict>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What became of a packet or a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Dropped,
    Started,
    Stopped,
    Done,
    Failed,
}

impl Verdict {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        VERDICTS.iter().find(|(_, _, verdict)| *verdict == self).map_or("", |(name, ..)| name)
    }
}

/// Verdicts.
const VERDICTS: &[Word<Verdict>] = &[
    ("dropped", "A packet was dropped", Verdict::Dropped),
    ("started", "A flow began", Verdict::Started),
    ("stopped", "A flow was stopped", Verdict::Stopped),
    ("done", "A flow has sent all, or its time is over", Verdict::Done),
    ("failed", "A flow ended in error", Verdict::Failed),
];

/// A P_Key in hexadecimal or decimal.
fn p_key(text: &str) -> Result<u16, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "a P_Key is a number of 16 bits, such as 0x8001".into())
}

/// `flow stop`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub(crate) struct FlowStopArgs {
    /// Flows, as `weft flow ls` lists them
    #[arg(group = "which")]
    pub(crate) names: Vec<String>,
    /// All flows of a set
    #[arg(long, value_name = "SET", group = "which")]
    pub(crate) set: Vec<String>,
    /// All flows
    #[arg(long, group = "which", conflicts_with_all = ["names", "set"])]
    pub(crate) all: bool,
}

/// `traffic start`
#[derive(Debug, Args)]
pub(crate) struct TrafficStartArgs {
    /// Who sends to whom
    #[arg(value_parser = choice(PATTERNS), required_unless_present = "mix")]
    pub(crate) pattern: Option<Pattern>,
    /// Instead of a pattern: the flows between two hosts of an experiment's file, all at once, as SET-NAME;
    /// --rate bounds each further
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "hosts", "seed", "size", "packet", "ping_pong", "datagrams", "bytes"])]
    pub(crate) mix: Option<PathBuf>,
    /// Hosts that take part, in this order [default: all hosts, in the order of the cabling]
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
    /// Name of the set [default: traffic]
    #[arg(long, value_name = "SET", default_value = "traffic", hide_default_value = true)]
    pub(crate) set: String,
    /// Seed of `permutation`
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What each flow does
    #[command(flatten)]
    pub(crate) shape: FlowShapeArgs,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Patterns of traffic.
const PATTERNS: &[Word<Pattern>] = &[
    ("all-to-all", "Every host to every other one", Pattern::AllToAll),
    ("incast", "All others to the first host", Pattern::Incast),
    ("ring", "Every host to the next one", Pattern::Ring),
    ("permutation", "Every host to one other, drawn from --seed", Pattern::Permutation),
    ("bisect", "The first half to the second half, one to one", Pattern::Bisection),
];

/// The fastest rate that is taken.
const RATE_MAX: f64 = 1e6;

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=RATE_MAX).contains(&rate) => Ok(rate),
        _ => Err("a rate is a number of MB/s, or Gb/s with --rates, from 0.001 to 1000000".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_positive_numbers() {
        assert_eq!((rate("10"), rate("0.001")), (Ok(10.0), Ok(0.001)));
        for wrong in ["0", "-1", "NaN", "inf", "1000001", "fast", "", "10MB"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
