//! The fabric, its rates and its managers.

use serde::Serialize;
use weft_device::{Crossbar, LaneShare};
use weft_host::stack::{HandlerTimes, Notices, PathCache};
use weft_machine::Time;
use weft_pm::DetectorKind;
use weft_routing::PftreeOrder;
use weft_routing::files::SavedFiles;
use weft_sm::Signalling;
use weft_wire::Mtu;

use super::partitions::{PartitionsSpec, WeightSpec};

/// Where the cabling comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FabricSpec {
    /// A topology file, relative to the experiment's.
    File(String),
    /// A generator of `weft topo gen`.
    Generated {
        /// What it makes.
        shape: Shape,
        /// How many ports every switch has; as many as it needs where this is `None`.
        radix: Option<u8>,
        /// Hosts in all, on trees.
        hosts: Option<u32>,
        /// The rate of every cable, as `4xQDR`.
        rate: String,
        /// The rate of the cables to hosts where it is another.
        host_rate: Option<String>,
        /// The number of the first host: 0 as `weft topo gen` has it, or 1 as the papers count.
        first_host: u32,
    },
}

/// A kind of generated fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// An extended generalised fat tree, the hosts' level first.
    Xgft {
        /// Children of a node of each level above the hosts.
        children: Vec<u32>,
        /// Parents of a node of each level below the roots.
        parents: Vec<u32>,
        /// Parallel cables between levels; one each where this is empty.
        parallel: Vec<u32>,
    },
    /// Switches in a ring.
    Ring {
        /// How many.
        switches: u32,
        /// Hosts on each.
        hosts: u32,
    },
    /// A grid of switches.
    Mesh {
        /// Its sides.
        sides: Vec<u32>,
        /// Hosts on each switch.
        hosts: u32,
    },
    /// A grid whose sides close.
    Torus {
        /// Its sides.
        sides: Vec<u32>,
        /// Hosts on each switch.
        hosts: u32,
    },
}

/// How fast and how deep everything is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// Whether packets take time.
    pub shaped: bool,
    /// Wall-clock nanoseconds in one nanosecond of fabric time.
    pub dilation: u32,
    /// What a host moves in each direction at most, in Mb/s of fabric time, whole packets counted; 0 is no limit but its link's.
    pub host_limit_mbps: u32,
    /// What the functions of a virtualised adapter move together in each direction at most, over the bus of their host, in Mb/s of
    /// fabric time, whole packets counted; 0 is no limit.
    pub host_bus_mbps: u32,
    /// The largest payload of a packet.
    pub mtu: Mtu,
    /// Packets that each input port and lane holds; where nothing is said, what the crossbar's profile has.
    pub buffer_packets: Option<u16>,
    /// How packets get from a switch's inputs to its outputs.
    pub crossbar: Crossbar,
    /// What becomes of the share of a switch's link that a lane does not use.
    pub lane_share: LaneShare,
    /// Whether switches cut through; otherwise they store and forward.
    pub cut_through: bool,
    /// Data lanes that traffic may use, the slow lane included and management's not.
    pub lanes: u8,
    /// The generation of hardware whose constants hold where the file says nothing else, by [`weft_device::Profile`]'s name.
    pub profile: Option<String>,
    /// The length of every cable, in metres.
    pub cable_m: u32,
    /// Cables of another length, by one of their ends or their name.
    pub cables: Vec<(String, u32)>,
    /// What a message costs a host at each of its ends, in nanoseconds of fabric time.
    pub message_overhead_ns: u32,
}

impl Rates {
    /// The largest payload, in bytes.
    pub fn mtu_bytes(&self) -> u16 {
        match self.mtu {
            Mtu::Bytes256 => 256,
            Mtu::Bytes512 => 512,
            Mtu::Bytes1024 => 1024,
            Mtu::Bytes4096 => 4096,
            _ => 2048,
        }
    }
}

/// The routing engines and their options.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSpec {
    /// Engines in the order in which they are tried, as `weft up --engine` takes them.
    pub chain: String,
    /// The most lanes that the engine uses; as many as [`Rates::lanes`] where nothing is said.
    pub lanes: Option<u8>,
    /// Roots, by name.
    pub roots: Vec<String>,
    /// How many hops towards the leaves an I/O node's path may take.
    pub max_reverse_hops: Option<u8>,
    /// I/O nodes, by name.
    pub io_nodes: Vec<String>,
    /// The order in which hosts are routed, by name.
    pub order: Vec<String>,
    /// Whether that is the order of what hosts receive, as the performance manager reports it.
    pub learn_order: bool,
    /// Saved tables for the engine `file`, as OpenSM writes them, relative to the experiment's file: the first that fit the
    /// fabric are used.
    pub lfts: Vec<String>,
    /// Hops that belong to those tables: none, or a file for each.
    pub lid_matrix: Vec<String>,
    /// Lanes that belong to those tables.
    pub sl2vl: Vec<String>,
    /// Service levels that belong to those tables, as ibdmchk reads them.
    pub psl: Vec<String>,
    /// The nodes that serve management alone, by name, besides those that are recognised.
    pub management_nodes: Vec<String>,
    /// Partitions; without any, all hosts talk to all.
    pub partitions: Option<PartitionsSpec>,
    /// In which order the hosts of a switch are taken by engines that read partitions.
    pub pftree_order: Option<PftreeOrder>,
    /// The weights of hosts.
    pub weights: Vec<WeightSpec>,
    /// The share of isolation in the combined objective, from 0 to 1.
    pub isolation_share: Option<f64>,
}

impl EngineSpec {
    /// The files of saved tables.
    pub(crate) fn saved(&self) -> SavedFiles<'_, String> {
        let Self { lfts, lid_matrix, sl2vl, psl, .. } = self;
        SavedFiles { lfts, lid_matrix, sl2vl, psl }
    }
}

/// Further options of the subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SmSpec {
    /// Whether management's datagrams have a service level and a lane of their own.
    pub management_lane: bool,
    /// How the manager tells hosts of other paths after a reroute: host-side reconfiguration.
    pub signalling: Signalling,
    /// Whether the traps from both ends of a cable are answered by one sweep.
    pub one_sweep_per_cable: bool,
    /// How long a packet may head its queue at a switch's port, in fabric time; none is for ever.
    pub hoq_life: Option<Time>,
    /// How long a packet may stay in a switch, in fabric time; none is for ever.
    pub switch_life: Option<Time>,
    /// The weight of each data lane in the low-priority table, in 64-byte units; one value serves all. All alike, and as
    /// the manager has them, where this is empty.
    pub weights: Vec<u8>,
    /// From one light sweep to the next; none is never.
    pub sweep_interval: Option<Time>,
}

weft_wire::named! {
    /// What the performance manager does.
    #[derive(Default)]
    pub enum PmMode {
        /// There is none.
        #[default]
        Off = "off",
        /// It sweeps and finds hot spots, and moves nothing.
        Watch = "watch",
        /// It moves flows to hot spots to the slow lane.
        On = "on",
        /// There is none, and packets to hot spots take the slow lane from the start: the papers' simulations.
        Oracle = "oracle",
    }
}

/// Options of the performance manager.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PmSpec {
    /// What it does.
    pub mode: PmMode,
    /// From one sweep to the next.
    pub interval: Time,
    /// The rules by which it finds hot spots.
    pub detector: DetectorKind,
    /// XmitWait ticks (4 ns) per second of fabric time above which a port is congested. 2 500 000 is 1 % of the time.
    pub threshold: u64,
    /// The same for a port that is to become a hot spot beside others. Where a file says nothing, 1.8 times the threshold:
    /// nine tenths of what a hot spot's port waits, where the threshold is half of it.
    pub further_threshold: u64,
    /// A congested host below this share of its link's rate contributes or suffers.
    pub utilisation_limit: f64,
    /// The slow lane's service level.
    pub slow_sl: u8,
    /// Sweeps in a row above the threshold to begin a hot spot, and below it to end one.
    pub hysteresis: (u32, u32),
    /// The least number of sweeps from one report of what hosts receive to the next, from which routing learns; 0 makes none.
    pub learn_weights: u32,
    /// Whether counters by lane are swept too.
    pub lanes: bool,
    /// What an oracle knows of: hot spots by name. Those of the mixes where this is empty.
    pub hot_spots: Vec<String>,
}

/// Congestion control (IBA annex A10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CongestionSpec {
    /// How easily a switch marks: 0 is never, 15 at the shallowest queue (A10.2.1.1.1).
    pub threshold: u8,
    /// The mean number of packets that go unmarked between two marked ones (Marking_Rate).
    pub marking_rate: u16,
    /// Packets below this size are never marked, in 64-byte units (Packet_Size).
    pub packet_size: u8,
    /// What a notification adds to the index (CCTI_Increase).
    pub increase: u8,
    /// How long until the index goes down by one, in 1.024 µs of fabric time (CCTI_Timer).
    pub timer: u16,
    /// The highest index (CCTI_Limit); the table has one entry more.
    pub limit: u16,
    /// The delay of index i is i times this over 2 to the shift, in times of a packet.
    pub slope: u16,
    /// The shift of every delay.
    pub shift: u16,
}

/// What hosts are like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostsSpec {
    /// Unacknowledged packets of a queue pair at most; the stack's own number where this is `None`.
    pub window_packets: Option<u32>,
    /// How long a queue pair waits for an acknowledgement, in wall-clock time.
    pub ack_timeout: Option<Time>,
    /// How often it sends again.
    pub retries: Option<u32>,
    /// Whether hosts heed repath and unpath notices.
    pub heed_repath: bool,
    /// Whether hosts keep path records.
    pub path_cache: PathCache,
    /// The notices that hosts subscribe to.
    pub notices: Notices,
    /// What their software takes to heed notices, in wall-clock time.
    pub handler_times: HandlerTimes,
}

/// Where the managers are attached, by host name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attach {
    /// The subnet manager; where `weft up` would attach it when nothing is said.
    pub sm: Option<String>,
    /// The performance manager; the next host that has no part in flows, or the subnet manager's, when nothing is said.
    pub pm: Option<String>,
}
