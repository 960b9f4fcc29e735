//! A discovery of slots alone: everything else is as the last sweep has left it.

use weft_topology::PORTS_MAX;
use weft_wire::{Guid, NodeInfo, PortInfo};

use super::{Cabling, Discover, Settings};
use crate::knowledge::{FoundPort, Key, PortAt, Subnet};
use crate::sweep::functions::Functions;

impl Discover {
    /// Takes functions out that are gone, and asks who those are that have come.
    pub(crate) fn again(settings: Settings, subnet: Subnet, functions: &Functions) -> Self {
        let mut discover = Self::new(settings, Cabling::default());
        discover.todo.clear();
        discover.nodes.clone_from(&subnet.nodes);
        discover.by_guid.clone_from(&subnet.by_guid);
        let hosts =
            subnet.end_ports().filter(|(at, _)| subnet.node(at.node).is_some_and(|node| !node.is_switch()));
        discover.by_port_guid = hosts.map(|(at, port)| (port.guid, at)).collect();
        discover.own = subnet.own;
        discover.ports = subnet.nodes.iter().map(|node| node.ports.len()).sum::<usize>().min(PORTS_MAX);
        for (slot, info) in &functions.gone {
            let peer = subnet.port(*slot).and_then(|port| port.peer);
            peer.into_iter().for_each(|end| discover.take_out(end));
            discover.empty(*slot, *info);
        }
        for (slot, info) in &functions.come {
            discover.empty(*slot, *info);
            discover.todo.push_back(Key::NodeInfo(Some(*slot)));
        }
        discover.before_again = Some(Box::new(subnet));
        discover
    }

    fn empty(&mut self, slot: PortAt, info: PortInfo) {
        if let Some(port) = self.port_mut(slot) {
            *port = FoundPort { info: Some(info), ..FoundPort::default() };
        }
    }

    /// A node that is gone keeps its place until all are sorted again.
    fn take_out(&mut self, end: PortAt) {
        let Some(node) = self.nodes.get_mut(end.node as usize) else { return };
        node.silent = true;
        let NodeInfo { node_guid, .. } = node.info;
        let port_guid = node.port(end.port).map_or(Guid(0), |port| port.guid);
        self.by_guid.remove(&node_guid);
        self.by_port_guid.remove(&port_guid);
    }

    /// The subnet of which a part is discovered again, as it was before.
    pub(crate) fn before_again(&self) -> Option<&Subnet> {
        self.before_again.as_deref()
    }

    pub(crate) fn take_before_again(&mut self) -> Option<Subnet> {
        self.before_again.take().map(|subnet| *subnet)
    }
}
