//! LIDs, and the end ports that answer to them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use weft_topology::{Fabric, NodeIndex, NodeType, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use crate::sorted;

/// The LIDs of a fabric's end ports: port 0 of switches, the ports of HCAs and routers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Lids {
    /// In LID order.
    ports: Vec<PortLids>,
    /// For every LID up to the highest, the place in `ports` of the one who has it.
    #[serde(skip)]
    owners: Vec<Option<u32>>,
    /// The bases of those that are marked as their port's own.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    own: BTreeSet<Lid>,
}

/// LIDs as they are serialised.
#[derive(Deserialize)]
struct Written {
    ports: Vec<PortLids>,
    #[serde(default)]
    own: BTreeSet<Lid>,
}

impl TryFrom<Written> for Lids {
    type Error = LidError;

    fn try_from(written: Written) -> Result<Self, LidError> {
        let mut lids = Self { own: written.own, ..Self::default() };
        for PortLids { base, lmc, port } in written.ports {
            lids.insert(port, base, lmc)?;
        }
        Ok(lids)
    }
}

/// The LIDs of one end port: 2^lmc of them from `base` upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortLids {
    /// The first; a multiple of 2^lmc.
    pub base: Lid,
    /// The LID mask control, 0 to 7.
    pub lmc: u8,
    /// Whose they are.
    pub port: PortRef,
}

/// Why an end port cannot have these LIDs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LidError {
    /// LMC is 0 to 7.
    #[error("an LMC is 0 to 7, not {0}")]
    Lmc(u8),
    /// A base that its LMC does not allow.
    #[error("LID {base} is no multiple of 2^{lmc}")]
    Misaligned {
        /// The base.
        base: Lid,
        /// The LMC.
        lmc: u8,
    },
    /// LIDs outside of 1 to 0xBFFF.
    #[error("LID {base} and the LMC {lmc} lead out of the unicast LIDs")]
    NotUnicast {
        /// The base.
        base: Lid,
        /// The LMC.
        lmc: u8,
    },
    /// A LID that another port has, or this one already.
    #[error("LID {0} is taken")]
    Taken(Lid),
    /// Not all end ports can have one.
    #[error("there are not enough unicast LIDs for every end port with an LMC of {0}")]
    Exhausted(u8),
    /// Not all hosts can have that many more.
    #[error("there are not enough unicast LIDs for {0} virtual functions on every host")]
    Virtual(u16),
}

/// Whether port 0 of a switch has the LID of an HCA that is cabled to it and of the same system: the switch is a vSwitch,
/// which needs no LID of its own (paper 001, section V-A). `lid` says which LID a port has.
pub fn shares_lid(fabric: &Fabric, switch: NodeIndex, lid: impl Fn(PortRef) -> Lid) -> bool {
    let node = fabric.node(switch);
    let own = lid(PortRef::new(switch, PortNum::ZERO));
    let is_part = |peer: PortRef| {
        let there = fabric.node(peer.node);
        !there.is_switch() && there.system_image_guid == node.system_image_guid && lid(peer) == own
    };
    let is_known = node.is_switch() && node.system_image_guid != Guid(0) && own != Lid(0);
    is_known && node.cabled_ports().any(|(_, peer)| is_part(peer))
}

impl PortLids {
    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Lid> {
        (0..1u16 << self.lmc.min(7)).map(move |offset| Lid(self.base.0.saturating_add(offset)))
    }
}

impl Lids {
    /// No one has a LID.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those that a fabric's ports had when it was written down. Ports without one are left out; a LID that a vSwitch
    /// [shares](shares_lid) is the host's.
    pub fn from_fabric(fabric: &Fabric) -> Result<Self, LidError> {
        let mut lids = Self::new();
        let lid = |port: PortRef| fabric.port(port).map_or(Lid(0), |port| port.lid);
        for (index, node) in fabric.iter().filter(|(index, _)| !shares_lid(fabric, *index, lid)) {
            for (number, port) in node.end_ports().filter(|(_, port)| port.lid != Lid(0)) {
                lids.insert(PortRef::new(index, number), port.lid, port.lmc)?;
            }
        }
        Ok(lids)
    }

    /// One for every end port that has a cable and for every switch, counted up in the order of the ports' GUIDs.
    /// Switches have an LMC of 0.
    pub fn in_guid_order(fabric: &Fabric, lmc: u8) -> Result<Self, LidError> {
        if lmc > 7 {
            return Err(LidError::Lmc(lmc));
        }
        let mut ports = Vec::new();
        for (index, node) in fabric.iter() {
            for (number, port) in node.end_ports() {
                if node.is_switch() || port.peer.is_some() {
                    let lmc = if node.is_switch() { 0 } else { lmc };
                    ports.push((port.guid, node.guid, number, PortRef::new(index, number), lmc));
                }
            }
        }
        sorted::by_key(&mut ports, |(guid, node, number, ..)| (*guid, *node, *number));
        let (mut lids, mut next) = (Self::new(), 1u32);
        for (.., port, lmc) in ports {
            let base = next.next_multiple_of(1 << lmc);
            next = base + (1 << lmc);
            if next > u32::from(Lid::UNICAST_MAX.0) + 1 {
                return Err(LidError::Exhausted(lmc));
            }
            lids.insert(port, Lid(base as u16), lmc)?;
        }
        Ok(lids)
    }

    /// Gives every host port `count` LIDs more, each alone, for virtual functions: counted up from the highest so far, in the
    /// order of the ports' GUIDs. Switches and routers get none.
    pub fn add_virtual(&mut self, fabric: &Fabric, count: u16) -> Result<(), LidError> {
        let is_host = |port: &PortRef| fabric.node(port.node).kind == NodeType::Hca;
        let mut ports: Vec<PortRef> = self.ports.iter().map(|lids| lids.port).filter(is_host).collect();
        sorted::by_key(&mut ports, |port| (fabric.port(*port).map(|port| port.guid), *port));
        ports.dedup();
        for port in ports {
            for _ in 0..count {
                let next = self.top().0 + 1;
                if next > Lid::UNICAST_MAX.0 {
                    return Err(LidError::Virtual(count));
                }
                self.insert(port, Lid(next), 0)?;
            }
        }
        Ok(())
    }

    /// Gives an end port its LIDs. Quick when called in LID order.
    pub fn insert(&mut self, port: PortRef, base: Lid, lmc: u8) -> Result<(), LidError> {
        if lmc > 7 {
            return Err(LidError::Lmc(lmc));
        }
        let count = 1u16 << lmc;
        if !base.0.is_multiple_of(count) {
            return Err(LidError::Misaligned { base, lmc });
        }
        let last = Lid(base.0.saturating_add(count - 1));
        if !base.is_unicast() || !last.is_unicast() {
            return Err(LidError::NotUnicast { base, lmc });
        }
        let lids = PortLids { base, lmc, port };
        if let Some(taken) = lids.iter().find(|lid| self.owner(*lid).is_some()) {
            return Err(LidError::Taken(taken));
        }
        let place = self.ports.partition_point(|other| other.base < base);
        let moved = place < self.ports.len();
        self.ports.insert(place, lids);
        if self.owners.len() <= usize::from(last.0) {
            self.owners.resize(usize::from(last.0) + 1, None);
        }
        // An insertion before others moves those, so they are entered again.
        let from = if moved { place } else { self.ports.len() - 1 };
        for (place, lids) in self.ports.iter().enumerate().skip(from) {
            for lid in lids.iter() {
                self.owners[usize::from(lid.0)] = Some(place as u32);
            }
        }
        Ok(())
    }

    /// Gives a port's LIDs to another port, as a machine's are that moves with its address. Changes nothing where no one has
    /// `lid`.
    pub fn transfer(&mut self, lid: Lid, to: PortRef) {
        let place = self.owners.get(usize::from(lid.0)).copied().flatten();
        if let Some(lids) = place.and_then(|place| self.ports.get_mut(place as usize)) {
            lids.port = to;
        }
    }

    /// Marks the LIDs from `base` on as the host's own, where its port has those of virtual functions too. Where none of a
    /// port's are marked, its lowest are its own.
    pub fn mark_own(&mut self, base: Lid) {
        self.own.insert(base);
    }

    /// Whether the LIDs from `base` on are marked as the host's own.
    pub(crate) fn is_own(&self, base: Lid) -> bool {
        self.own.contains(&base)
    }

    /// The end port that answers to `lid`.
    pub fn owner(&self, lid: Lid) -> Option<PortRef> {
        self.port_lids(lid).map(|lids| lids.port)
    }

    /// All LIDs of the end port that answers to `lid`.
    pub fn port_lids(&self, lid: Lid) -> Option<PortLids> {
        let place = (*self.owners.get(usize::from(lid.0))?)?;
        self.ports.get(place as usize).copied()
    }

    /// The LIDs of an end port. Looks through all: for a few ports, not for each.
    pub fn of(&self, port: PortRef) -> Option<PortLids> {
        self.ports.iter().find(|lids| lids.port == port).copied()
    }

    /// Every end port with its LIDs, in LID order.
    pub fn iter(&self) -> impl Iterator<Item = PortLids> {
        self.ports.iter().copied()
    }

    /// How many end ports have LIDs.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether no one has a LID.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// The highest LID in use; 0 where there is none.
    pub fn top(&self) -> Lid {
        Lid(self.owners.len().saturating_sub(1) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialised_lids_are_read_back_as_they_were() {
        let at = |node| PortRef::new(NodeIndex(node), PortNum(1));
        let mut lids = Lids::new();
        for (node, base, lmc) in [(3, 8, 2), (1, 1, 0), (1, 70, 0)] {
            lids.insert(at(node), Lid(base), lmc).unwrap();
        }
        lids.mark_own(Lid(70));
        lids.transfer(Lid(1), at(5));
        let text = serde_json::to_string(&lids).unwrap();
        let read: Lids = serde_json::from_str(&text).unwrap();
        assert_eq!(read, lids);
        assert_eq!(
            (read.owner(Lid(11)), read.owner(Lid(1)), read.is_own(Lid(70))),
            (Some(at(3)), Some(at(5)), true)
        );
        let twice = text.replace("\"base\":1,", "\"base\":70,");
        let error = serde_json::from_str::<Lids>(&twice).unwrap_err().to_string();
        assert!(error.contains("LID 70 is taken"), "{error}");
    }
}
