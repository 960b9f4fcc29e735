//! Who has which P_Keys: the tables of ports, and the keys that two ports have in common (IBA 10.9).
//!
//! The default partition's key comes first in every table: ports reach the manager by it. Who is in no partition of the
//! operator's is a limited member of that one; the manager's own port is always a full one.

use std::collections::BTreeMap;

use weft_routing::{DEFAULT_PKEY, Partitions};
use weft_wire::{Guid, PKey, PKeyTable, PortNum};

use crate::key::PortAt;
use crate::subnet::{FoundNode, Subnet};
use crate::{Options, PartEnforce};

/// Set in the keys of full members.
const FULL: u16 = 0x8000;

/// How many keys a block of a table has.
const PER_BLOCK: usize = 32;

/// The keys of every port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    /// By port GUID, in order of what the lower 15 bits say.
    by_guid: BTreeMap<Guid, Vec<PKey>>,
    /// The keys of everybody else.
    others: Vec<PKey>,
}

impl Keys {
    /// `manager`: the manager's own port.
    pub(crate) fn new(partitions: &Partitions, manager: Guid) -> Self {
        let mut keys: BTreeMap<Guid, BTreeMap<u16, bool>> = BTreeMap::new();
        for partition in &partitions.list {
            for member in &partition.members {
                keys.entry(member.guid).or_default().insert(partition.pkey & !FULL, member.full);
            }
        }
        keys.entry(manager).or_default().insert(DEFAULT_PKEY, true);
        let in_order = |keys: BTreeMap<u16, bool>| {
            keys.into_iter().map(|(key, full)| PKey(key | if full { FULL } else { 0 })).collect()
        };
        let by_guid = keys.into_iter().map(|(guid, mut keys)| {
            keys.entry(DEFAULT_PKEY).or_insert(false);
            (guid, in_order(keys))
        });
        Self { by_guid: by_guid.collect(), others: vec![PKey(DEFAULT_PKEY)] }
    }

    fn of(&self, guid: Guid) -> &[PKey] {
        self.by_guid.get(&guid).unwrap_or(&self.others)
    }

    /// The key by which one port may send to another and be answered: of those in common, where not both are limited
    /// members, the lowest, so that the default partition is the last resort. It is the first port's.
    pub(crate) fn shared(&self, from: Guid, to: Guid, wanted: Option<PKey>) -> Option<PKey> {
        let to_itself = from == to;
        let theirs = self.of(to);
        let fits = |key: &PKey| {
            let there = theirs.binary_search_by_key(&(key.0 & !FULL), |other| other.0 & !FULL);
            let full = |there: usize| to_itself || (key.0 | theirs[there].0) & FULL != 0;
            wanted.is_none_or(|wanted| (wanted.0 ^ key.0) & !FULL == 0) && there.is_ok_and(full)
        };
        self.of(from).iter().copied().find(fits)
    }

    /// The table of a port that has room for this many keys: the default partition's first.
    fn table(&self, guid: Guid, room: usize) -> Vec<PKey> {
        let keys = self.of(guid);
        let default = keys.last().into_iter().chain(keys.split_last().map_or(&[][..], |(_, rest)| rest));
        default.copied().take(room).collect()
    }
}

/// What is written into one port: all blocks that it has, so that no key is left of those before.
pub(crate) fn blocks(subnet: &Subnet, at: PortAt, options: &Options) -> Vec<(u16, [u8; PKeyTable::SIZE])> {
    let (Some(keys), Some(node)) = (&subnet.keys, subnet.node(at.node)) else { return Vec::new() };
    let room = usize::from(room(node, at.port));
    let table = if is_end(node, at.port) {
        keys.table(subnet.end_guid(at), room)
    } else if enforced(subnet, at, options) != (false, false) {
        let Some(peer) = subnet.port(at).and_then(|port| port.peer) else { return Vec::new() };
        // The host's own memberships: what it sends must be among them, and what it gets must match one.
        keys.table(subnet.end_guid(peer), room)
    } else {
        return Vec::new();
    };
    let block = |number: usize| {
        let mut p_keys = [PKey(0); PER_BLOCK];
        p_keys.iter_mut().zip(table.iter().skip(number * PER_BLOCK)).for_each(|(place, key)| *place = *key);
        (number as u16, PKeyTable { p_keys }.encode())
    };
    (0..room.div_ceil(PER_BLOCK)).map(block).collect()
}

/// How many keys there are no places for in a port's own table.
pub(crate) fn left_over(subnet: &Subnet, at: PortAt) -> usize {
    let (Some(keys), Some(node)) = (&subnet.keys, subnet.node(at.node)) else { return 0 };
    keys.of(subnet.end_guid(at)).len().saturating_sub(usize::from(room(node, at.port)))
}

/// Whether a switch's port looks at what comes from the link, and at what goes to it. One that has no room for all of its
/// host's keys looks at nothing: it would drop what is allowed.
pub(crate) fn enforced(subnet: &Subnet, at: PortAt, options: &Options) -> (bool, bool) {
    let keys_of_peer = || {
        let peer = subnet.port(at)?.peer?;
        subnet.node(peer.node).filter(|node| !node.is_switch())?;
        Some(subnet.keys.as_ref()?.of(subnet.end_guid(peer)).len())
    };
    let (Some(node), Some(keys)) = (subnet.node(at.node), keys_of_peer()) else { return (false, false) };
    if !node.is_switch() || at.port == PortNum::ZERO || keys > usize::from(room(node, at.port)) {
        return (false, false);
    }
    match options.part_enforce {
        PartEnforce::Both => (true, true),
        PartEnforce::In => (true, false),
        PartEnforce::Out => (false, true),
        PartEnforce::Off => (false, false),
    }
}

fn is_end(node: &FoundNode, port: PortNum) -> bool {
    (port == PortNum::ZERO) == node.is_switch()
}

fn room(node: &FoundNode, port: PortNum) -> u16 {
    if is_end(node, port) {
        node.info.partition_cap
    } else {
        node.switch.map_or(0, |switch| switch.partition_enforcement_cap)
    }
}

/// The modifier that names a block of a port's table: only a switch is told which port.
pub(crate) fn p_key_modifier(subnet: &Subnet, at: PortAt, block: u16) -> u32 {
    let port = if subnet.node(at.node).is_some_and(FoundNode::is_switch) { at.port.0 } else { 0 };
    u32::from(port) << 16 | u32::from(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_routing::{Isolation, Member, Partition};

    fn partition(pkey: u16, members: &[(u64, bool)]) -> Partition {
        let members = members.iter().map(|(guid, full)| Member { guid: Guid(*guid), full: *full }).collect();
        Partition { name: String::new(), pkey, members, isolation: Isolation::Def }
    }

    fn keys() -> Keys {
        let list = vec![
            partition(0x7fff, &[(1, false), (2, false), (3, true)]),
            partition(2, &[(1, true), (2, false)]),
            partition(1, &[(2, false), (4, false)]),
        ];
        Keys::new(&Partitions { list, ..Partitions::default() }, Guid(9))
    }

    #[test]
    fn the_default_partition_comes_first_and_all_are_in_it() {
        let keys = keys();
        let table = |guid, room| keys.table(Guid(guid), room).iter().map(|key| key.0).collect::<Vec<_>>();
        assert_eq!(table(1, 9), [0x7fff, 0x8002]);
        assert_eq!(table(2, 9), [0x7fff, 1, 2]);
        assert_eq!(table(2, 2), [0x7fff, 1]);
        assert_eq!(table(3, 9), [0xffff]);
        assert_eq!((table(4, 9), table(77, 9)), (vec![0x7fff, 1], vec![0x7fff]));
        assert_eq!(table(9, 9), [0xffff], "the manager");
    }

    #[test]
    fn a_shared_key_needs_a_full_member() {
        let keys = keys();
        let shared = |from, to| keys.shared(Guid(from), Guid(to), None).map(|key| key.0);
        assert_eq!((shared(1, 2), shared(2, 1)), (Some(0x8002), Some(2)), "each has its own membership");
        assert_eq!(shared(2, 4), None, "both are limited, in both partitions");
        assert_eq!((shared(1, 3), shared(3, 77)), (Some(0x7fff), Some(0xffff)));
        assert_eq!((shared(77, 78), shared(77, 9)), (None, Some(0x7fff)));
        assert_eq!(shared(4, 4), Some(1), "to itself");
        let wanted = |key| keys.shared(Guid(1), Guid(2), Some(PKey(key))).map(|key| key.0);
        assert_eq!(
            (wanted(2), wanted(0x8002), wanted(1), wanted(0x7fff)),
            (Some(0x8002), Some(0x8002), None, None)
        );
    }
}
