//! The P_Key tables of ports, from the keys that they have (`p_keys.rs`, IBA 10.9) and the places of those (`layout.rs`).
//!
//! The default partition's key comes first in every table: ports reach the manager by it. Who is in no partition of the
//! operator's is a limited member of that one; the manager's own port is always a full one.

use weft_machine::Time;
use weft_wire::{Guid, PKey, PKeyTable, PortNum};

use crate::knowledge::{Arranged, FoundNode, HeldPort, Layout, Layouts, PortAt, Subnet, arrange};
use crate::{Options, PartEnforce};

/// How many keys a block of a table has.
const PER_BLOCK: usize = 32;

/// A block of a table.
pub(crate) type Block = [u8; PKeyTable::SIZE];

/// What is to be written to one port.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Blocks that are written first, one after the other: with keys that go to another block, and those that leave there.
    pub(crate) first: Vec<(u16, Block)>,
    /// Blocks as they are to be in the end, as far as they differ.
    pub(crate) last: Vec<(u16, Block)>,
    /// Keys that wait until a place has rested.
    pub(crate) waiting: usize,
}

/// What differs from what a port holds. Of one without keys it is nothing.
pub(crate) fn changes(
    now: Time,
    subnet: &Subnet,
    at: PortAt,
    held: &HeldPort,
    layouts: &Layouts,
    options: &Options,
) -> Changes {
    let (Some(guid), Some(keys)) = (whose(subnet, at, options), &subnet.keys) else {
        return Changes::default();
    };
    if is_unread(subnet, at, held, layouts) {
        return Changes::default();
    }
    let layout = if is_end_at(subnet, at) { layouts.of(guid) } else { None };
    let current = table(held, room(subnet, at));
    let no_layout = Layout::default();
    let arranged = arrange(now, &current, layout.unwrap_or(&no_layout), keys.of(guid));
    steps(held, &current, arranged)
}

/// Whether a port has a table of its own of which nothing is known, because the port has not answered. Written now, keys would go to
/// other places, or be gone until places have rested: it keeps what it has, and is asked again by the next sweep.
pub(crate) fn is_unread(subnet: &Subnet, at: PortAt, held: &HeldPort, layouts: &Layouts) -> bool {
    let is_known = || layouts.of(subnet.end_guid(at)).is_some_and(Layout::is_known);
    is_end_at(subnet, at) && !held.has_answered_p_keys() && !is_known()
}

/// Splits the way from one table to another into blocks.
fn steps(held: &HeldPort, current: &[PKey], arranged: Arranged) -> Changes {
    let Arranged { table, waiting, .. } = arranged;
    let place = |keys: &[PKey], partition| keys.iter().position(|key| key.partition() == partition);
    // Keys that would be in no block while one is written and the other is not.
    let moves = |key: &PKey| {
        let from_to = place(current, key.partition()).zip(place(&table, key.partition()));
        key.partition() != 0 && from_to.is_some_and(|(from, to)| from / PER_BLOCK != to / PER_BLOCK)
    };
    let mut changes = Changes { waiting, ..Changes::default() };
    let mut between = table.clone();
    if current.iter().any(moves) {
        for (place, key) in current.iter().enumerate().skip(PER_BLOCK).filter(|(_, key)| moves(key)) {
            if between[place].partition() == 0 {
                between[place] = *key;
            }
        }
        // The block of the default partition's place comes last: what stood there has gone to another before.
        let blocks = (1..current.len().div_ceil(PER_BLOCK)).chain([0]);
        let blocks = blocks.map(|number| (number as u16, block(&between, number)));
        changes.first = blocks.filter(|(number, block)| held.p_keys(*number) != Some(block)).collect();
    }
    for number in 0..table.len().div_ceil(PER_BLOCK) {
        let wanted = block(&table, number);
        let written = changes.first.iter().find(|(first, _)| usize::from(*first) == number);
        let is_there = match written {
            Some((_, block)) => *block == wanted,
            None => held.p_keys(number as u16) == Some(&wanted),
        };
        if !is_there {
            changes.last.push((number as u16, wanted));
        }
    }
    changes
}

fn block(table: &[PKey], number: usize) -> Block {
    let mut p_keys = [PKey(0); PER_BLOCK];
    p_keys.iter_mut().zip(table.iter().skip(number * PER_BLOCK)).for_each(|(place, key)| *place = *key);
    PKeyTable { p_keys }.encode()
}

/// What a port is known to hold; what is not known is empty.
pub(crate) fn table(held: &HeldPort, room: usize) -> Vec<PKey> {
    let mut table = vec![PKey(0); room];
    for (number, part) in table.chunks_mut(PER_BLOCK).enumerate() {
        if let Some(bytes) = held.p_keys(number as u16) {
            part.iter_mut().zip(PKeyTable::decode(bytes).p_keys).for_each(|(place, key)| *place = key);
        }
    }
    table
}

/// The blocks that are written into a port.
pub(crate) fn blocks(subnet: &Subnet, at: PortAt, options: &Options) -> std::ops::Range<u16> {
    let is_written = subnet.keys.is_some() && whose(subnet, at, options).is_some();
    0..if is_written { room(subnet, at).div_ceil(PER_BLOCK) as u16 } else { 0 }
}

/// Whose keys a port's table has: its own, or those of the host behind a switch's port that enforces partitions, with the host's
/// memberships. What the host sends must be among them, and what it gets must match one.
fn whose(subnet: &Subnet, at: PortAt, options: &Options) -> Option<Guid> {
    if is_end_at(subnet, at) {
        return Some(subnet.end_guid(at));
    }
    let enforced = enforced(subnet, at, options) != (false, false);
    enforced.then(|| host_behind(subnet, at)).flatten()
}

/// The host behind a switch's port. One that is silent is taken to be there still, while its link is up.
pub(crate) fn host_behind(subnet: &Subnet, at: PortAt) -> Option<Guid> {
    let port = subnet.port(at)?;
    match port.peer {
        Some(peer) => subnet.node(peer.node).filter(|node| !node.is_switch()).map(|_| subnet.end_guid(peer)),
        None if port.silent && port.is_up() => {
            subnet.silent_hosts.get(&(subnet.node(at.node)?.guid(), at.port)).copied()
        }
        None => None,
    }
}

/// How many keys there are no places for in a port's own table.
pub(crate) fn left_over(subnet: &Subnet, at: PortAt) -> usize {
    let Some(keys) = &subnet.keys else { return 0 };
    keys.of(subnet.end_guid(at)).len().saturating_sub(room(subnet, at))
}

/// Whether a switch's port looks at what comes from the link, and at what goes to it. One that has no room for all of its
/// host's keys looks at nothing: it would drop what is allowed.
pub(crate) fn enforced(subnet: &Subnet, at: PortAt, options: &Options) -> (bool, bool) {
    let is_switch = subnet.node(at.node).is_some_and(FoundNode::is_switch);
    let keys = || Some(subnet.keys.as_ref()?.of(host_behind(subnet, at)?).len());
    let has_room = |keys: usize| keys <= room(subnet, at);
    if !is_switch || at.port == PortNum::ZERO || !keys().is_some_and(has_room) {
        return (false, false);
    }
    match options.routing.part_enforce {
        PartEnforce::Both => (true, true),
        PartEnforce::In => (true, false),
        PartEnforce::Out => (false, true),
        PartEnforce::Off => (false, false),
    }
}

/// Whether any of these ports is one of a switch that is to look at other packets than it does.
pub(crate) fn enforce_otherwise(
    subnet: &Subnet,
    mut ports: impl Iterator<Item = PortAt>,
    options: &Options,
) -> bool {
    let differs = |at: PortAt| {
        let info = subnet.port(at).and_then(|port| port.info);
        let now = |info: weft_wire::PortInfo| {
            (info.partition_enforcement_inbound, info.partition_enforcement_outbound)
        };
        info.is_some_and(|info| now(info) != enforced(subnet, at, options))
    };
    let is_switch = |at: &PortAt| subnet.node(at.node).is_some_and(FoundNode::is_switch);
    subnet.keys.is_some() && ports.any(|at| is_switch(&at) && differs(at))
}

/// Whether a port is one that has a LID.
pub(crate) fn is_end_at(subnet: &Subnet, at: PortAt) -> bool {
    subnet.node(at.node).is_some_and(|node| (at.port == PortNum::ZERO) == node.is_switch())
}

/// How many keys a port's table has places for.
pub(crate) fn room(subnet: &Subnet, at: PortAt) -> usize {
    let Some(node) = subnet.node(at.node) else { return 0 };
    if is_end_at(subnet, at) {
        return node.info.partition_cap.into();
    }
    node.switch.map_or(0, |switch| switch.partition_enforcement_cap).into()
}

/// The ports whose tables have keys, those of switches towards hosts before those with a LID, as far as `whose` keys are asked for.
pub(crate) fn ports(subnet: &Subnet, whose: impl Fn(Guid) -> bool) -> Vec<PortAt> {
    let (mut filters, mut ends) = (Vec::new(), Vec::new());
    for (node, found) in subnet.iter() {
        let is_switch = found.is_switch();
        for (number, port) in (0u8..=u8::MAX).map(PortNum).zip(&found.ports) {
            let at = PortAt { node, port: number };
            if (number == PortNum::ZERO) != is_switch {
                let host = if is_switch { host_behind(subnet, at) } else { None };
                host.is_some_and(&whose).then(|| filters.push(at));
            } else if (is_switch || port.path.is_some() || port.peer.is_some()) && whose(subnet.end_guid(at))
            {
                ends.push(at);
            }
        }
    }
    filters.append(&mut ends);
    filters
}

/// The modifier that names a block of a port's table: only a switch takes the port's number.
pub(crate) fn p_key_modifier(subnet: &Subnet, at: PortAt, block: u16) -> u32 {
    let port = if subnet.node(at.node).is_some_and(FoundNode::is_switch) { at.port.0 } else { 0 };
    u32::from(port) << 16 | u32::from(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(keys: &[(usize, u16)]) -> (HeldPort, Vec<PKey>) {
        let mut table = vec![PKey(0); 3 * PER_BLOCK];
        keys.iter().for_each(|(place, key)| table[*place] = PKey(*key));
        let mut port = HeldPort::default();
        (0..3).for_each(|number| port.set_p_keys(number as u16, Some(&block(&table, number))));
        (port, table)
    }

    /// The tables that a port has one after the other, and the blocks that are written.
    fn way(keys: &[(usize, u16)], wanted: &[u16]) -> (Vec<Vec<PKey>>, Vec<u16>) {
        let (mut port, current) = held(keys);
        let wanted: Vec<PKey> = wanted.iter().copied().map(PKey).collect();
        let arranged = arrange(Time::ZERO, &current, &Layout::default(), &wanted);
        let Changes { first, last, .. } = steps(&port, &current, arranged);
        let (mut tables, mut numbers) = (Vec::new(), Vec::new());
        for (number, block) in first.into_iter().chain(last) {
            port.set_p_keys(number, Some(&block));
            tables.push(table(&port, current.len()));
            numbers.push(number);
        }
        (tables, numbers)
    }

    #[test]
    fn one_block_that_differs_is_one_write() {
        let has = [(0, 0x7fff), (1, 5), (40, 6)];
        assert_eq!(way(&has, &[5, 6, 0x7fff]).1, Vec::<u16>::new());
        assert_eq!(way(&has, &[5, 0x8006, 0x7fff]).1, [1]);
        assert_eq!(way(&has, &[0x8005, 7, 0x8006, 0x7fff]).1, [0, 1]);
    }

    /// Another manager has put the default partition's key and a tenant's where they do not belong.
    #[test]
    fn a_key_that_changes_blocks_is_never_missing() {
        let full: Vec<(usize, u16)> = (1..32).map(|place| (place, 0x100 + place as u16)).collect();
        let mut wanted: Vec<u16> = full.iter().map(|(_, key)| *key).collect();
        wanted.extend([0x200, 0x7fff]);
        let has: Vec<_> = full.into_iter().chain([(0, 0x200), (33, 0x7fff)]).collect();
        let (tables, numbers) = way(&has, &wanted);
        assert_eq!(numbers, [1, 0, 1]);
        for table in &tables {
            for key in &wanted {
                assert!(table.iter().any(|has| has.0 == *key), "{key:#06x} is missing: {table:?}");
            }
        }
        let last = tables.last().unwrap();
        assert_eq!((last[0], last[32], last[33]), (PKey(0x7fff), PKey(0x200), PKey(0)));
    }
}
