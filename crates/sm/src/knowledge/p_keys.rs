//! The P_Keys that every port has, and those that two ports have in common (IBA 10.9).

use std::collections::{BTreeMap, BTreeSet};

use weft_routing::{DEFAULT_PKEY, Partitions};
use weft_wire::{Guid, PKey};

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
                let key = PKey::new(partition.pkey, member.full);
                keys.entry(member.guid).or_default().insert(key.partition(), member.full);
            }
        }
        keys.entry(manager).or_default().insert(DEFAULT_PKEY, true);
        let in_order = |keys: BTreeMap<u16, bool>| {
            keys.into_iter().map(|(partition, full)| PKey::new(partition, full)).collect()
        };
        let by_guid = keys.into_iter().map(|(guid, mut keys)| {
            keys.entry(DEFAULT_PKEY).or_insert(false);
            (guid, in_order(keys))
        });
        Self { by_guid: by_guid.collect(), others: vec![PKey(DEFAULT_PKEY)] }
    }

    pub(crate) fn of(&self, guid: Guid) -> &[PKey] {
        self.by_guid.get(&guid).unwrap_or(&self.others)
    }

    /// The ports that have other keys after a change.
    pub(crate) fn changed(&self, after: &Self) -> BTreeSet<Guid> {
        let (mut ours, mut theirs) = (self.by_guid.iter().peekable(), after.by_guid.iter().peekable());
        let mut changed = BTreeSet::new();
        loop {
            let guid = match (ours.peek(), theirs.peek()) {
                (Some((our, _)), Some((their, _))) => **our.min(their),
                (Some((only, _)), None) | (None, Some((only, _))) => **only,
                (None, None) => return changed,
            };
            let before = ours.next_if(|(our, _)| **our == guid).map_or(&self.others, |(_, keys)| keys);
            let after = theirs.next_if(|(their, _)| **their == guid).map_or(&after.others, |(_, keys)| keys);
            if before != after {
                changed.insert(guid);
            }
        }
    }

    /// The key by which one port may send to another and be answered: of those in common, where not both are limited
    /// members, the lowest, so that the default partition is the last resort. It is the first port's.
    pub(crate) fn shared(&self, from: Guid, to: Guid, wanted: Option<PKey>) -> Option<PKey> {
        let to_itself = from == to;
        let theirs = self.of(to);
        let fits = |key: &PKey| {
            let there = theirs.binary_search_by_key(&key.partition(), |other| other.partition());
            let full = |there: usize| to_itself || key.is_full() || theirs[there].is_full();
            wanted.is_none_or(|wanted| wanted.partition() == key.partition()) && there.is_ok_and(full)
        };
        self.of(from).iter().copied().find(fits)
    }

    /// What ports have in both: whoever leaves a partition, or becomes a limited member, is that already, and no one has joined.
    pub(crate) fn meet(&self, after: &Self) -> Self {
        let in_both = |guid: Guid| {
            let theirs = after.of(guid);
            let both = self.of(guid).iter().filter_map(|key| {
                let there = theirs.binary_search_by_key(&key.partition(), |other| other.partition()).ok()?;
                Some(PKey::new(key.partition(), key.is_full() && theirs[there].is_full()))
            });
            (guid, both.collect())
        };
        let guids: BTreeSet<Guid> = self.by_guid.keys().chain(after.by_guid.keys()).copied().collect();
        Self { by_guid: guids.into_iter().map(in_both).collect(), others: self.others.clone() }
    }
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
    fn all_are_in_the_default_partition() {
        let keys = keys();
        let of = |guid| keys.of(Guid(guid)).iter().map(|key| key.0).collect::<Vec<_>>();
        assert_eq!((of(1), of(2), of(3)), (vec![0x8002, 0x7fff], vec![1, 2, 0x7fff], vec![0xffff]));
        assert_eq!((of(4), of(77)), (vec![1, 0x7fff], vec![0x7fff]));
        assert_eq!(of(9), [0xffff], "the manager");
    }

    #[test]
    fn who_has_the_same_keys_has_not_changed() {
        let after = |list| Keys::new(&Partitions { list, ..Partitions::default() }, Guid(9));
        let list = vec![
            partition(0x7fff, &[(1, false), (3, false), (5, false)]),
            partition(2, &[(1, true), (2, true)]),
            partition(1, &[(2, false), (6, false)]),
        ];
        let guids = |keys: BTreeSet<Guid>| keys.into_iter().map(|guid| guid.0).collect::<Vec<_>>();
        // 5 is a limited member of the default partition as everybody else is; 4 has left and 6 has joined.
        assert_eq!(guids(keys().changed(&after(list.clone()))), [2, 3, 4, 6]);
        assert_eq!(guids(after(list).changed(&keys())), [2, 3, 4, 6]);
        assert!(keys().changed(&keys()).is_empty());
    }

    #[test]
    fn what_two_have_in_common_is_no_more_than_either() {
        let list = vec![partition(2, &[(1, false), (2, true), (4, true)])];
        let after = Keys::new(&Partitions { list, ..Partitions::default() }, Guid(9));
        let both = keys().meet(&after);
        let of = |guid| both.of(Guid(guid)).iter().map(|key| key.0).collect::<Vec<_>>();
        assert_eq!((of(1), of(2)), (vec![2, 0x7fff], vec![2, 0x7fff]), "the lesser membership");
        assert_eq!((of(3), of(4), of(9)), (vec![0x7fff], vec![0x7fff], vec![0xffff]));
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
