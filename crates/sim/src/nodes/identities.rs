//! GUIDs of virtual functions: the cabling has them where they are plugged in.

use std::collections::{BTreeMap, BTreeSet};

use weft_node::{SlotStatus, VmDone, VmIdentity};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::Guid;

use super::{FUNCTION_PORT, Nodes};

/// The fabric does not know a function that is not plugged in: its GUIDs here are its index and this.
const NOBODY: u64 = 0xfffe_0000_0000_0000;

/// What functions had, and what they cannot have yet.
#[derive(Debug, Default)]
pub(super) struct Identities {
    /// The GUIDs that virtual functions began with, of those that had others since.
    first: BTreeMap<NodeIndex, [Guid; 2]>,
    /// Functions whose GUIDs another one has in the cabling, for now.
    unnamed: BTreeSet<NodeIndex>,
    /// Sets that functions had received with identities that have left.
    past_sets: BTreeMap<NodeIndex, u64>,
}

impl Nodes {
    /// Sets of management that a device has received, in a slot also those of its earlier identities.
    pub(crate) fn smp_sets(&self, node: NodeIndex) -> u64 {
        let past = self.identities.past_sets.get(&node).copied().unwrap_or(0);
        past + self.device(node).map_or(0, |device| device.statistics().smp_sets)
    }

    /// A step of a virtual machine is done. The cabling says who is where: what is plugged in has
    /// its identity. That of a function whose agent died may be at another by now; of two that have
    /// the same for a moment, the later one gets it when the earlier one leaves it.
    pub(crate) fn know_identity(&mut self, function: NodeIndex, done: &VmDone, fabric: &mut Fabric) {
        if done.removed.is_some() {
            *self.identities.past_sets.entry(function).or_default() += done.removed_sets;
        }
        self.identities.unnamed.remove(&function);
        if !self.identify(function, &done.slot, fabric) {
            self.identities.unnamed.insert(function);
        }
        for waiting in self.identities.unnamed.clone() {
            if self.slot(waiting).is_none_or(|slot| self.identify(waiting, &slot, fabric)) {
                self.identities.unnamed.remove(&waiting);
            }
        }
    }

    /// Gives a function the GUIDs of what is plugged in; false while they are another's.
    fn identify(&mut self, function: NodeIndex, slot: &SlotStatus, fabric: &mut Fabric) -> bool {
        if !slot.plugged {
            return self.identities.be_nobody(function, fabric);
        }
        let VmIdentity { guid, port_guid, .. } = slot.identity;
        if let Some(before) = fabric.by_guid(guid).filter(|before| self.device(*before).is_none()) {
            self.identities.be_nobody(before, fabric);
        }
        self.identities.be(function, [guid, port_guid], fabric)
    }

    /// A function that is switched on has its first GUIDs. Whether it can: they may be taken.
    pub(crate) fn forget_identity(&self, function: NodeIndex, fabric: &mut Fabric) -> bool {
        let Some(&[guid, port]) = self.identities.first.get(&function) else { return true };
        fabric.identify(function, guid, port)
    }
}

impl Identities {
    /// The cabling has a function's GUIDs no more.
    fn be_nobody(&mut self, function: NodeIndex, fabric: &mut Fabric) -> bool {
        self.be(function, [Guid(NOBODY | u64::from(function.0)); 2], fabric)
    }

    fn be(&mut self, function: NodeIndex, [guid, port]: [Guid; 2], fabric: &mut Fabric) -> bool {
        let node = fabric.node(function);
        let first = [node.guid, node.port(FUNCTION_PORT).map_or(node.guid, |port| port.guid)];
        self.first.entry(function).or_insert(first);
        fabric.identify(function, guid, port)
    }
}
