//! Slots of virtual machines in agents: what sits in a virtual function, and the steps of a virtual machine's life there.

use serde::{Deserialize, Serialize};
pub use weft_vocabulary::vm::SlotState;
use weft_wire::{Lid, PKey};

use crate::{HexBytes, HexGuid, Incarnation};

/// The most bytes of an image in one request or answer: with two digits for each, half of the longest request.
pub const IMAGE_PART_BYTES_MAX: usize = crate::REQUEST_BYTES_MAX / 4;

/// What a virtual machine takes along from slot to slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmIdentity {
    /// The GUID of the node.
    pub node: HexGuid,
    /// The GUID of its port.
    pub port: HexGuid,
    /// The node's text.
    pub description: String,
    /// Its partitions. The subnet manager writes them; the slot only tells them.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<u16>"))]
    pub p_keys: Vec<PKey>,
    /// Its share of a path's bandwidth, for routing engines that weigh; the slot only tells it.
    #[serde(default = "one")]
    pub weight: u32,
    /// What it moves in each direction at most, in Mb/s of fabric time; 0 is no limit but the adapter's.
    #[serde(default)]
    pub rate_mbps: u32,
}

fn one() -> u32 {
    1
}

/// One slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slot {
    /// Its name for good: the NodeGUID of the function at first.
    pub slot: HexGuid,
    /// What people call it: the function's first description.
    pub name: String,
    /// The NodeGUID of its adapter's vSwitch.
    pub vswitch: HexGuid,
    /// The vSwitch's port that leads to it.
    pub vswitch_port: u8,
    /// How it is used.
    pub state: SlotState,
    /// The virtual machine in it, or the one that it is kept for.
    pub vm: Option<String>,
    /// The highest epoch of an order; 0 before the first.
    pub epoch: u64,
    /// The identity in it. An empty slot has the one that it began with.
    pub identity: VmIdentity,
    /// The LID of its port; 0 as long as it has none.
    #[serde(default)]
    pub lid: Lid,
    /// Whether it is plugged in.
    pub plugged: bool,
    /// The virtual machine that left it last.
    pub left: Option<Departed>,
}

/// A virtual machine that has left a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Departed {
    /// Its name.
    pub vm: String,
    /// The epoch in which it left.
    pub epoch: u64,
}

/// A step of a virtual machine, at one slot of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmOrder {
    /// The life of the agent that is meant: virtual machines end with their agent.
    pub incarnation: Incarnation,
    /// The life of the manager of virtual machines. The agent remembers the highest, and refuses lower ones.
    pub generation: u64,
    /// The manager's name, if it is not the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// The slot.
    pub slot: HexGuid,
    /// The name of the virtual machine, 1 to 64 bytes; in `unplug` it may be empty, which means whatever is in the slot.
    pub vm: String,
    /// The epoch of the slot from now on, from 1. A lower one than the slot's is refused.
    pub epoch: u64,
    /// What to do.
    pub step: VmStep,
}

/// What to do with a virtual machine. A step that was carried out already is answered as if it were done now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VmStep {
    /// Begin it in an empty or free slot. A free one that has the identity already stays plugged in.
    Boot {
        /// Its identity.
        identity: VmIdentity,
    },
    /// Keep an empty or free slot for it.
    Reserve,
    /// Suspend its host software. The function stays plugged in and drops what arrives.
    Freeze,
    /// Unplug the frozen function, and give a part of its image.
    Export {
        /// Bytes of the image before the part.
        offset: u32,
    },
    /// Keep a part of an image that is to be imported here. Parts come in order; the first one begins again.
    Part {
        /// Bytes of the image before it.
        offset: u32,
        /// The part.
        bytes: HexBytes,
    },
    /// Plug it into an empty, free or reserved slot, suspended, with the image whose parts came before.
    Import {
        /// Its identity.
        identity: VmIdentity,
        /// The epoch in which it was frozen.
        from_epoch: u64,
        /// Bytes of its image; 0 where hosts have no emulated software, or where it was shut down and begins again.
        image_bytes: u32,
    },
    /// Let what was imported run.
    Activate,
    /// The frozen one runs on another host: it leaves this slot.
    Release {
        /// The identity that is plugged in instead; none leaves the slot empty.
        leave: Option<VmIdentity>,
    },
    /// Let the frozen one run again, in this epoch or a later one: its move is undone.
    Resume,
    /// End it, whatever it does.
    Unplug {
        /// The identity that is plugged in instead; none leaves the slot empty.
        leave: Option<VmIdentity>,
    },
}

/// A part of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImagePart {
    /// Bytes of the whole image; 0 where hosts have no emulated software.
    pub total: u32,
    /// Bytes before the part.
    pub offset: u32,
    /// The part.
    pub bytes: HexBytes,
}
