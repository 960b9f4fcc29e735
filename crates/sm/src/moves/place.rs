//! Places in the subnet as the manager knows it: who is where, and identities that change places.

use weft_wire::{Guid, PhysState, PortInfo, PortState};

use crate::knowledge::{PortAt, Subnet, graph_port};

impl Subnet {
    /// The end port with this port GUID that is no switch's.
    pub(crate) fn host_by_guid(&self, guid: Guid) -> Option<PortAt> {
        let hosts =
            self.end_ports().filter(|(at, _)| self.node(at.node).is_some_and(|node| !node.is_switch()));
        hosts.map(|(at, _)| at).find(|at| self.end_guid(*at) == guid)
    }

    /// Puts end ports into other places, all at the same time; gives the cables that were there. What ports say of
    /// themselves is not known before they are asked.
    pub(crate) fn recable(&mut self, cables: &[(PortAt, PortAt)]) -> Vec<(PortAt, PortAt)> {
        let mut before = Vec::new();
        // First all that move: one may be at the place of another.
        for (end, _) in cables {
            before.extend(self.unplug(*end).map(|place| (*end, place)));
        }
        for (_, place) in cables {
            self.unplug(*place);
        }
        for (end, place) in cables {
            self.plug(*end, *place);
        }
        before
    }

    fn unplug(&mut self, at: PortAt) -> Option<PortAt> {
        let peer = self.port(at)?.peer?;
        for end in [at, peer] {
            self.port_mut(end).into_iter().for_each(|port| port.peer = None);
        }
        self.fabric.disconnect(graph_port(at));
        Some(peer)
    }

    fn plug(&mut self, end: PortAt, place: PortAt) {
        let rate = self.fabric.port(graph_port(end)).map(|port| port.link).unwrap_or_default();
        let path = self.node(place.node).and_then(|switch| switch.path.then(place.port));
        // All parts of an adapter are one system.
        let system = self.node(place.node).map_or(Guid(0), |switch| switch.info.system_image_guid);
        for (here, there) in [(end, place), (place, end)] {
            self.port_mut(here).into_iter().for_each(|port| port.peer = Some(there));
        }
        self.fabric.reconnect(graph_port(end), graph_port(place), rate);
        self.fabric.set_system(graph_port(end).node, system);
        let Some(node) = self.nodes.get_mut(end.node as usize) else { return };
        node.info.system_image_guid = system;
        node.path = path.unwrap_or(node.path);
        node.port_mut(end.port).into_iter().for_each(|port| port.path = path);
    }

    /// The GUID of the end port behind a port.
    pub(crate) fn guid_behind(&self, place: PortAt) -> Option<Guid> {
        self.port(place)?.peer.map(|peer| self.end_guid(peer))
    }

    /// `GUID port N`, for people.
    pub(crate) fn place_name(&self, place: PortAt) -> String {
        let guid = self.guid(place.node);
        format!("port {} of vSwitch {guid}", place.port)
    }

    /// Takes down what a port says now.
    pub(crate) fn note(&mut self, at: PortAt, info: PortInfo) {
        self.port_mut(at).into_iter().for_each(|port| (port.info, port.silent) = (Some(info), false));
    }

    /// A port from which someone has moved away, which has not been asked since.
    pub(crate) fn note_empty(&mut self, at: PortAt) {
        let down = |info: PortInfo| PortInfo {
            port_state: PortState::Down,
            port_physical_state: PhysState::Polling,
            ..info
        };
        self.port_mut(at).into_iter().for_each(|port| port.info = port.info.map(down));
    }
}
