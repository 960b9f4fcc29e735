//! Options of the engines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid};

use crate::files::SavedRouting;
use crate::partitions::Partitions;

/// How many data lanes engines use at most where nothing else is said: what most adapters and switches have.
pub const LANES_DEFAULT: u8 = 8;

/// How many data lanes there are (IBA 7.6.3); lane 15 is for management.
pub const LANES_MAX: u8 = 15;

weft_wire::defaults! {
    /// The options of all engines; [`crate::Engine::options`] names those that an engine reads.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct EngineOptions {
        /// How many threads compute; 0 is one for every core. No result depends on it.
        pub threads: usize = 0,
        /// The most data lanes that a routing may use, 1 to [`LANES_MAX`].
        pub lanes: u8 = LANES_DEFAULT,
        /// The switches that are roots, by node GUID; found where empty.
        pub roots: Vec<Guid> = Vec::new(),
        /// The ports that are compute nodes, by port or node GUID; all hosts where empty.
        pub compute_nodes: Vec<Guid> = Vec::new(),
        /// The ports that are I/O nodes, by port or node GUID.
        pub io_nodes: Vec<Guid> = Vec::new(),
        /// The nodes that serve management alone besides those that [`crate::ManagementNodes`] recognises, by port or node
        /// GUID.
        pub management_nodes: Vec<Guid> = Vec::new(),
        /// What the engine `file` takes: the first that fits the fabric. One alone is taken as it is.
        pub saved: Vec<SavedRouting> = Vec::new(),
        /// How many hops towards the leaves an I/O node's path may take before it goes up.
        pub max_reverse_hops: u8 = 0,
        /// In which order hosts are routed, by port or node GUID; those not named follow in the usual order.
        pub order: Vec<Guid> = Vec::new(),
        /// Who may talk to whom, and how well each partition is to be isolated.
        pub partitions: Option<Partitions> = None,
        /// How much traffic a host receives, by port or node GUID, in the range of the engine; 1 where nothing is said.
        pub weights: BTreeMap<Guid, u32> = BTreeMap::new(),
        /// How much traffic the virtual machine with a LID receives, out of [`WEIGHT_OF_A_HOST`] for its whole host;
        /// an equal share where nothing is said.
        pub vm_weights: BTreeMap<Lid, u32> = BTreeMap::new(),
        /// The share of isolation in the combined objective, in thousandths; the rest is the weights'.
        pub isolation_share: u32 = 500,
        /// In which order `pftree` and its like take the hosts of a switch.
        pub pftree_order: PftreeOrder = PftreeOrder::default(),
        /// Whether `pftree-ext` keeps to the letter of its source, which sets no limit to the switches that a partition takes.
        pub literal: bool = false,
        /// Whether partitions with links of their own leave a switch to the others where the letter has them take all.
        pub leave_one: bool = false,
        /// How long a program may compute, in milliseconds ([`crate::Outside`]).
        pub exec_timeout_ms: u64 = 10_000,
        /// How much address space each process of a program may have, in bytes; its answer is no longer.
        pub exec_memory_bytes: u64 = 256 << 20,
    }
}

weft_wire::named! {
    /// In which order the hosts of a switch are routed by partitions (Zahid 2016, section 5).
    #[derive(Default)]
    pub enum PftreeOrder {
        /// By algorithm 2: the hosts of a partition as many places apart as there are cables up, so that they meet the same cable.
        #[default]
        Interleaved = "interleaved",
        /// One partition after another.
        Partition = "partition",
        /// As they come in the fabric.
        Fabric = "fabric",
    }
}

/// The weight of all virtual machines of a host together, where none is given.
pub const WEIGHT_OF_A_HOST: u32 = 5040;
