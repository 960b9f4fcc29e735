//! Senders, and the levels that they use.

use crate::bfs::BATCH;
use crate::bits::ones;
use crate::lanes::ServiceLevels;

use super::ground::{End, Ground};
use super::rows::{Bits, Rows};

/// LIDs on one switch that no one can tell apart by the lanes that their packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) switch: u32,
    /// The port by which they come in, or a lower one from which packets go on alike.
    pub(crate) entry: u8,
    /// The levels that they can send.
    sends: u16,
    /// By routing: the source class.
    classes: [Option<u16>; 2],
    host: bool,
    full: bool,
}

/// What of a destination decides who sends to it and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DestinationKind {
    /// By routing: the destination class.
    classes: [Option<u16>; 2],
    host: bool,
    full: bool,
}

/// A LID that takes part, and whether it is a full member of the partition in question.
pub(crate) type Part = (End, bool);

/// LIDs as full members of one partition.
pub(crate) fn whole(ends: &[End]) -> Vec<Part> {
    ends.iter().map(|end| (*end, true)).collect()
}

/// All who send, by switch, under one routing or two that are in force at the same time.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    levels: &'a [&'a ServiceLevels],
    groups: Vec<Group>,
    /// By switch: where its groups begin.
    first: Vec<u32>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(
        ground: &Ground<'_>,
        rows: &Rows,
        levels: &'a [&'a ServiceLevels],
        parts: &[Part],
    ) -> Self {
        let mut groups: Vec<Group> = parts
            .iter()
            .map(|(end, full)| Group {
                switch: end.switch,
                entry: rows.kind(end.switch, end.at).0,
                sends: rows.sends(end),
                classes: classes(levels, |levels| levels.source_class(end.lid)),
                host: end.host,
                full: *full,
            })
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let mut first = vec![0; ground.len() + 1];
        for group in &groups {
            first[group.switch as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        Self { levels, groups, first }
    }

    pub(crate) fn target(&self, (end, full): &Part) -> DestinationKind {
        let classes = classes(self.levels, |levels| levels.destination_class(end.lid));
        DestinationKind { classes, host: end.host, full: *full }
    }

    /// Those on one switch.
    pub(crate) fn on(&self, switch: u32) -> &[Group] {
        &self.groups[self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize]
    }

    /// Whether a group sends to a target: one of them is a host, and one a full member.
    pub(crate) fn talk(group: &Group, target: &DestinationKind) -> bool {
        (group.host || target.host) && (group.full || target.full)
    }

    /// The levels by which a group sends to a target, as bits; none where they do not talk.
    pub(crate) fn levels(&self, group: &Group, target: &DestinationKind) -> u16 {
        if !Self::talk(group, target) {
            return 0;
        }
        let classes = group.classes.iter().zip(&target.classes);
        let level = |(levels, (source, destination)): (&&ServiceLevels, (&Option<u16>, &Option<u16>))| {
            1 << levels.level(*source, *destination)
        };
        self.levels.iter().zip(classes).map(level).fold(0, |all, level: u16| all | level) & group.sends
    }
}

fn classes(levels: &[&ServiceLevels], class: impl Fn(&ServiceLevels) -> Option<u16>) -> [Option<u16>; 2] {
    std::array::from_fn(|at| levels.get(at).and_then(|levels| class(levels)))
}

/// For a block of destinations: by which lanes each switch's own end ports send, where no packet changes lanes.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// By slot, then by switch.
    lanes: Vec<u16>,
    /// By slot.
    kinds: Vec<DestinationKind>,
    /// By destination: its slot. Those that everybody sends to alike share one.
    slots: Vec<usize>,
    switches: usize,
}

impl Sent {
    /// Finds them. All blocks of one `Sent` have the same senders, so what is known of a kind of destinations stays.
    pub(crate) fn find(&mut self, ground: &Ground<'_>, sources: &Sources<'_>, bits: &Bits, parts: &[Part]) {
        let all: Vec<DestinationKind> = parts.iter().map(|part| sources.target(part)).collect();
        if !all.iter().all(|kind| self.kinds.binary_search(kind).is_ok()) {
            let mut kinds = all.clone();
            kinds.sort_unstable();
            kinds.dedup();
            if kinds.len() + self.kinds.len() > BATCH {
                self.kinds.clear();
            }
            self.kinds.append(&mut kinds);
            self.kinds.sort_unstable();
            self.kinds.dedup();
            self.find_kinds(ground, sources, bits);
        }
        self.slots.clear();
        self.slots.extend(all.iter().map(|kind| self.kinds.partition_point(|other| other < kind)));
    }

    fn find_kinds(&mut self, ground: &Ground<'_>, sources: &Sources<'_>, bits: &Bits) {
        self.switches = ground.len();
        self.lanes.clear();
        self.lanes.resize(self.kinds.len() * self.switches, 0);
        for group in &sources.groups {
            for (lanes, kind) in self.lanes.chunks_exact_mut(self.switches).zip(&self.kinds) {
                for level in ones(sources.levels(group, kind)) {
                    lanes[group.switch as usize] |= bits[level];
                }
            }
        }
    }

    /// By switch: the lanes by which its end ports send to the destination at this place.
    pub(crate) fn lanes(&self, place: usize) -> &[u16] {
        let slot = self.slots[place];
        &self.lanes[slot * self.switches..(slot + 1) * self.switches]
    }
}
