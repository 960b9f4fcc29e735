//! Reads back what stands in the devices, a part with each light sweep, round and round.
//!
//! A manager that has just begun does not know what the one before it left on the wire, and no one knows who else
//! writes. So every table and port that the manager knows is read again and again; a light sweep stays bounded
//! however large the fabric is. What is in doubt (`unconfirmed.rs`) goes first.
//!
//! Of a switch's SLtoVL mapping one input port per output is read in each round, and the next one in the next:
//! managers write all inputs alike, and all pairs of a switch with 36 ports would be most of the work.

use weft_machine::Time;
use weft_wire::{Guid, PortNum};

use super::settings::Lanes;
use crate::Options;
use crate::knowledge::{FoundNode, Held, Key, Memory, PortAt, Subnet};
use crate::requests::LATE_MAX;

/// Where the next part begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AuditPosition {
    round: u32,
    guid: Guid,
    /// How much of this node has been read.
    done: usize,
}

/// How far it is.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Before this it would be too early: what is in doubt may still change.
    from: Time,
    next: AuditPosition,
    /// Where the part ends that is being read.
    end: AuditPosition,
}

impl Audit {
    /// Everything is in doubt: a new first round begins when nothing can be late any more.
    pub(crate) fn begin(&mut self, since: Time) {
        *self = Self { from: since + LATE_MAX, ..Self::default() };
    }

    /// Whether everything has been read since it began.
    pub(crate) fn is_round(&self) -> bool {
        self.next.round > 0
    }

    /// The next part, of this size at most.
    pub(crate) fn part(
        &mut self,
        now: Time,
        subnet: &Subnet,
        memory: &Memory,
        options: &Options,
        most: usize,
    ) -> Vec<Key> {
        self.end = self.next;
        let mut keys = Vec::new();
        if now < self.from || most == 0 {
            return keys;
        }
        let AuditPosition { round, guid: first, done } = self.next;
        for (at, node) in subnet.iter().filter(|(_, node)| node.guid() >= first) {
            let Some(held) = memory.get(&node.guid()) else { continue };
            let done = if node.guid() == first { done } else { 0 };
            let things = things(subnet, at, node, held, options, round);
            let room = most - keys.len();
            keys.extend(things.iter().skip(done).take(room));
            if done + room < things.len() {
                self.end = AuditPosition { round, guid: node.guid(), done: done + room };
                return keys;
            }
        }
        self.end = AuditPosition { round: round.wrapping_add(1).max(1), ..AuditPosition::default() };
        keys
    }

    /// The part has been read.
    pub(crate) fn finished(&mut self) {
        self.next = self.end;
    }
}

/// What there is to read at one node, besides what every light sweep reads.
fn things(
    subnet: &Subnet,
    node: u32,
    found: &FoundNode,
    held: &Held,
    options: &Options,
    round: u32,
) -> Vec<Key> {
    let mut things = Vec::new();
    let top = found.switch.map_or(0, |info| info.linear_fdb_top);
    if top != 0 {
        things.extend((0..=top / 64).map(|block| Key::Lft { node, block }));
    }
    let input = if found.is_switch() { (round % (u32::from(found.info.num_ports) + 1)) as u8 } else { 0 };
    for (port, known) in
        (0u8..=u8::MAX).map(PortNum).zip(&found.ports).filter(|(_, port)| port.peer.is_some())
    {
        let at = PortAt { node, port };
        if found.is_switch() {
            things.push(Key::PortInfo(at));
        }
        let Some(held) = held.port(port) else { continue };
        things.extend(held.p_keys_known().map(|block| Key::PKeys(at, block)));
        things.extend(held.sl_to_vl.map(|_| Key::SlToVl(at, input)));
        let blocks = Lanes::of(subnet, at, options).arbitration(known, options).into_iter();
        let written = blocks.filter(|(block, _)| held.arbitration(*block).is_some());
        things.extend(written.map(|(block, _)| Key::VlArbitration(at, block)));
    }
    things
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_mgmt::DirectedPath;
    use weft_wire::{NodeInfo, NodeType, SwitchInfo};

    /// A switch with two blocks and three cabled ports, cabled to itself or not does not matter here.
    fn switch(guid: u64) -> FoundNode {
        let cabled = |port: u8| crate::knowledge::FoundPort {
            peer: (port > 0).then_some(PortAt { node: 0, port: PortNum(port) }),
            ..Default::default()
        };
        FoundNode {
            info: NodeInfo {
                node_type: NodeType::Switch,
                node_guid: Guid(guid),
                num_ports: 3,
                ..NodeInfo::default()
            },
            description: String::new(),
            switch: Some(SwitchInfo { linear_fdb_top: 64, ..SwitchInfo::default() }),
            path: DirectedPath::HERE,
            ports: (0..=3).map(cabled).collect(),
            silent: false,
        }
    }

    fn fabric() -> (Subnet, Memory) {
        let subnet = Subnet { nodes: vec![switch(1), switch(2)], ..Subnet::default() };
        let memory = subnet.nodes.iter().map(|node| (node.guid(), Held::carry(None, node).0)).collect();
        (subnet, memory)
    }

    #[test]
    fn parts_make_a_round_and_rounds_follow_each_other() {
        let (subnet, memory) = fabric();
        let (options, mut audit) = (Options::default(), Audit::default());
        audit.begin(Time::ZERO);
        assert!(audit.part(Time::from_secs(1), &subnet, &memory, &options, 4).is_empty(), "too early");
        let part = |audit: &mut Audit| {
            let part = audit.part(LATE_MAX, &subnet, &memory, &options, 4);
            audit.finished();
            part
        };
        let mut whole = Vec::new();
        for (read, is_round) in [(4, false), (4, false), (2, true)] {
            let keys = part(&mut audit);
            assert_eq!((keys.len(), audit.is_round()), (read, is_round));
            whole.extend(keys);
        }
        let mut sorted = whole.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 10, "two blocks and three ports of each switch: {whole:?}");
        assert_eq!(part(&mut audit), whole[..4]);
        audit.begin(LATE_MAX);
        assert!(!audit.is_round());
    }

    #[test]
    fn a_part_that_was_cut_short_is_read_again() {
        let (subnet, memory) = fabric();
        let (options, mut audit) = (Options::default(), Audit::default());
        let first = audit.part(LATE_MAX, &subnet, &memory, &options, 3);
        assert_eq!(audit.part(LATE_MAX, &subnet, &memory, &options, 3), first);
        audit.finished();
        assert_ne!(audit.part(LATE_MAX, &subnet, &memory, &options, 3), first);
    }

    #[test]
    fn the_next_round_reads_the_next_input() {
        let (subnet, mut memory) = fabric();
        for held in memory.values_mut() {
            held.ports.iter_mut().for_each(|port| port.sl_to_vl = Some(Default::default()));
        }
        let (options, mut audit) = (Options::default(), Audit::default());
        let mut inputs = Vec::new();
        for _ in 0..5 {
            let keys = audit.part(LATE_MAX, &subnet, &memory, &options, 99);
            audit.finished();
            inputs.push(keys.iter().find_map(|key| match key {
                Key::SlToVl(_, input) => Some(*input),
                _ => None,
            }));
        }
        assert_eq!(inputs, [Some(0), Some(1), Some(2), Some(3), Some(0)]);
    }
}
