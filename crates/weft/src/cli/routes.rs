//! The arguments about routings.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `routes`
#[derive(Debug, Subcommand)]
pub(crate) enum RoutesVerb {
    /// List the routing engines and the options that each reads
    Engines(super::TableArgs),
    /// Route a fabric, and write the routing in the formats of OpenSM's files
    Compute(Box<ComputeArgs>),
    /// Verify a saved routing
    ///
    /// Reads the files of `weft routes compute --dump` or OpenSM (with -D 0x43): opensm-lfts.dump or opensm.fdbs, guid2lid, and
    /// if they exist opensm-sl2vl.dump, ibdmchk.psl and report.json. The exit code is 1 if packets are lost or
    /// may wait for each other for ever, or if a host with a cable has no LID.
    Verify(VerifyArgs),
    /// Route a fabric with several engines and compare their quality
    Compare(Box<CompareArgs>),
}

/// `routes compute`
#[derive(Debug, Args)]
pub(crate) struct ComputeArgs {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// Engines to try, in order. Then come those of `auto`, unless the list has `no_fallback`: minhop if it is proved
    /// deadlock-free, updn, dfsssp, lash, and last minhop unproved
    #[arg(long, value_name = "ENGINE,…", default_value = "auto")]
    pub(crate) engine: String,

    /// Write the routing into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dump: Option<PathBuf>,

    /// Write cables and tables as a graph for ORCS; where the fabric has several pieces, into FILE with `-1`, `-2` and so on before its
    /// extension
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Options of the engines
    #[command(flatten)]
    pub(crate) routing: RoutingArgs,
}

/// Inputs of a routing.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Routing")]
pub(crate) struct RoutingArgs {
    /// Options of the engines
    #[command(flatten)]
    pub(crate) engine: super::engine::EngineArgs,

    /// LIDs of the ports, as OpenSM's guid2lid file [default: those of the topology file, else in order of GUIDs]
    #[arg(long, value_name = "FILE", conflicts_with = "lmc")]
    pub(crate) lids: Option<PathBuf>,

    /// LMC of host ports: each has 2^LMC LIDs, in order of GUIDs
    #[arg(long, value_name = "LMC", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) lmc: Option<u8>,

    /// Additional LIDs of each host port, for virtual functions
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) vms: u16,
}

/// `routes verify`
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// Folder with the saved routing
    pub(crate) folder: PathBuf,

    /// Folder with the routing before: verify packets while switches change from that one to this one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) from: Option<PathBuf>,

    /// Partitions whose isolation to verify: a file
    #[arg(long, value_name = "FILE")]
    pub(crate) partitions: Option<PathBuf>,

    /// Nodes that serve management alone, in addition to recognised aggregation nodes: GUIDs, descriptions or
    /// ids, separated by commas, or a file with one on each line
    #[arg(long, value_name = "FILE|LIST")]
    pub(crate) management_nodes: Option<String>,

    /// Number of data lanes; switches drop packets on others
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) lanes: u8,

    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) threads: usize,

    /// Write a picture of the tables: load of each cable, a packet that is lost, a circle of waits; the file's end says the format
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `routes compare`
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// Engines to compare
    #[arg(long, value_name = "ENGINE,…", value_delimiter = ',', required = true)]
    pub(crate) engines: Vec<String>,

    /// Traffic: bisect, bisect_fb_sym, alltoall, gather, scatter, ring, tree, bruck, recdbl, neighbor[:COUNT], rand, shift,
    /// null, or two against each other as in ptrnvsptrn:gather,alltoall
    #[arg(long, default_value = "bisect")]
    pub(crate) pattern: String,

    /// Number of hosts that run the first of two patterns [default: half]
    #[arg(long, value_name = "COUNT")]
    pub(crate) victims: Option<usize>,

    /// Partition of the file of --partitions whose members take part
    #[arg(long, value_name = "NAME", requires = "partitions")]
    pub(crate) partition: Option<String>,

    /// Number of random draws of hosts
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,

    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write a picture of the load for each engine, into FILE with the engine's name before its extension
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,

    /// Print JSON instead of a table: a list where the fabric has several pieces
    #[arg(long)]
    pub(crate) json: bool,

    /// Options of the engines
    #[command(flatten)]
    pub(crate) routing: RoutingArgs,
}
