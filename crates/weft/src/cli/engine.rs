//! The arguments that routing engines read.

use std::path::PathBuf;

use clap::Args;
use weft_routing::PftreeOrder;

use super::pm::share;

/// Options of the engines.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Routing")]
pub(crate) struct EngineArgs {
    /// Maximum data lanes of a routing [default: 8]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) lanes: Option<u8>,

    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) threads: usize,

    /// Root switches: a file of GUIDs
    #[arg(long, value_name = "FILE")]
    pub(crate) roots: Option<PathBuf>,

    /// Compute nodes: a file of port or node GUIDs
    #[arg(long, visible_alias = "cn", value_name = "FILE")]
    pub(crate) compute_nodes: Option<PathBuf>,

    /// I/O nodes: a file of port or node GUIDs
    #[arg(long, visible_alias = "io", value_name = "FILE")]
    pub(crate) io_nodes: Option<PathBuf>,

    /// Nodes that serve management alone and may sit at any switch of a tree, in addition to the aggregation nodes that are
    /// recognised: GUIDs, descriptions or ids, separated by commas, or a file with one on each line
    #[arg(long, value_name = "FILE|LIST")]
    pub(crate) management_nodes: Option<String>,

    /// Saved tables for the engine `file`, as opensm-lfts.dump. Given several times, the first that fit the fabric are used
    #[arg(long, value_name = "FILE")]
    pub(crate) lfts: Vec<PathBuf>,

    /// Hops of the tables of --lfts, as opensm-lid-matrix.dump; longer paths are counted
    #[arg(long, value_name = "FILE", requires = "lfts")]
    pub(crate) lid_matrix: Vec<PathBuf>,

    /// Lanes of the tables of --lfts, as opensm-sl2vl.dump [default: level n takes lane n]
    #[arg(long, value_name = "FILE", requires = "lfts")]
    pub(crate) sl2vl: Vec<PathBuf>,

    /// Service levels of the tables of --lfts, as ibdmchk.psl [default: level 0 for all pairs]
    #[arg(long, value_name = "FILE", requires = "lfts")]
    pub(crate) psl: Vec<PathBuf>,

    /// Maximum hops of an I/O node's path towards the leaves before it goes up
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_reverse_hops: Option<u8>,

    /// Order in which to route hosts: a file of port or node GUIDs, or `received` for the order of what they receive, the most
    /// first, as the file of --received or a performance manager with --learn-weights says
    #[arg(long, value_name = "FILE|received")]
    pub(crate) order: Option<PathBuf>,

    /// Partitions and their isolation: a file in OpenSM's grammar
    #[arg(long, value_name = "FILE")]
    pub(crate) partitions: Option<PathBuf>,

    /// Weights of the traffic that hosts receive: a file of port or node GUIDs with weights, or `received` for those that a subnet
    /// manager learns from the counts of a performance manager with --learn-weights
    #[arg(long, value_name = "FILE|received")]
    pub(crate) weights: Option<PathBuf>,

    /// Data that hosts received, to compute weights from: a file of port or node GUIDs with counts
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    pub(crate) received: Option<PathBuf>,

    /// Weights of the traffic that virtual machines receive: a file of weights by LID, and for a subnet manager by port or
    /// node GUID of the virtual function
    #[arg(long, value_name = "FILE")]
    pub(crate) vm_weights: Option<PathBuf>,

    /// Share of isolation against weights, 0 to 1; weights have the rest
    #[arg(long, value_name = "SHARE", value_parser = thousandths)]
    pub(crate) isolation_share: Option<u32>,

    /// Order in which pftree takes the hosts of a switch: interleaved by partition, one partition after another, or as they come in
    /// the fabric [default: interleaved]
    #[arg(long, value_name = "ORDER", value_parser = pftree_order)]
    pub(crate) pftree_order: Option<PftreeOrder>,

    /// Choose switches by the printed algorithm, which lets an isolated partition take all of them
    #[arg(long)]
    pub(crate) literal: bool,

    /// Have the printed algorithm leave one switch to the others
    #[arg(long, requires = "literal")]
    pub(crate) leave_one: bool,

    /// Seconds that a program of `exec:` may compute [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) exec_timeout: Option<u64>,

    /// Address space that each process of a program of `exec:` may have, and the longest answer, in MiB [default: 256]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) exec_memory: Option<u64>,
}

fn pftree_order(text: &str) -> Result<PftreeOrder, String> {
    PftreeOrder::named(text).ok_or_else(|| {
        format!(
            "an order is {}",
            PftreeOrder::ALL.map(PftreeOrder::name).join(", ").replace(", fabric", " or fabric")
        )
    })
}

/// A share from 0 to 1, in thousandths.
fn thousandths(text: &str) -> Result<u32, String> {
    Ok((share(text)? * 1000.0).round() as u32)
}
