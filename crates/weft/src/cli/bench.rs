//! The arguments of `weft bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Pack;

/// `bench`
#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// Round trips of SMPs through a running laboratory, next to a bare QUIC datagram ping-pong
    Smp(BenchSmpArgs),
    /// Time to SUBNET UP, weight and idle cost of a laboratory that is started for it and taken down again
    Up(BenchUpArgs),
}

/// `bench up`
#[derive(Debug, Args)]
pub(crate) struct BenchUpArgs {
    /// The cabling, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,
    /// Devices per agent process: a number, or `all`
    #[arg(long, value_name = "N|all", default_value = "1")]
    pub(crate) pack: Pack,
    /// SMPs under way at once
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_wire_smps: Option<u32>,
    /// How many laboratories, one after the other
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Seconds to watch each with nothing to do; 0 is not at all
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(crate) idle_seconds: u64,
    /// Cores to take away from it meanwhile
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) burn_cores: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `bench smp`
#[derive(Debug, Args)]
pub(crate) struct BenchSmpArgs {
    /// Round trips per measurement
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(crate) count: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}
