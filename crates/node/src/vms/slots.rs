//! The slots of a node, and the latest epochs of virtual machines.

use std::collections::BTreeMap;

use super::{SlotState, VmIdentity};
use crate::{DeviceId, NewDevice};

/// Virtual machines whose latest epochs are remembered; those that are in no slot and were heard of first go first.
const EPOCHS_MAX: usize = 4096;

/// One slot.
#[derive(Debug)]
pub(crate) struct Slot {
    /// What the device was made from at first: an empty slot's device has these GUIDs.
    pub(crate) first: NewDevice,
    /// How often its device was switched on again.
    pub(crate) renewals: u64,
    pub(crate) identity: VmIdentity,
    pub(crate) state: SlotState,
    pub(crate) vm: Option<String>,
    /// The highest epoch of a command.
    pub(crate) epoch: u64,
    pub(crate) left: Option<(String, u64)>,
}

/// All slots, and the latest epochs of virtual machines.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub(crate) all: BTreeMap<DeviceId, Slot>,
    /// The epoch, and how many had been heard of before.
    pub(crate) epochs: BTreeMap<String, (u64, u64)>,
    pub(crate) heard: u64,
}

impl Slots {
    /// A slot's device is gone.
    pub(crate) fn remove(&mut self, device: DeviceId) {
        self.all.remove(&device);
    }

    pub(crate) fn latest(&self, vm: &str) -> u64 {
        self.epochs.get(vm).map_or(0, |(epoch, _)| *epoch)
    }

    pub(crate) fn hear(&mut self, vm: &str, epoch: u64) {
        self.heard += 1;
        let known = self.epochs.entry(vm.to_owned()).or_insert((0, self.heard));
        known.0 = known.0.max(epoch);
        if self.epochs.len() > EPOCHS_MAX {
            let is_free = |name: &str| self.all.values().all(|slot| slot.vm.as_deref() != Some(name));
            let oldest =
                self.epochs.iter().filter(|(name, _)| is_free(name)).min_by_key(|(_, known)| known.1);
            let oldest = oldest.map(|(name, _)| name.clone());
            if let Some(name) = oldest {
                self.epochs.remove(&name);
            }
        }
    }
}
