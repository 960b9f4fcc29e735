//! The arguments about lanes, lifetimes, and notices to hosts about paths.

use clap::Args;
use weft_sm::{PartEnforce, Signalling};

use super::choice::{Word, choice};

/// Options of lanes, lifetimes, partitions and paths.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Subnet manager")]
pub(crate) struct LaneArgs {
    /// Give management its own lane: service level 15 on the highest data lane that every link has
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) management_lane: bool,

    /// Weight all data lanes equally; false puts lane 0 first, as OpenSM does
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) equal_lanes: bool,

    /// Maximum data lanes of a link: 1, 2, 4, 8 or 15
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = lane_count)]
    pub(crate) max_op_vls: u8,

    /// HOQLife of switch ports towards switches, 4.096 µs × 2^POWER; 20 and above is infinite
    #[arg(long, visible_alias = "head-of-queue-lifetime", value_name = "POWER", default_value_t = 0x12, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) hoq_lifetime: u8,

    /// HOQLife of switch ports towards hosts, as above
    #[arg(long, visible_alias = "leaf-head-of-queue-lifetime", value_name = "POWER", default_value_t = 0x10, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) leaf_hoq_lifetime: u8,

    /// SwitchLifeTime, 4.096 µs × 2^POWER; 20 and above is infinite
    #[arg(long, value_name = "POWER", default_value_t = 0x12, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) packet_life_time: u8,

    /// VLStallCount: consecutive packets dropped at the head of a lane's queue before the lane is stalled
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=7))]
    pub(crate) vl_stall_count: u8,

    /// Side of leaf switch ports that enforces partitions
    #[arg(long, default_value = "both", value_parser = choice(PART_ENFORCE))]
    pub(crate) part_enforce: PartEnforce,

    /// Way in which hosts hear of paths that rerouting has changed, by trap 69
    #[arg(long, value_name = "METHOD", default_value = "hybrid", value_parser = choice(SIGNALLING))]
    pub(crate) signalling: Signalling,

    /// Accept repath requests with the key of --sa-key only
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) repath_needs_key: bool,

    /// Tell a requester without the key of --sa-key only of ports that it shares a partition with
    #[arg(long, requires = "partitions")]
    pub(crate) sa_partitions: bool,
}

/// Where switches enforce partitions.
const PART_ENFORCE: &[Word<PartEnforce>] = &[
    ("both", "Packets from and to the host", PartEnforce::Both),
    ("in", "Packets from the host", PartEnforce::In),
    ("out", "Packets to the host", PartEnforce::Out),
    ("off", "None", PartEnforce::Off),
];

/// How hosts hear of changed paths.
const SIGNALLING: &[Word<Signalling>] = &[
    ("off", "Hosts hear nothing, as with OpenSM", Signalling::Off),
    (
        "wildcard",
        "After every routing all subscribers hear that all paths are to be asked for again",
        Signalling::Wildcard,
    ),
    ("repath", "Source and destination of each changed path hear its new service level", Signalling::Repath),
    ("hybrid", "As wildcard, but only when a path has changed", Signalling::Hybrid),
];

fn lane_count(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(count @ (1 | 2 | 4 | 8 | 15)) => Ok(count),
        _ => Err("a link has 1, 2, 4, 8 or 15 data lanes".into()),
    }
}
