//! Tables that sweeps leave alone, because the manager does not write them: P_Keys, GUIDs and lane arbitration. They
//! are read when somebody asks for them first after a sweep, and kept until the next one.

use std::collections::{BTreeMap, BTreeSet};

use weft_mgmt::{DirectedPath, SmpRoute};
use weft_wire::{Guid, GuidInfo, Mad, PortNum, status};

use super::ends::End;
use super::view::View;
use crate::knowledge::{FoundNode, FoundPort, Key, PortAt, Subnet};
use crate::requests::{Ask, Step};
use crate::requests::{Get, SmpRequest};

/// Which tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    PKeys,
    VlArbitration,
    Guids,
}

/// A block of 64 bytes, by its number.
type Block = (u16, [u8; 64]);

/// Tables that have been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// Blocks in order.
    blocks: BTreeMap<(Kind, PortAt), Vec<Block>>,
    known: BTreeSet<Kind>,
}

/// One block to be read.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    kind: Kind,
    at: PortAt,
    block: u16,
    is_switch: bool,
    path: DirectedPath,
}

/// Tables being read.
#[derive(Debug)]
pub(crate) struct AskedTables {
    plan: Vec<Wanted>,
    next: usize,
    kinds: BTreeSet<Kind>,
    answers: BTreeMap<u32, [u8; 64]>,
    /// Nodes that did not answer.
    silent: BTreeSet<u32>,
}

impl Tables {
    pub(super) fn knows(&self, kind: Kind) -> bool {
        self.known.contains(&kind)
    }

    /// The blocks of the ports that an end port stands for.
    pub(super) fn of<'a>(
        &'a self,
        kind: Kind,
        end: &End,
        view: &View,
    ) -> impl Iterator<Item = (PortNum, u16, &'a [u8; 64])> + use<'a> {
        let ports: Vec<PortNum> = view.ports(end).map(|(port, _)| port).collect();
        let node = end.at.node;
        ports.into_iter().flat_map(move |port| {
            let blocks = self.blocks.get(&(kind, PortAt { node, port })).map_or(&[][..], Vec::as_slice);
            blocks.iter().map(move |(block, bytes)| (port, *block, bytes))
        })
    }

    /// The port that has this GUID besides its own.
    pub(super) fn port_with_alias(&self, guid: Guid) -> Option<PortAt> {
        let guids = self.blocks.iter().filter(|((kind, _), _)| *kind == Kind::Guids);
        let mut found = guids.filter(|(_, blocks)| {
            blocks.iter().any(|(_, bytes)| GuidInfo::decode(bytes).guids.contains(&guid))
        });
        found.next().filter(|_| guid != Guid(0)).map(|((_, at), _)| *at)
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, read: AskedTables) {
        self.known.extend(read.kinds);
        for (place, bytes) in read.answers {
            if let Some(wanted) = read.plan.get(place as usize) {
                self.blocks.entry((wanted.kind, wanted.at)).or_default().push((wanted.block, bytes));
            }
        }
    }
}

impl AskedTables {
    pub(crate) fn new(kinds: BTreeSet<Kind>, subnet: &Subnet) -> Self {
        let mut plan = Vec::new();
        for (node, found) in subnet.iter() {
            for (number, port) in (0..=u8::MAX).map(PortNum).zip(&found.ports) {
                let at = PortAt { node, port: number };
                let Some(path) = subnet.path(at) else { continue };
                for kind in &kinds {
                    let (kind, is_switch) = (*kind, found.is_switch());
                    let blocks = kind.blocks(found, number, port);
                    plan.extend(blocks.into_iter().map(|block| Wanted { kind, at, block, is_switch, path }));
                }
            }
        }
        Self { plan, next: 0, kinds, answers: BTreeMap::new(), silent: BTreeSet::new() }
    }
}

impl Kind {
    /// The numbers of the blocks that a port has.
    fn blocks(self, node: &FoundNode, number: PortNum, port: &FoundPort) -> Vec<u16> {
        let is_end = (number == PortNum::ZERO) == node.is_switch();
        let Some(info) = port.info else { return Vec::new() };
        let count = |entries: u16, per_block: u16| (0..entries.div_ceil(per_block)).collect();
        match self {
            Self::PKeys if is_end => count(node.info.partition_cap, 32),
            Self::PKeys => count(node.switch.map_or(0, |info| info.partition_enforcement_cap), 32),
            Self::Guids if is_end => count(info.guid_cap.into(), 8),
            Self::Guids => Vec::new(),
            Self::VlArbitration => {
                // A table has 64 entries at most.
                let halves = |entries: u8, first: u16| {
                    (0..u16::from(entries.div_ceil(32)).min(2)).map(move |n| first + n)
                };
                let high = halves(info.vl_arbitration_high_cap, 3);
                halves(info.vl_arbitration_low_cap, 1).chain(high).collect()
            }
        }
    }
}

impl Wanted {
    fn request(&self) -> SmpRequest {
        let (block, port) = (u32::from(self.block), u32::from(self.at.port.0));
        match self.kind {
            // Only a switch takes the port's number; an HCA means the port that is asked.
            Kind::PKeys if self.is_switch => SmpRequest::get(Get::PKeys, port << 16 | block),
            Kind::PKeys => SmpRequest::get(Get::PKeys, block),
            Kind::Guids => SmpRequest::get(Get::GuidInfo, block),
            Kind::VlArbitration => SmpRequest::get(Get::VlArbitration, block << 16 | port),
        }
    }
}

impl Step for AskedTables {
    fn next(&mut self) -> Option<Ask> {
        while self.plan.get(self.next).is_some_and(|wanted| self.silent.contains(&wanted.at.node)) {
            self.next += 1;
        }
        let wanted = self.plan.get(self.next)?;
        let key = Key::Write(self.next as u32);
        self.next += 1;
        Some(Ask { key, route: SmpRoute::Directed(wanted.path), request: wanted.request() })
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        if let Key::Write(place) = key
            && answer.status() == status::OK
        {
            self.answers.insert(place, *answer.smp_data());
        }
    }

    /// What cannot be read has no record; the next sweep will see to the node, which is asked no more here.
    fn failed(&mut self, key: Key) {
        if let Key::Write(place) = key
            && let Some(wanted) = self.plan.get(place as usize)
        {
            self.silent.insert(wanted.at.node);
        }
    }
}
