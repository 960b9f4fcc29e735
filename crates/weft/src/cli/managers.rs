//! The arguments about several subnet managers, named as OpenSM's options.

use clap::Args;

/// How a subnet manager is elected among several.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Subnet manager")]
pub(crate) struct ElectionArgs {
    /// Priority in the election, 0 to 15: the highest wins, then the lowest port GUID [default: 0; 1 with --standby]
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) priority: Option<u8>,

    /// Milliseconds between two polls of the master by a standby manager
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub(crate) polling_ms: u64,

    /// Unanswered polls in a row that a standby manager puts up with; it takes over after one more
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) polling_retries: u32,
}
