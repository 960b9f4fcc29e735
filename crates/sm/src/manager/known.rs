//! The manager's knowledge between sweeps: the subnet as the last one left it, and what its devices hold.

use std::collections::BTreeMap;

use weft_routing::KeptPaths;
use weft_wire::{Guid, NodeType, VirtualLane};

use super::SubnetManager;
use crate::knowledge::{Memory, PortAt, Routed, Subnet};
use crate::sweep::{Cabling, History, Past, management_lane};
use crate::{Event, Options};

/// What is known of the subnet.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// `None` while a step works on it.
    pub(super) subnet: Option<Subnet>,
    /// The routing in force, while there is no subnet that it belongs to.
    routed: Routed,
    /// Whether a heavy sweep has ended since the manager came into charge.
    pub(super) is_up: bool,
    /// What devices hold.
    pub(super) memory: Memory,
    /// The nodes of the last sweep.
    nodes: BTreeMap<Guid, (NodeType, String)>,
    /// The lane that is management's alone, as it was said last.
    management: Option<Option<VirtualLane>>,
    /// What tables were computed from.
    pub(super) history: History,
    /// Those that engines keep for other partitions.
    pub(super) paths: KeptPaths,
}

impl SubnetManager {
    /// From now on it keeps a log of what tables are computed from: for tests that compute them again.
    pub fn keep_history(&mut self) {
        self.known.history.begin();
    }

    /// The entries of that log since this was asked last.
    pub fn take_history(&mut self) -> Vec<Past> {
        self.known.history.take()
    }
}

impl Known {
    /// Lends the subnet to a step.
    pub(super) fn take_subnet(&mut self) -> Option<Subnet> {
        self.subnet.take()
    }

    /// The subnet as a step has left it.
    pub(super) fn keep_subnet(&mut self, subnet: Subnet) {
        self.subnet = Some(subnet);
    }

    /// The subnet is discovered again. Its routing stays in force, and its cables tell what is gone.
    pub(super) fn begin_discovery(&mut self, gone: Option<PortAt>) -> Cabling {
        let before = self.subnet.take();
        let cabling = before.as_ref().map(|subnet| Cabling::of(subnet, gone)).unwrap_or_default();
        self.set_aside(before);
        cabling
    }

    /// Gives the routing in force to a subnet that was found.
    pub(super) fn pass_routing(&mut self, subnet: &mut Subnet) {
        subnet.routed = std::mem::take(&mut self.routed);
    }

    /// Keeps the routing of a subnet that is given up, for the next one.
    pub(super) fn set_aside(&mut self, subnet: Option<Subnet>) {
        if let Some(subnet) = subnet {
            self.routed = subnet.routed;
        }
    }

    /// Gives up the subnet, whether a step had it or not, and what devices hold: anybody may write anything from now on.
    pub(super) fn give_up(&mut self, of_step: Option<Subnet>) {
        let own = self.subnet.take();
        self.set_aside(of_step.or(own));
        self.memory.clear();
    }

    /// The manager is detached: the subnet is kept to be compared with, what devices hold is not.
    pub(super) fn detach(&mut self, of_step: Option<Subnet>) {
        self.set_aside(of_step);
        self.memory.clear();
        self.is_up = false;
    }

    /// Nothing that is routed is repaired from now on.
    pub(super) fn withdraw_routing(&mut self) {
        self.routed.withdraw();
        if let Some(subnet) = &mut self.subnet {
            subnet.routed.withdraw();
        }
    }

    /// The routing in force, where no step has the subnet.
    pub(super) fn routed(&self) -> &Routed {
        self.subnet.as_ref().map_or(&self.routed, |subnet| &subnet.routed)
    }

    /// Finds the lane that is management's alone, and says which it is if that is news.
    pub(super) fn keep_a_lane(&mut self, subnet: &mut Subnet, options: &Options) -> Option<Event> {
        subnet.management = management_lane(subnet, options);
        let lane = subnet.management.map(VirtualLane);
        let is_news = options.lanes.management_lane && self.management != Some(lane);
        is_news.then(|| {
            self.management = Some(lane);
            Event::ManagementLane { lane }
        })
    }

    /// Says which nodes have come and which have gone.
    pub(super) fn compare(&mut self, subnet: &Subnet) -> Vec<Event> {
        let now: BTreeMap<_, _> = subnet
            .nodes
            .iter()
            .map(|node| (node.guid(), (node.info.node_type, node.description.clone())))
            .collect();
        let before = std::mem::take(&mut self.nodes);
        let gone = before.iter().filter(|(guid, _)| !now.contains_key(guid));
        let gone = gone.map(|(guid, (kind, description))| {
            let (guid, kind, description) = (*guid, *kind, description.clone());
            match kind {
                NodeType::Hca => Event::HostCutOff { guid: guid.into(), description },
                _ => Event::NodeLost { guid: guid.into(), kind: kind.into(), description },
            }
        });
        let come = now.iter().filter(|(guid, _)| !before.contains_key(guid));
        let come = come.map(|(guid, (kind, description))| Event::NodeFound {
            guid: (*guid).into(),
            kind: (*kind).into(),
            description: description.clone(),
        });
        let events = gone.chain(come).collect();
        self.nodes = now;
        events
    }
}
