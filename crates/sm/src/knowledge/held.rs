//! Known content of devices, read or written, so that only differences are written.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, Lid, PortNum, PortState, VirtualLane};

use super::key::VlBlock;
use super::subnet::{FoundNode, FoundPort, Subnet};

/// One block of a forwarding table.
pub(crate) type LftBlock = [PortNum; 64];

/// What one node holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The switch's LID, or 0: a device that lost it has lost everything.
    lid: Lid,
    /// Whether any of its links was in service when the last sweep ended.
    was_active: bool,
    /// LinearFDBTop, as read or written last.
    pub(crate) top: u16,
    /// Whether it was fresh from the factory when it was found, so that what was not written leads nowhere.
    pub(crate) blank: bool,
    /// The forwarding table's blocks; `None` is not known.
    pub(crate) lft: Vec<Option<LftBlock>>,
    /// By port number.
    pub(crate) ports: Vec<HeldPort>,
}

/// What one port holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldPort {
    lid: Lid,
    /// The lanes of service levels towards this port, the same from every input port.
    pub(crate) sl_to_vl: Option<[VirtualLane; 16]>,
    /// The arbitration tables' blocks.
    arbitration: [Option<Box<[u8; 64]>>; 4],
    /// The blocks of the P_Key table.
    p_keys: BTreeMap<u16, [u8; 64]>,
    /// Blocks of it that the port was asked for and has not answered.
    unread: BTreeSet<u16>,
}

/// What all nodes of the last sweep hold.
pub(crate) type Memory = BTreeMap<Guid, Held>;

impl Held {
    /// What a node that was found still holds, and whether its forwarding table has to be read.
    pub(crate) fn carry(before: Option<Self>, node: &FoundNode) -> (Self, bool) {
        let Some(switch) = node.switch.filter(|_| node.is_switch()) else {
            return (Self::carry_ports(before, node), false);
        };
        let lid = node.port(PortNum::ZERO).and_then(|port| port.info).map_or(Lid(0), |info| info.lid);
        let in_service = node.ports.iter().skip(1).any(is_in_service);
        let top = switch.linear_fdb_top;
        let same = |held: &Self| held.top == top && held.lid == lid && (in_service || !held.was_active);
        match before.filter(|held| top != 0 && same(held)) {
            Some(held) => (held, false),
            None => {
                let ports = vec![HeldPort::default(); node.ports.len()];
                (Self { lid, top, blank: top == 0, ports, ..Self::default() }, top != 0)
            }
        }
    }

    fn carry_ports(before: Option<Self>, node: &FoundNode) -> Self {
        let mut held = before.unwrap_or_default();
        held.ports.resize_with(node.ports.len(), HeldPort::default);
        for (known, port) in held.ports.iter_mut().zip(&node.ports) {
            let lid = port.info.map_or(Lid(0), |info| info.lid);
            if lid == Lid(0) || lid != known.lid {
                *known = HeldPort { lid, ..HeldPort::default() };
            }
        }
        held
    }

    /// Notes the LIDs and states that the sweep has left behind.
    fn settle(&mut self, node: &FoundNode) {
        let lid = |port: &FoundPort| port.info.map_or(Lid(0), |info| info.lid);
        self.lid = node.port(PortNum::ZERO).map_or(Lid(0), lid);
        self.was_active = node.ports.iter().skip(1).any(is_in_service);
        for (known, port) in self.ports.iter_mut().zip(&node.ports) {
            known.lid = lid(port);
        }
    }

    pub(crate) fn lft_block(&self, block: u16) -> Option<&LftBlock> {
        self.lft.get(usize::from(block))?.as_ref()
    }

    /// The blocks that are known, with their numbers.
    pub(crate) fn lft_blocks(&self) -> impl Iterator<Item = (u16, &LftBlock)> {
        let blocks = (0..=u16::MAX).zip(&self.lft);
        blocks.filter_map(|(number, ports)| Some((number, ports.as_ref()?)))
    }

    pub(crate) fn set_lft_block(&mut self, block: u16, ports: Option<LftBlock>) {
        let at = usize::from(block);
        if self.lft.len() <= at {
            self.lft.resize(at + 1, None);
        }
        self.lft[at] = ports;
    }

    pub(crate) fn port(&self, port: PortNum) -> Option<&HeldPort> {
        self.ports.get(usize::from(port.0))
    }

    pub(crate) fn port_mut(&mut self, port: PortNum) -> Option<&mut HeldPort> {
        self.ports.get_mut(usize::from(port.0))
    }
}

impl HeldPort {
    pub(crate) fn arbitration(&self, block: VlBlock) -> Option<&[u8; 64]> {
        self.arbitration[block as usize - 1].as_deref()
    }

    pub(crate) fn p_keys(&self, block: u16) -> Option<&[u8; 64]> {
        self.p_keys.get(&block)
    }

    /// The blocks of the P_Key table that are known.
    pub(crate) fn p_keys_known(&self) -> impl Iterator<Item = u16> {
        self.p_keys.keys().copied()
    }

    pub(crate) fn set_p_keys(&mut self, block: u16, bytes: Option<&[u8; 64]>) {
        self.unread.remove(&block);
        match bytes {
            Some(bytes) => self.p_keys.insert(block, *bytes),
            None => self.p_keys.remove(&block),
        };
    }

    /// The port was asked for a block of its P_Key table, and has not answered.
    pub(crate) fn miss_p_keys(&mut self, block: u16) {
        self.unread.insert(block);
    }

    /// Whether all blocks of its P_Key table that were asked for were answered.
    pub(crate) fn has_answered_p_keys(&self) -> bool {
        self.unread.is_empty()
    }

    pub(crate) fn set_arbitration(&mut self, block: VlBlock, bytes: Option<&[u8; 64]>) {
        self.arbitration[block as usize - 1] = bytes.map(|bytes| Box::new(*bytes));
    }
}

pub(crate) fn is_in_service(port: &FoundPort) -> bool {
    matches!(port.state(), PortState::Armed | PortState::Active)
}

/// Puts what the nodes hold away until the next sweep. What is not there any more is forgotten.
pub(crate) fn remember(subnet: &Subnet, held: Vec<Held>) -> Memory {
    let nodes = subnet.nodes.iter().zip(held);
    nodes
        .map(|(node, mut held)| {
            held.settle(node);
            (node.guid(), held)
        })
        .collect()
}
