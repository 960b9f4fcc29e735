use serde::Serialize;
use weft_host::stack::ImageError;
use weft_wire::{Guid, PKey};

use super::{SlotState, VM_NAME_BYTES_MAX};

/// Why a step of a virtual machine is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum VmRefusal {
    /// The device is no slot.
    #[error("it is no slot of virtual machines")]
    NoSlot,
    /// The name is empty, too long, or has characters that cannot be printed.
    #[error("a virtual machine's name has 1 to {VM_NAME_BYTES_MAX} printable bytes")]
    Name,
    /// Epochs begin with 1.
    #[error("epoch 0 is none")]
    Epoch,
    /// A GUID that cannot be anybody's.
    #[error("GUID {0} cannot be a function's")]
    Guid(Guid),
    /// Another function that is plugged in here has the GUID.
    #[error("GUID {guid} is plugged in here already, by {owner}")]
    GuidTaken {
        /// The GUID.
        guid: Guid,
        /// Its owner's description.
        owner: String,
    },
    /// More partitions than a port has room for.
    #[error("it has {0} partitions, and the port has room for {1}")]
    Partitions(usize, u16),
    /// Another virtual machine is in the slot.
    #[error("virtual machine {vm} is in it, {state}")]
    Occupied {
        /// The one in the slot.
        vm: String,
        /// What it does.
        state: SlotState,
    },
    /// The virtual machine is not in the slot.
    #[error("virtual machine {vm} is not in it: {instead}")]
    NotHere {
        /// The one that was named.
        vm: String,
        /// What is.
        instead: String,
    },
    /// The virtual machine is in another slot here.
    #[error("virtual machine {vm} is {state} in another slot of this agent")]
    Elsewhere {
        /// Its name.
        vm: String,
        /// What it does there.
        state: SlotState,
    },
    /// The command is of an epoch that is over.
    #[error("epoch {given} of virtual machine {vm} is over, {known} is the latest")]
    OldEpoch {
        /// Its name.
        vm: String,
        /// The command's.
        given: u64,
        /// The latest one known.
        known: u64,
    },
    /// The command is of an epoch that is over for the slot.
    #[error("epoch {given} is over, {known} is the latest of the slot")]
    OldSlotEpoch {
        /// The command's.
        given: u64,
        /// The latest one known.
        known: u64,
    },
    /// The step does not follow from what the virtual machine does.
    #[error("virtual machine {vm} is {state}, and {step} needs it {needs}")]
    State {
        /// Its name.
        vm: String,
        /// What it does.
        state: SlotState,
        /// The step.
        step: &'static str,
        /// What it should do.
        needs: SlotState,
        /// What can be done instead.
        hint: &'static str,
    },
    /// A virtual machine of this name and epoch is there with another identity.
    #[error("virtual machine {vm} is here in this epoch with other GUIDs")]
    OtherIdentity {
        /// Its name.
        vm: String,
    },
    /// The port that a virtual machine arrived at lacks a partition that its paths use.
    #[error("virtual machine {vm} uses partition {:#06x}, which the port's table does not have", p_key.0)]
    Partition {
        /// Its name.
        vm: String,
        /// The partition.
        p_key: PKey,
    },
    /// The image cannot be made or taken.
    #[error("virtual machine {vm}: {reason}")]
    Image {
        /// Its name.
        vm: String,
        /// What is wrong.
        reason: String,
    },
}

impl VmRefusal {
    pub(crate) fn image(vm: &str, error: &ImageError) -> Self {
        Self::Image { vm: vm.to_owned(), reason: error.to_string() }
    }

    /// What to do.
    pub fn hint(&self) -> String {
        match self {
            Self::NoSlot => "use a virtual function of a laboratory with --vfs".to_owned(),
            Self::Name | Self::Guid(_) => "choose another one".to_owned(),
            Self::Epoch => "the first boot is epoch 1".to_owned(),
            Self::GuidTaken { owner, .. } => format!("unplug {owner} first, or choose another GUID"),
            Self::Partitions(_, room) => format!("leave it {room} of them"),
            Self::Occupied { vm, .. } => format!("choose another slot, or unplug {vm}"),
            Self::NotHere { .. } => "look for it in the slots of all agents".to_owned(),
            Self::Elsewhere { .. } => "use that slot, or unplug it there".to_owned(),
            Self::OldEpoch { .. } | Self::OldSlotEpoch { .. } => {
                "read the slots again: somebody has gone on with it".to_owned()
            }
            Self::State { hint, .. } => (*hint).to_owned(),
            Self::OtherIdentity { .. } => "begin another epoch with the new identity".to_owned(),
            Self::Partition { .. } => "activate it when the subnet manager has written the table".to_owned(),
            Self::Image { .. } => "freeze it, and export it again".to_owned(),
        }
    }
}
