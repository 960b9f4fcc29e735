//! The arguments about lanes, lifetimes, and what hosts are told of paths.

use clap::{Args, ValueEnum};

/// What the subnet manager is told about lanes, lifetimes, partitions and paths.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Subnet manager")]
pub(crate) struct LaneArgs {
    /// Whether management has a lane of its own: service level 15 on the highest data lane that every link has
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) management_lane: bool,

    /// Whether all data lanes have equal weights and none goes first; otherwise lane 0 does, as in OpenSM
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) equal_lanes: bool,

    /// The most data lanes that a link may use: 1, 2, 4, 8 or 15
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = lane_count)]
    pub(crate) max_op_vls: u8,

    /// How long a packet may head its queue at a switch port towards a switch: 4.096 µs times 2 to this power; 20 and
    /// more is for ever
    #[arg(long, visible_alias = "head-of-queue-lifetime", value_name = "POWER", default_value_t = 0x12, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) hoq_lifetime: u8,

    /// The same towards a host
    #[arg(long, visible_alias = "leaf-head-of-queue-lifetime", value_name = "POWER", default_value_t = 0x10, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) leaf_hoq_lifetime: u8,

    /// How long a packet may be in a switch: 4.096 µs times 2 to this power; 20 and more is for ever
    #[arg(long, value_name = "POWER", default_value_t = 0x12, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) packet_life_time: u8,

    /// How many packets are dropped at the head of a lane's queue in a row until the lane counts as stalled
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=7))]
    pub(crate) vl_stall_count: u8,

    /// At which side of their switch ports packets without a P_Key of the host's are dropped, where there are partitions
    #[arg(long, value_enum, default_value_t = PartEnforce::Both)]
    pub(crate) part_enforce: PartEnforce,

    /// Whether subscribers are told when another routing has changed paths (trap 69)
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) repath_on_reroute: bool,

    /// Whether only those who show the SM_Key may have hosts told of other paths
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) repath_needs_key: bool,
}

/// Where switches look at P_Keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartEnforce {
    /// Coming from the host and going to it
    Both,
    /// Coming from the host
    In,
    /// Going to the host
    Out,
    /// Not at all
    Off,
}

fn lane_count(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(count @ (1 | 2 | 4 | 8 | 15)) => Ok(count),
        _ => Err("a link has 1, 2, 4, 8 or 15 data lanes".into()),
    }
}
