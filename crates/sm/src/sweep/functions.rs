//! Virtual functions that have come to slots of vSwitches or have left them: only their slots are asked, not the fabric.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, NodeInfo, NodeType, PortInfo};

use crate::knowledge::{Changes, FoundNode, PortAt, Subnet};

/// Slots of vSwitches whose functions are others now.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Slots that a function has left, with what they say now.
    pub(crate) gone: BTreeMap<PortAt, PortInfo>,
    /// Slots that a function has come to, with what they say now. One that was replaced is in both.
    pub(crate) come: BTreeMap<PortAt, PortInfo>,
}

impl Subnet {
    /// Whether a port of a vSwitch is one for a virtual function.
    pub(crate) fn is_slot(&self, at: PortAt) -> bool {
        let vswitches = &self.adapters.vswitches;
        let found = vswitches.binary_search_by_key(&at.node, |vswitch| vswitch.node.0);
        found.is_ok_and(|place| vswitches[place].is_slot(at.port))
    }
}

impl Functions {
    /// What a look has found, where all of it is about functions. `None` where it is not, or where they are not what they seem.
    pub(crate) fn of(changes: &Changes, subnet: &Subnet) -> Option<Self> {
        let are_slots = changes.gone.keys().chain(changes.back.keys()).all(|at| subnet.is_slot(*at));
        if !are_slots || changes.is_empty() {
            return None;
        }
        let mut leaving = BTreeSet::new();
        for at in changes.gone.keys() {
            let peer = subnet.port(*at)?.peer.filter(|peer| is_function(subnet, *peer))?;
            leaving.insert(subnet.node(peer.node)?.guid());
        }
        let are_functions = changes.back.keys().all(|at| {
            let info = changes.behind.get(at);
            info.is_some_and(|info| may_come(subnet, *at, info, &leaving))
        });
        let guids: BTreeSet<Guid> = changes.behind.values().map(|info| info.node_guid).collect();
        // Two that claim to be one are a matter for a full discovery.
        let are_several = guids.len() == changes.back.len();
        (are_functions && are_several)
            .then(|| Self { gone: changes.gone.clone(), come: changes.back.clone() })
    }

    /// The vSwitches that it is about.
    pub(crate) fn vswitches(&self) -> BTreeSet<u32> {
        self.gone.keys().chain(self.come.keys()).map(|at| at.node).collect()
    }
}

/// Whether a node has this port alone in the subnet, is an HCA, and is not the manager's own.
fn is_function(subnet: &Subnet, at: PortAt) -> bool {
    let is_own = subnet.own.is_some_and(|own| own.node == at.node);
    let is_single = |node: &FoundNode| node.ports.iter().filter(|port| port.peer.is_some()).count() == 1;
    let is_hca = |node: &FoundNode| node.info.node_type == NodeType::Hca;
    !is_own && subnet.node(at.node).is_some_and(|node| is_hca(node) && is_single(node))
}

/// Whether a node behind a slot is an HCA of the vSwitch's system that is nowhere else.
fn may_come(subnet: &Subnet, at: PortAt, info: &NodeInfo, leaving: &BTreeSet<Guid>) -> bool {
    let system = subnet.node(at.node).map(|node| node.info.system_image_guid);
    let is_new = !subnet.by_guid.contains_key(&info.node_guid) || leaving.contains(&info.node_guid);
    info.node_type == NodeType::Hca && Some(info.system_image_guid) == system && is_new
}
