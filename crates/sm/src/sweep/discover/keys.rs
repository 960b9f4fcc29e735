//! Ports that have the M_Key of somebody else.

use weft_wire::{MKey, PortInfo, PortNum};

use super::Discover;
use crate::knowledge::PortAt;
use crate::{Event, Options};

impl Discover {
    /// Whether an end port may have another manager's M_Key: one that it shows, or one that it hides, for which 0
    /// with protection bits stands (IBA 14.2.4). Whether the port takes a Set tells a hidden key from a key 0.
    pub(super) fn is_foreign(&self, at: PortAt, info: &PortInfo) -> bool {
        let is_end = self.node(at.node).is_some_and(|node| !node.is_switch() || at.port == PortNum::ZERO);
        let foreign = |options: &Options| match info.m_key {
            MKey(0) => info.m_key_protect_bits != 0,
            shown => shown != options.keys.m_key,
        };
        is_end && self.settings.claim.as_ref().is_some_and(foreign)
    }

    /// A port did not take this manager's M_Key: it keeps one that is not known here.
    pub(super) fn lock(&mut self, at: PortAt) {
        if let Some(port) = self.port_mut(at) {
            port.locked = true;
        }
        let Some(node) = self.node(at.node) else { return };
        let (guid, description) = (node.guid(), node.description.clone());
        self.refused += 1;
        self.events.push(Event::KeyUnknown { guid: guid.into(), port: at.port, description });
    }
}
