//! The arguments about routings.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `routes`
#[derive(Debug, Subcommand)]
pub(crate) enum RoutesVerb {
    /// List the routing engines and the options that each reads
    Engines(super::TableArgs),
    /// Route a fabric, and write down the routing in the shapes of OpenSM's files
    Compute(Box<ComputeArgs>),
    /// Prove a routing that was written down, or find what is wrong with it
    ///
    /// Reads what `weft routes compute --dump` or OpenSM (with -D 0x43) wrote: opensm-lfts.dump or opensm.fdbs, guid2lid, and
    /// as far as they are there opensm-sl2vl.dump, ibdmchk.psl and report.json. The exit code is 1 when packets are lost or
    /// may wait for each other for ever, or when a host with a cable has no LID.
    Verify(VerifyArgs),
    /// Route a fabric by several engines and put their quality side by side
    Compare(Box<CompareArgs>),
}

/// `routes compute`
#[derive(Debug, Args)]
pub(crate) struct ComputeArgs {
    /// The cabling, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// Engines to try, in order. Then come those of `auto`, unless the list has `no_fallback`: minhop if it is proved
    /// deadlock-free, updn, dfsssp, lash, and at last minhop unproved
    #[arg(long, value_name = "ENGINE,…", default_value = "auto")]
    pub(crate) engine: String,

    /// Write the routing into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dump: Option<PathBuf>,

    /// Write cables and tables as a graph for ORCS
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,

    /// What the engines are told
    #[command(flatten)]
    pub(crate) routing: RoutingArgs,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a fabric is routed from.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Routing")]
pub(crate) struct RoutingArgs {
    /// What engines are told
    #[command(flatten)]
    pub(crate) engine: super::EngineArgs,

    /// Who has which LIDs, as OpenSM's guid2lid file; by default what the cabling's file says, else in order of GUIDs
    #[arg(long, value_name = "FILE", conflicts_with = "lmc")]
    pub(crate) lids: Option<PathBuf>,

    /// Each host's port has 2^LMC LIDs, in order of GUIDs
    #[arg(long, value_name = "LMC", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) lmc: Option<u8>,

    /// Give each host's port this many LIDs more, for virtual functions
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) vms: u16,
}

/// `routes verify`
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The cabling, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// The folder that the routing was written into
    pub(crate) folder: PathBuf,

    /// The routing that is in force before: verify what packets meet while switches change from that one to this one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) from: Option<PathBuf>,

    /// The partitions whose isolation is to be kept
    #[arg(long, value_name = "FILE")]
    pub(crate) partitions: Option<PathBuf>,

    /// Nodes that serve management alone, besides the aggregation nodes that are recognised: GUIDs, descriptions or
    /// ids, separated by commas, or a file with one on each line
    #[arg(long, value_name = "FILE|LIST")]
    pub(crate) management_nodes: Option<String>,

    /// How many data lanes there are: packets on others are dropped
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) lanes: u8,

    /// Threads that compute; by default one for every core
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) threads: usize,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `routes compare`
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The cabling, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// The engines to compare
    #[arg(long, value_name = "ENGINE,…", value_delimiter = ',', required = true)]
    pub(crate) engines: Vec<String>,

    /// The traffic: bisect, bisect_fb_sym, alltoall, gather, scatter, ring, tree, bruck, recdbl, neighbor[:COUNT], rand, shift,
    /// null, or two against each other as in ptrnvsptrn:gather,alltoall
    #[arg(long, default_value = "bisect")]
    pub(crate) pattern: String,

    /// Of two patterns, how many hosts run the first one; by default half of them
    #[arg(long, value_name = "COUNT")]
    pub(crate) victims: Option<usize>,

    /// Only the members of this partition of the file of --partitions take part
    #[arg(long, value_name = "NAME", requires = "partitions")]
    pub(crate) partition: Option<String>,

    /// How often hosts are drawn
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,

    /// The seed by which they are drawn
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// What the engines are told
    #[command(flatten)]
    pub(crate) routing: RoutingArgs,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
