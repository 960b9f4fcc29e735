//! The command line of `chaos`.

use std::path::PathBuf;

use clap::Args;
use weft_sim::SeededBug;
use weft_sm::LidScheme;

use super::choice::choice;
use super::vfs::LID_SCHEMES;

/// `chaos`
#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// Topology file of the fabric in virtual time [default: the one that the schedule of --replay names]
    #[arg(value_name = "FILE", requires = "simulated")]
    pub(crate) file: Option<PathBuf>,

    /// Run in virtual time instead of on the laboratory that runs
    #[arg(long = "virtual")]
    pub(crate) simulated: bool,

    /// Seed of the first schedule; each further one has the next
    #[arg(long, default_value_t = 1, conflicts_with = "replay", value_parser = clap::value_parser!(u64).range(0..=1 << 62))]
    pub(crate) seed: u64,

    /// Number of schedules in virtual time
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "simulated", conflicts_with = "replay", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) schedules: u64,

    /// Minutes on the laboratory that runs
    #[arg(long, value_name = "MINUTES", default_value_t = 1, conflicts_with_all = ["simulated", "replay"], value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) minutes: u64,

    /// Hours on the laboratory that runs, instead of minutes
    #[arg(long, value_name = "HOURS", conflicts_with_all = ["simulated", "replay", "minutes"], value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) hours: Option<u64>,

    /// Replay a schedule from a file instead of drawing any
    #[arg(long, value_name = "SCHEDULE")]
    pub(crate) replay: Option<PathBuf>,

    /// Folder for the schedule that finds a violation, its fabric and the report
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,

    /// Print the schedule of the seed, as a file that can be replayed, and carry nothing out
    #[arg(long, conflicts_with_all = ["replay", "report", "json"])]
    pub(crate) draw: bool,

    /// In virtual time: with a performance manager, as by `weft up --pm`
    #[arg(long, requires = "simulated")]
    pub(crate) pm: bool,

    /// In virtual time: standby subnet managers, as by `weft up --standby`
    #[arg(long, value_name = "COUNT", default_value_t = 0, requires = "simulated", value_parser = clap::value_parser!(u8).range(0..=4))]
    pub(crate) standby: u8,

    /// In virtual time: virtual functions of every HCA, with a VM manager, as by `weft up --vfs`
    #[arg(long, value_name = "COUNT", requires = "simulated")]
    pub(crate) vfs: Option<u32>,

    /// In virtual time: when virtual functions get their LIDs, as by `weft up --lids` [default: prepopulated]
    #[arg(long, value_name = "WHEN", value_parser = choice(LID_SCHEMES), requires = "simulated")]
    pub(crate) lids: Option<LidScheme>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// A bug that is put in on purpose, for tests of this command
    #[arg(long, hide = true, value_name = "BUG", requires = "simulated")]
    pub(crate) seeded_bug: Option<SeededBug>,
}
