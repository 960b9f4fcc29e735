//! Cables that a look has found to be gone or back, as far as a repair can do with them.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, NodeInfo, PortInfo};

use super::key::PortAt;
use super::subnet::{FoundNode, Subnet};

/// With more cables than this at once a full sweep is as quick.
const CABLES_MAX: usize = 8;

/// Two ends of a cable, the lower one first.
pub(crate) type Cable = (PortAt, PortAt);

/// What a look has found, as far as a repair can do with it.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Ports that went down, with what they say now.
    pub(crate) gone: BTreeMap<PortAt, PortInfo>,
    /// Ports that came up, with what they say now.
    pub(crate) back: BTreeMap<PortAt, PortInfo>,
    /// Over ports that came up: who is there.
    pub(crate) behind: BTreeMap<PortAt, NodeInfo>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.back.is_empty()
    }

    /// The first node that says so.
    pub(crate) fn guid(&self, subnet: &Subnet) -> Guid {
        let first = self.gone.keys().chain(self.back.keys()).next();
        first.and_then(|at| subnet.node(at.node)).map_or(Guid(0), FoundNode::guid)
    }

    /// The cables that are gone and those that are back; `None` where it is not as simple as that.
    pub(crate) fn cables(&self, subnet: &Subnet) -> Option<(Vec<Cable>, Vec<Cable>)> {
        let ordered = |a: PortAt, b: PortAt| if a < b { (a, b) } else { (b, a) };
        let is_switch = |at: PortAt| subnet.node(at.node).is_some_and(FoundNode::is_switch);
        let mut gone = BTreeSet::new();
        for at in self.gone.keys() {
            let peer =
                subnet.port(*at)?.peer.filter(|peer| is_switch(*peer) && !self.back.contains_key(peer))?;
            gone.insert(ordered(*at, peer));
        }
        let far = |at: &PortAt| {
            let info = self.behind.get(at)?;
            let node = *subnet.by_guid.get(&info.node_guid)?;
            let same = subnet.node(node)?.info;
            let is_same = (same.node_type, same.num_ports) == (info.node_type, info.num_ports);
            is_same.then_some(PortAt { node, port: info.local_port_num })
        };
        let mut back = BTreeSet::new();
        for at in self.back.keys() {
            let peer = far(at).filter(|peer| is_switch(*peer) && far(peer) == Some(*at))?;
            back.insert(ordered(*at, peer));
        }
        let count = gone.len() + back.len();
        ((1..=CABLES_MAX).contains(&count)).then(|| (gone.into_iter().collect(), back.into_iter().collect()))
    }

    /// The far end of a port that came up, where that is known but has not been looked at.
    pub(crate) fn unread_end(&self, subnet: &Subnet, info: &NodeInfo) -> Option<PortAt> {
        let node = *subnet.by_guid.get(&info.node_guid)?;
        let at = PortAt { node, port: info.local_port_num };
        (!self.back.contains_key(&at)).then_some(at)
    }
}
