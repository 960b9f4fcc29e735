//! The arguments about several subnet managers, named as OpenSM's options.

use clap::{Args, Subcommand};

use super::process::SmProcessArgs;

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

    /// Unanswered polls in a row that a standby manager tolerates; after one more it takes over
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) polling_retries: u32,
}

/// `sm`
#[derive(Debug, Args)]
pub(crate) struct SmCommand {
    /// Command for the master to send to another manager
    #[command(subcommand)]
    pub(crate) verb: Option<SmVerb>,
    /// The process's own arguments
    #[command(flatten)]
    pub(crate) process: SmProcessArgs,
}

/// What the master tells another manager (IBA 14.4.1).
#[derive(Debug, Subcommand)]
pub(crate) enum SmVerb {
    /// Silence a standby manager: it becomes NOT-ACTIVE and takes nothing over
    Disable(OtherManager),
    /// Have a manager that is NOT-ACTIVE stand by again
    Standby(OtherManager),
    /// Have a standby manager discover the subnet; it stands by again when it has found the master
    Discover(OtherManager),
}

/// Which manager.
#[derive(Debug, Args)]
pub(crate) struct OtherManager {
    /// Manager as `weft status` lists it (`sm-2`), its port GUID, or its node
    pub(crate) manager: String,
}
