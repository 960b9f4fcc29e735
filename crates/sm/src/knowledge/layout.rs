//! The places of P_Keys in the tables of ports (IBA 14.2.5.7): a key keeps its place while the port has it, because programs
//! name keys by it.
//!
//! ```text
//! 0  1  2  3  4            0  1  2  3  4            0  1  2  3  4
//! D  A  B  C  -   B leaves D  A  -  C  -   E joins  D  A  -  C  E     place 2 rests
//! ```
//!
//! Place 0 is the default partition's. A newcomer takes the lowest free place that does not rest. A place rests from the port's
//! acknowledgement on: a queue pair that has not heard of the change sends again for so long, by the number of the place. Who
//! comes back meanwhile gets the place back. What another manager has left rests as a whole from the beginning, since no table
//! says when it was left. Where what it has left could not be read, nothing is known of any place, and nothing is to be written.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::{Guid, PKey};

/// Where ports have their keys, as far as this manager knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layouts(BTreeMap<Guid, Layout>);

/// Where one port has its keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Its table, as it was acknowledged or read last.
    table: Vec<PKey>,
    /// Places that it was seen to leave: whose they were, and until when they rest.
    resting: BTreeMap<usize, (PKey, Time)>,
    /// Until when all other free places rest.
    unknown_until: Time,
}

/// What a port's table is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arranged {
    pub(crate) table: Vec<PKey>,
    /// Keys that wait until a place has rested.
    pub(crate) waiting: usize,
    /// Keys that there is no room for.
    pub(crate) left_out: usize,
}

impl Layouts {
    /// A port is found. `is_fresh`: no one has configured it before.
    pub(crate) fn find(&mut self, guid: Guid, is_fresh: bool, rested: Time) {
        let unknown_until = if is_fresh { Time::ZERO } else { rested };
        self.0.entry(guid).or_insert_with(|| Layout { unknown_until, ..Layout::default() });
    }

    pub(crate) fn of(&self, guid: Guid) -> Option<&Layout> {
        self.0.get(&guid)
    }

    /// A port has this table. What it has left rests until then.
    pub(crate) fn settle(&mut self, now: Time, guid: Guid, table: Vec<PKey>, rested: Time) {
        let layout = self.0.entry(guid).or_default();
        layout.resting.retain(|_, (_, until)| *until > now);
        for (place, before) in layout.table.iter().enumerate().skip(1) {
            let after = table.get(place).copied().unwrap_or_default();
            if after.partition() != 0 {
                layout.resting.remove(&place);
            } else if before.partition() != 0 {
                layout.resting.insert(place, (*before, rested));
            }
        }
        layout.table = table;
    }

    /// When the next place has rested.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        let ends = |layout: &Layout| {
            let places = layout.resting.values().map(|(_, until)| *until);
            places.chain([layout.unknown_until]).filter(|until| *until > now).min()
        };
        self.0.values().filter_map(ends).min()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all other ports.
    pub(crate) fn retain(&mut self, stays: impl Fn(Guid) -> bool) {
        self.0.retain(|guid, _| stays(*guid));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Layout {
    /// Whether the port's table has been read, or written, by this manager.
    pub(crate) fn is_known(&self) -> bool {
        !self.table.is_empty()
    }

    /// The port's table, as it was acknowledged or read last.
    pub(crate) fn table(&self) -> &[PKey] {
        &self.table
    }

    fn rests(&self, now: Time, place: usize) -> bool {
        now < self.unknown_until || self.resting.get(&place).is_some_and(|(_, until)| now < *until)
    }

    /// The place that a partition has had, if no other has it now.
    fn place_of(&self, partition: u16) -> Option<usize> {
        let had = self.table.iter().position(|key| key.partition() == partition);
        had.or_else(|| {
            let mut resting = self.resting.iter();
            resting.find(|(_, (key, _))| key.partition() == partition).map(|(place, _)| *place)
        })
    }
}

/// Gives each key a place: the one that it has in `current`, or has had, or a free one. `wanted` has the default partition's key
/// last.
pub(crate) fn arrange(now: Time, current: &[PKey], before: &Layout, wanted: &[PKey]) -> Arranged {
    let room = current.len();
    let Some((default, others)) = wanted.split_last().filter(|_| room > 0) else {
        return Arranged { left_out: wanted.len(), ..Arranged::default() };
    };
    let mut arranged = Arranged { table: vec![PKey(0); room], ..Arranged::default() };
    let table = &mut arranged.table;
    table[0] = *default;
    let mut come = Vec::new();
    for key in others {
        let has = current.iter().skip(1).position(|other| other.partition() == key.partition());
        match has {
            Some(place) => table[place + 1] = *key,
            None => come.push(*key),
        }
    }
    let mut new = Vec::new();
    for key in come {
        let place = before.place_of(key.partition()).filter(|place| (1..room).contains(place));
        match place.filter(|place| table[*place].partition() == 0) {
            Some(place) => table[place] = key,
            None => new.push(key),
        }
    }
    for key in new {
        let is_free = |place: &usize| table[*place].partition() == 0;
        let is_vacant = |place: &usize| is_free(place) && current[*place].partition() == 0;
        // A key that has stood where the default partition's belongs is the port's already, and cannot wait.
        let is_displaced = current[0].partition() == key.partition();
        let mut vacant = (1..room).filter(is_vacant);
        let rested = vacant.clone().find(|place| !before.rests(now, *place));
        match rested.or_else(|| vacant.next().filter(|_| is_displaced)) {
            Some(place) => table[place] = key,
            None if (1..room).any(|place| is_free(&place)) => arranged.waiting += 1,
            None => arranged.left_out += 1,
        }
    }
    arranged
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_machine::Random;

    const NOW: Time = Time::from_secs(100);
    const LATER: Time = Time::from_secs(140);

    fn keys(keys: &[u16]) -> Vec<PKey> {
        keys.iter().copied().map(PKey).collect()
    }

    fn table(current: &[u16], before: &Layout, wanted: &[u16]) -> (Vec<u16>, usize, usize) {
        let Arranged { table, waiting, left_out } = arrange(NOW, &keys(current), before, &keys(wanted));
        (table.iter().map(|key| key.0).collect(), waiting, left_out)
    }

    #[test]
    fn keys_keep_their_places_and_change_in_place() {
        let none = Layout::default();
        assert_eq!(
            table(&[0; 4], &none, &[0x8003, 5, 0x7fff]).0,
            [0x7fff, 0x8003, 5, 0],
            "from the beginning"
        );
        let now = [0x7fff, 0x8003, 5, 0];
        assert_eq!(
            table(&now, &none, &[1, 0x8003, 5, 0x7fff]).0,
            [0x7fff, 0x8003, 5, 1],
            "a lower key joins"
        );
        assert_eq!(table(&now, &none, &[3, 0x8005, 0xffff]).0, [0xffff, 3, 0x8005, 0], "memberships");
        assert_eq!(table(&now, &none, &[5, 0x7fff]).0, [0x7fff, 0, 5, 0], "one leaves");
        assert_eq!(
            table(&now, &none, &[1, 5, 0x7fff]).0,
            [0x7fff, 0, 5, 1],
            "not the place that is being left"
        );
    }

    #[test]
    fn a_place_rests_and_its_own_key_gets_it_back() {
        let mut layouts = Layouts::default();
        let guid = Guid(1);
        layouts.find(guid, true, LATER);
        layouts.settle(NOW, guid, keys(&[0x7fff, 3, 5, 0]), LATER);
        layouts.settle(NOW, guid, keys(&[0x7fff, 0, 5, 0]), LATER);
        let layout = layouts.of(guid).unwrap();
        let current = [0x7fff, 0, 5, 0];
        assert_eq!(table(&current, layout, &[1, 5, 0x7fff]).0, [0x7fff, 0, 5, 1]);
        assert_eq!(table(&current, layout, &[1, 3, 5, 0x7fff]).0, [0x7fff, 3, 5, 1], "back again");
        assert_eq!(table(&current, layout, &[1, 2, 5, 0x7fff]), (vec![0x7fff, 0, 5, 1], 1, 0), "one waits");
        assert_eq!(layouts.next(NOW), Some(LATER));
        let layout = layouts.of(guid).unwrap();
        let rested = arrange(LATER, &keys(&[0x7fff, 0, 5, 1]), layout, &keys(&[1, 2, 5, 0x7fff]));
        assert_eq!((rested.table, rested.waiting), (keys(&[0x7fff, 2, 5, 1]), 0));
        layouts.settle(LATER, guid, keys(&[0x7fff, 2, 5, 1]), LATER);
        assert_eq!(layouts.next(LATER), None);
    }

    #[test]
    fn what_another_manager_left_rests_as_a_whole() {
        let mut layouts = Layouts::default();
        layouts.find(Guid(1), false, LATER);
        let layout = layouts.of(Guid(1)).unwrap();
        assert_eq!(table(&[0x7fff, 0, 5, 0], layout, &[1, 5, 0x7fff]), (vec![0x7fff, 0, 5, 0], 1, 0));
        let moved = table(&[5, 0, 0x7fff, 0], layout, &[5, 0x7fff]);
        assert_eq!(moved, (vec![0x7fff, 5, 0, 0], 0, 0), "what the port has cannot wait");
        layouts.find(Guid(1), true, LATER);
        assert!(layouts.of(Guid(1)).unwrap().rests(NOW, 1), "it is known already");
    }

    #[test]
    fn keys_without_room_are_counted() {
        let none = Layout::default();
        assert_eq!(table(&[0; 3], &none, &[1, 2, 3, 4, 0x7fff]), (vec![0x7fff, 1, 2], 0, 2));
        assert_eq!(table(&[], &none, &[1, 0x7fff]), (vec![], 0, 2));
        assert_eq!(
            table(&[0xffff; 3], &none, &[1, 0x7fff]),
            (vec![0x7fff, 0, 0], 1, 0),
            "when the others are gone"
        );
    }

    /// In a full table of live keys it is the newcomer that yields, whatever its number, and also after the host has lost its table.
    #[test]
    fn a_newcomer_yields_to_live_keys() {
        let (mut layouts, guid) = (Layouts::default(), Guid(1));
        let live = [0x7fff, 7, 0x8005, 9];
        layouts.find(guid, true, LATER);
        layouts.settle(NOW, guid, keys(&live), LATER);
        let before = layouts.of(guid).unwrap().clone();
        layouts.settle(NOW, guid, keys(&[0xffff, 0, 0, 0]), LATER);
        let lost = layouts.of(guid).unwrap();
        for new in [1, 6, 0x8008, 0x100] {
            let mut wanted = vec![7, 0x8005, 9, new];
            wanted.sort_by_key(|key| key & 0x7fff);
            wanted.push(0x7fff);
            assert_eq!(table(&live, &before, &wanted), (live.to_vec(), 0, 1), "{new:#06x} joins");
            assert_eq!(
                table(&[0xffff, 0, 0, 0], lost, &wanted),
                (live.to_vec(), 0, 1),
                "{new:#06x}, restarted"
            );
            // A live key that becomes a full or a limited one is no newcomer.
            wanted.iter_mut().filter(|key| **key == 7).for_each(|key| *key = 0x8007);
            assert_eq!(table(&live, &before, &wanted), (vec![0x7fff, 0x8007, 0x8005, 9], 0, 1));
        }
    }

    /// Of any sequence of joins and leavings: places are stable, and none changes hands before it has rested.
    #[test]
    fn no_place_changes_hands_before_it_has_rested() {
        for seed in 0..200 {
            let mut chance = Random::new(seed);
            let (guid, room, rest) = (Guid(1), 8, Time::from_secs(40));
            let (mut layouts, mut current, mut now) = (Layouts::default(), vec![PKey(0); room], NOW);
            let mut left: BTreeMap<usize, (u16, Time)> = BTreeMap::new();
            layouts.find(guid, true, NOW);
            for _ in 0..60 {
                now += Time::from_secs(chance.below(25).into());
                let mut drawn = |partition| match chance.below(6) {
                    member @ 0..2 => Some(PKey::new(partition, member == 0)),
                    _ => None,
                };
                let mut wanted: Vec<PKey> = (1..12u16).filter_map(&mut drawn).collect();
                wanted.push(PKey(0x7fff));
                let layout = layouts.of(guid).unwrap();
                let arranged = arrange(now, &current, layout, &wanted);
                let placed = arranged.table.iter().filter(|key| key.partition() != 0).count();
                assert_eq!(placed + arranged.waiting + arranged.left_out, wanted.len(), "seed {seed}");
                for (place, (before, after)) in current.iter().zip(&arranged.table).enumerate() {
                    let (before, after) = (before.partition(), after.partition());
                    let is_wanted = wanted.iter().any(|key| key.partition() == before);
                    if before != 0 && is_wanted {
                        assert_eq!(before, after, "seed {seed}: place {place} is kept");
                    } else if before != 0 {
                        assert_eq!(after, 0, "seed {seed}: place {place} is left first");
                        left.insert(place, (before, now + rest));
                    } else if after != 0
                        && let Some((whose, until)) = left.remove(&place)
                    {
                        assert!(whose == after || until <= now, "seed {seed}: place {place} rests");
                    }
                }
                layouts.settle(now, guid, arranged.table.clone(), now + rest);
                current = arranged.table;
            }
        }
    }
}
