//! Slots that have a GUID, by their agents' last reports.

use std::collections::BTreeMap;

use super::SlotView;
use crate::agent::Content;
use crate::guids::GuidIndex;
use crate::identity::PortIdentity;
use crate::names::{HostName, Slot};

/// The slots by the GUIDs that are in them, plugged in or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports(GuidIndex<Slot>);

impl Ports {
    /// A slot has this from now on, or no longer.
    pub(super) fn note(&mut self, slot: &Slot, content: &Content, is_there: bool) {
        if let Some(port) = content.port() {
            self.0.note(port, slot, is_there);
        }
    }

    /// The same for all slots of a host.
    pub(super) fn note_all(&mut self, host: &HostName, slots: &BTreeMap<u8, SlotView>, are_there: bool) {
        for (vf, view) in slots {
            self.note(&Slot { host: host.clone(), vf: *vf }, &view.content, are_there);
        }
    }

    /// Whether another slot than `but` has one of a port's GUIDs.
    pub(super) fn is_besides(&self, port: &PortIdentity, but: &Slot) -> bool {
        self.0.of(port).any(|slot| slot != but)
    }
}

#[cfg(test)]
mod tests {
    use weft_machine::Random;
    use weft_wire::{Guid, Lid};

    use super::*;

    #[test]
    fn the_index_says_what_a_walk_through_all_slots_says() {
        let seed = 16;
        let mut random = Random::of_purpose(seed, "ports");
        let slot = |at: u8| Slot { host: format!("host-{}", at / 4).parse().unwrap(), vf: at % 4 + 1 };
        let slots: Vec<Slot> = (0..12).map(slot).collect();
        let mut contents = vec![Content::Bare; slots.len()];
        let mut ports = Ports::default();
        // Few GUIDs, so that slots often have them in common.
        let port = |random: &mut Random| {
            let [node_guid, port_guid] = [(); 2].map(|()| Guid(random.below(30).into()));
            PortIdentity { node_guid, port_guid, lid: Lid(0) }
        };
        let mut found = [0; 2];
        for _ in 0..2000 {
            let at = random.below(12) as usize;
            let is_bare = random.below(2) == 0;
            let content = if is_bare { Content::Bare } else { Content::Spare(port(&mut random)) };
            ports.note(&slots[at], &contents[at], false);
            ports.note(&slots[at], &content, true);
            contents[at] = content;
            let (own, but) = (port(&mut random), random.below(12) as usize);
            let shares = |other: &PortIdentity| {
                let own = [own.node_guid, own.port_guid];
                own.contains(&other.node_guid) || own.contains(&other.port_guid)
            };
            let mut others = (0..slots.len()).filter(|at| *at != but).filter_map(|at| contents[at].port());
            let walked = others.any(shares);
            assert_eq!(ports.is_besides(&own, &slots[but]), walked, "seed {seed}: {own:?}, {contents:?}");
            found[usize::from(walked)] += 1;
        }
        assert!(found.into_iter().all(|count| count > 100), "seed {seed}: {found:?}");
        slots.iter().zip(&contents).for_each(|(slot, content)| ports.note(slot, content, false));
        assert_eq!(ports, Ports::default());
    }
}
