//! The arguments of `flow` and `traffic`.

use std::time::Duration;

use clap::{Args, Subcommand};
use weft_lab::flows::Pattern;

use super::TableArgs;
use super::choice::{Word, choice};
use super::events::duration;

/// Verbs for flows.
#[derive(Debug, Subcommand)]
pub(crate) enum FlowVerb {
    /// Start a flow from a host or virtual machine to another
    Start(FlowStartArgs),
    /// List flows: throughput, bytes, repeated packets, and why they ended
    Ls(TableArgs),
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
    #[arg(long, value_name = "MB/S", value_parser = bytes_per_second, conflicts_with = "unlimited")]
    pub(crate) rate: Option<u64>,
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
    #[arg(value_parser = choice(PATTERNS))]
    pub(crate) pattern: Pattern,
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

/// The fastest rate that is taken, in MB/s.
const MEGABYTES_MAX: f64 = 1e6;

/// MB/s as whole bytes per second.
fn bytes_per_second(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=MEGABYTES_MAX).contains(&rate) => Ok((rate * 1e6).round() as u64),
        _ => Err("a rate is a number of MB/s from 0.001 to 1000000".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_megabytes_per_second() {
        assert_eq!((bytes_per_second("10"), bytes_per_second("0.001")), (Ok(10_000_000), Ok(1000)));
        for wrong in ["0", "-1", "NaN", "inf", "1000001", "fast", "", "10MB"] {
            assert!(bytes_per_second(wrong).is_err(), "{wrong}");
        }
    }
}
