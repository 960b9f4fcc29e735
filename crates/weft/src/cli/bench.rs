//! The arguments of `weft bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weft_bundle::place::groups::Pack;
use weft_mgmt::Window;
use weft_perform::bench::sa::{Cache, Record};

use super::choice::{Word, choice};

/// `bench`
#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// Measure SMP round trips in a running laboratory, beside a bare QUIC datagram ping-pong
    Smp(BenchSmpArgs),
    /// Measure time to SUBNET UP, memory and idle cost of a laboratory started for it
    Up(BenchUpArgs),
    /// Measure what QUIC costs beside the Unix socket, for `check` and for the subnet manager, in laboratories started for it
    Door(BenchDoorArgs),
    /// Measure rate and latency of questions to subnet administration of a running laboratory, whoever manages it
    Sa(BenchSaArgs),
    /// Measure how long moves of a virtual machine's LID take in a running laboratory, within a leaf and across
    Move(BenchMoveArgs),
}

/// `bench sa`
#[derive(Debug, Args)]
pub(crate) struct BenchSaArgs {
    /// Clients that ask at once, dealt over the hosts
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) clients: u32,
    /// Record to ask for
    #[arg(long, value_name = "RECORD", default_value = "path", value_parser = choice(RECORDS))]
    pub(crate) record: Record,
    /// Questions of a client that are outstanding
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) window: u32,
    /// Whether clients keep the records that they hear
    #[arg(long, value_name = "CACHE", default_value = "off", value_parser = choice(CACHES))]
    pub(crate) cache: Cache,
    /// Seconds to ask for; `--record paths` asks once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// Print numbers even if something else used the processor meanwhile
    #[arg(long)]
    pub(crate) allow_busy: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// What clients ask for.
const RECORDS: &[Word<Record>] = &[
    ("path", "One path after the other", Record::Path),
    ("paths", "All paths of the client's port, once, as hosts do after a reroute", Record::Paths),
    ("node", "One node after the other", Record::Node),
];

/// What clients keep.
const CACHES: &[Word<Cache>] =
    &[("off", "Each connection asks", Cache::Off), ("on", "The first connection to a peer asks", Cache::On)];

/// `bench move`
#[derive(Debug, Args)]
pub(crate) struct BenchMoveArgs {
    /// Moves within a leaf, and as many across
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) count: u32,
    /// Seconds before each move; packets of the move before are gone after six
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub(crate) pause: u64,
    /// Print numbers even if something else used the processor meanwhile
    #[arg(long)]
    pub(crate) allow_busy: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `bench door`
#[derive(Debug, Args)]
pub(crate) struct BenchDoorArgs {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,
    /// Devices per agent process: a number, `leaf` for a switch and the hosts at it, or `all`
    #[arg(long, value_name = "N|leaf|all", default_value = "1")]
    pub(crate) pack: Pack,
    /// Pairs of `check`, by the sockets and by the hub's door
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) checks: u32,
    /// Pairs of laboratories, whose subnet manager attaches by its agent's socket and over QUIC
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Folder for the report: Markdown, CSV and JSON
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,
    /// Print numbers even if something else used the processor meanwhile
    #[arg(long)]
    pub(crate) allow_busy: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `bench up`
#[derive(Debug, Args)]
pub(crate) struct BenchUpArgs {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,
    /// Devices per agent process: a number, `leaf` for a switch and the hosts at it, or `all`
    #[arg(long, value_name = "N|leaf|all", default_value = "1")]
    pub(crate) pack: Pack,
    /// Maximum outstanding SMPs
    #[arg(long, value_name = "COUNT|auto")]
    pub(crate) max_wire_smps: Option<Window>,
    /// Number of laboratories, one after the other
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Seconds to watch each laboratory idle; 0 skips this
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(crate) idle_seconds: u64,
    /// Cores to keep busy meanwhile
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
    /// Measure writes of forwarding tables: by hops, route and window, and figure 7 of the vSwitch paper of 2017
    ///
    /// Writes the blocks that up to six switches hold, so that nothing changes. Fits the constants k and r of the vSwitch
    /// paper of 2015.
    #[arg(long)]
    pub(crate) lft: bool,
    /// Folder for the report of --lft: Markdown, SVG, CSV and JSON
    #[arg(long, value_name = "FOLDER", requires = "lft")]
    pub(crate) report: Option<PathBuf>,
    /// Most LFT updates in figure 7
    #[arg(long, value_name = "COUNT", default_value_t = 4608, requires = "lft", value_parser = clap::value_parser!(u32).range(300..=4608))]
    pub(crate) updates: u32,
    /// Print numbers even if something else used the processor meanwhile
    #[arg(long)]
    pub(crate) allow_busy: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}
