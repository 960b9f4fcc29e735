//! Slots of virtual machines: what sits in a virtual function, and what a manager of virtual machines has done with it.
//!
//! ```text
//!            boot                freeze              export: unplugged, an image
//!   empty ─────────▶ running ─────────────▶ frozen ──────────────────────────────┐
//!     ▲ │   free ───────▲  ▲                │  ▲ │                               ▼
//!     │ │               │  └─── resume ─────┘  └─┘                       import, at another node
//!     │ └── import ──▶ imported                │ release
//!     └────────── unplug, from any ◀───────────┘
//!                       └── activate: imported to running
//!   reserve: an empty or free slot is kept for a machine that will come, and stays as it is
//! ```
//!
//! Slots are adapters with fixed cable and place ([`Request::OpenSlot`](crate::Request::OpenSlot)).
//! The GUIDs of a device change only while its link is down, and with them go all settings of a
//! subnet manager and programs, as when an adapter is switched off and on. An empty slot is
//! unplugged: the vSwitch's port is Down. A free one is plugged in and unused (prepopulated LIDs).
//!
//! Every command has an *epoch*, and a slot remembers the highest, also when it is empty. A command of a lower one is refused; one
//! that was carried out already is answered as done. So a command may be repeated, and one that is late does no harm. Nothing is
//! resumed but by command.

mod judge;
mod refusal;
mod slots;

use serde::{Deserialize, Serialize};
use weft_device::DataAccount;
use weft_host::stack::Image;
pub use weft_vocabulary::vm::SlotState;
use weft_wire::{Guid, PKey};

use crate::DeviceId;
pub(crate) use judge::{Act, check};
pub use refusal::VmRefusal;
pub(crate) use slots::{Slot, Slots};

/// The longest name of a virtual machine, in bytes: it is the node's description too.
pub const VM_NAME_BYTES_MAX: usize = 64;

/// What a virtual machine takes along from slot to slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmIdentity {
    /// The GUID of the node.
    pub guid: Guid,
    /// The GUID of its port.
    pub port_guid: Guid,
    /// The node's text.
    pub description: String,
    /// Its partitions. The subnet manager writes them; the slot only tells them.
    pub p_keys: Vec<PKey>,
    /// Its share of a path's bandwidth, for routing engines that weigh; the slot only tells it.
    pub weight: u32,
    /// What it moves in each direction at most, in Mb/s of fabric time; 0 is no limit but the adapter's.
    pub rate_mbps: u32,
}

/// A step of a virtual machine's life, at one slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmCommand {
    /// The name of the virtual machine.
    pub vm: String,
    /// The epoch of the slot from now on; above 0, and never lower than before.
    pub epoch: u64,
    /// What to do.
    pub step: VmStep,
}

/// What to do with a virtual machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VmStep {
    /// Begin it: its identity is plugged into an empty slot, or takes a free one. A free one that has the identity already
    /// stays plugged in.
    Boot(VmIdentity),
    /// Keep an empty or free slot for it.
    Reserve,
    /// Suspend its host software. The function stays plugged in and drops what arrives.
    Freeze,
    /// Unplug the frozen function and give its image.
    Export,
    /// Plug it into an empty slot, or a free one, whose identity then goes, or one that is kept for it. It stays suspended.
    Import {
        /// Its identity.
        identity: VmIdentity,
        /// The epoch in which it was frozen.
        from_epoch: u64,
        /// Its image; none where no host software is emulated, or where the machine was shut down and begins again.
        image: Option<Box<Image>>,
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
    /// End it, whatever it does. A command without a name ends whatever is in the slot, if anything is.
    Unplug {
        /// The identity that is plugged in instead; none leaves the slot empty.
        leave: Option<VmIdentity>,
    },
}

impl VmStep {
    /// The step's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Boot(_) => "boot",
            Self::Reserve => "reserve",
            Self::Freeze => "freeze",
            Self::Export => "export",
            Self::Import { .. } => "import",
            Self::Activate => "activate",
            Self::Release { .. } => "release",
            Self::Resume => "resume",
            Self::Unplug { .. } => "unplug",
        }
    }
}

/// A slot as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotStatus {
    /// The adapter.
    pub device: DeviceId,
    /// The text that its device had at first.
    pub name: String,
    /// How it is used.
    pub state: SlotState,
    /// The virtual machine in it, or the one that it is kept for.
    pub vm: Option<String>,
    /// The highest epoch of a command; 0 before the first.
    pub epoch: u64,
    /// The identity in it. An empty slot has the one that it began with.
    pub identity: VmIdentity,
    /// Whether it is plugged in.
    pub plugged: bool,
    /// The virtual machine that left it last, and its epoch.
    pub left: Option<(String, u64)>,
}

/// What a step has done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VmDone {
    /// The slot now.
    pub slot: SlotStatus,
    /// What the lanes of the device had moved and held that went with another identity. None when the device stayed.
    pub removed: Option<Box<DataAccount>>,
    /// Sets of management that it had received.
    pub removed_sets: u64,
    /// The image that was exported; none from a function without host software.
    pub image: Option<Box<Image>>,
}
