//! Requesters of subnet administration: a host is one, whatever the number of its LIDs, ports and virtual functions.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, Lid};

use crate::Options;
use crate::knowledge::{FoundNode, PortAt, Subnet};
use crate::moves::physical;

/// Hosts and their ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Requesters {
    /// The host of each end port: the GUID of its vSwitch, or of its node.
    hosts: BTreeMap<Guid, Guid>,
    ports: BTreeMap<Guid, Vec<(Guid, Lid)>>,
    /// End ports of virtual functions.
    guests: BTreeSet<Guid>,
}

impl Requesters {
    /// Of end ports with their first LIDs and their places.
    pub(super) fn new(
        subnet: &Subnet,
        ends: impl Iterator<Item = (Guid, Lid, PortAt)>,
        options: &Options,
    ) -> Self {
        let mut all = Self::default();
        let node = |node: u32| subnet.node(node).map_or(Guid(0), FoundNode::guid);
        for vswitch in weft_routing::vswitches(&subnet.fabric, &options.routing.engine.management_nodes) {
            let own = physical(&vswitch);
            for (port, end) in &vswitch.functions {
                let guid = subnet.end_guid(PortAt { node: end.node.0, port: end.port });
                all.hosts.insert(guid, node(vswitch.node.0));
                if *port != own {
                    all.guests.insert(guid);
                }
            }
        }
        for (guid, lid, at) in ends {
            let host = *all.hosts.entry(guid).or_insert_with(|| node(at.node));
            all.ports.entry(host).or_default().push((guid, lid));
        }
        all
    }

    /// Whether an end port is a virtual function's.
    pub(super) fn is_guest(&self, end: Guid) -> bool {
        self.guests.contains(&end)
    }

    /// The host of an end port. A port that is not there is a host of its own.
    pub(super) fn host_of(&self, end: Guid) -> Guid {
        self.hosts.get(&end).copied().unwrap_or(end)
    }

    /// The end ports of a host, with their first LIDs.
    pub(super) fn ports_of(&self, host: Guid) -> &[(Guid, Lid)] {
        self.ports.get(&host).map_or(&[], Vec::as_slice)
    }
}

/// Whether one that `has` some of a thing may have one more, where a number is `left` for all: `most`, and no more than half of what
/// there is for the last ones. One that has none may, as long as there are any.
pub(super) fn may_have_more(has: usize, most: usize, left: usize) -> bool {
    left > 0 && (has == 0 || has < most.min(left))
}
