//! Other managers that a discovery finds.

use weft_wire::{Guid, Lid, PortNum, SmInfo};

use super::Discover;
use crate::election::Peer;
use crate::knowledge::{FoundNode, Key, PortAt};

/// The most other managers that are taken note of.
const MANAGERS_MAX: usize = 256;

impl Discover {
    /// Goes on with a switch whose port 0 was asked first, once that has answered.
    pub(super) fn ask_switch(&mut self, at: PortAt) {
        let waits = |node: &FoundNode| node.is_switch() && node.switch.is_none();
        let first = self.settings.candidate && at.port == PortNum::ZERO;
        if !first || !self.node(at.node).is_some_and(waits) {
            return;
        }
        let own = self.own_port_info().map_or(Lid(0), |info| info.lid);
        let master = self.port(at).and_then(|port| port.info).map_or(Lid(0), |info| info.master_sm_lid);
        if master != Lid(0) && master != own {
            self.managed.insert(at.node);
        }
        self.todo.push_back(Key::SwitchInfo(at.node));
    }

    pub(super) fn found_manager(&mut self, at: PortAt, info: &SmInfo) {
        let guid_fits = info.guid != Guid(0) && info.guid != self.settings.own_guid;
        let (Some(path), true) = (self.route(Key::SmInfo(at)), guid_fits) else { return };
        let lid = self.port(at).and_then(|port| port.info).map_or(Lid(0), |info| info.lid);
        let SmInfo { guid, priority, sm_state: state, sm_key, .. } = *info;
        if self.managers.iter().all(|known| known.guid != guid) && self.managers.len() < MANAGERS_MAX {
            self.managers.push(Peer { guid, lid, path, priority, state, sm_key });
            self.managers.sort_by_key(|peer| peer.guid);
        }
    }
}
