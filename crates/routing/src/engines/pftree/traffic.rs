//! Partitions by the switches and links that their traffic passes.

use crate::bits::ones;
use crate::partitions::Isolation;
use crate::tree::reach::Link;

/// By link, a bit for every partition whose traffic it carries.
#[derive(Clone, Debug)]
pub(super) struct Users {
    words: usize,
    bits: Vec<u64>,
}

impl Users {
    pub(super) fn new(links: usize, tenants: usize) -> Self {
        let words = tenants.div_ceil(64);
        Self { words, bits: vec![0; links * words] }
    }

    /// The bits of a link.
    pub(super) fn of(&self, link: Link) -> &[u64] {
        &self.bits[link as usize * self.words..][..self.words]
    }

    /// Adds a partition to a link; false where it is there already.
    pub(super) fn add(&mut self, link: Link, tenant: u32) -> bool {
        let word = &mut self.bits[link as usize * self.words + tenant as usize / 64];
        let before = *word;
        *word |= 1 << (tenant % 64);
        *word != before
    }

    /// Whether a link carries any of `tenants` but `tenant`.
    pub(super) fn any_but(&self, link: Link, tenants: std::ops::Range<u32>, tenant: Option<u32>) -> bool {
        !tenants.is_empty()
            && members(self.of(link)).any(|user| tenants.contains(&user) && Some(user) != tenant)
    }

    /// Whether a link carries a partition.
    pub(super) fn has(&self, link: Link, tenant: u32) -> bool {
        self.of(link)[tenant as usize / 64] >> (tenant % 64) & 1 == 1
    }
}

/// The partitions whose bits are set.
pub(super) fn members(bits: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(bits).flat_map(|(word, bits)| ones(*bits).map(move |bit| word * 64 + bit as u32))
}

/// By switch, the partitions that it is marked with, in order, and by how many of their nodes routed down through it.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    counts: Vec<Vec<(u32, u32)>>,
    /// By switch and isolation: how many partitions.
    strict: Vec<[u32; 3]>,
}

impl Marks {
    pub(super) fn new(switches: usize) -> Self {
        Self { counts: vec![Vec::new(); switches], strict: vec![[0; 3]; switches] }
    }

    /// Marks a switch; `nodes` more are routed down through it.
    pub(super) fn add(&mut self, switch: u32, tenant: u32, isolation: Isolation, nodes: u32) {
        let counts = &mut self.counts[switch as usize];
        match counts.binary_search_by_key(&tenant, |(tenant, _)| *tenant) {
            Ok(place) => counts[place].1 += nodes,
            Err(place) => {
                counts.insert(place, (tenant, nodes));
                self.strict[switch as usize][isolation as usize] += 1;
            }
        }
    }

    /// How many nodes of a partition a switch routes down; `None` where it is not marked.
    pub(super) fn of(&self, switch: u32, tenant: u32) -> Option<u32> {
        let counts = &self.counts[switch as usize];
        counts.binary_search_by_key(&tenant, |(tenant, _)| *tenant).ok().map(|place| counts[place].1)
    }

    /// Whether a node of one of these partitions is routed down through a switch.
    pub(super) fn routes_down(&self, switch: u32, tenants: std::ops::Range<u32>) -> bool {
        let counts = &self.counts[switch as usize];
        let first = counts.partition_point(|(tenant, _)| *tenant < tenants.start);
        counts[first..].iter().take_while(|(tenant, _)| *tenant < tenants.end).any(|(_, nodes)| *nodes > 0)
    }

    /// Whether a switch is marked with any partition.
    pub(super) fn any(&self, switch: u32) -> bool {
        self.strict[switch as usize] != [0; 3]
    }

    /// Whether a switch is marked with another partition of one of the `levels` strictest isolations.
    pub(super) fn foreign(&self, switch: u32, levels: usize, own: Option<(u32, Isolation)>) -> bool {
        let all: u32 = self.strict[switch as usize][..levels].iter().sum();
        let own = own.filter(|(tenant, isolation)| {
            (*isolation as usize) < levels && self.of(switch, *tenant).is_some()
        });
        all > u32::from(own.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_links_are_told_apart() {
        let mut users = Users::new(3, 130);
        for tenant in [0, 63, 64, 129] {
            assert!(users.add(1, tenant) && !users.add(1, tenant));
        }
        assert_eq!(members(users.of(1)).collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!(members(users.of(2)).count(), 0);
        assert!(users.has(1, 129) && !users.has(1, 128) && !users.has(0, 0));
        assert!(users.any_but(1, 0..1, Some(63)) && !users.any_but(1, 63..64, Some(63)));
    }

    #[test]
    fn foreign_marks_are_those_of_others_that_are_strict_enough() {
        let mut marks = Marks::new(2);
        marks.add(0, 5, Isolation::Vlane, 0);
        marks.add(0, 5, Isolation::Vlane, 2);
        assert_eq!((marks.of(0, 5), marks.of(1, 5), marks.any(1)), (Some(2), None, false));
        assert!(!marks.foreign(0, 3, Some((5, Isolation::Vlane))));
        assert!(!marks.foreign(0, 1, None), "nobody wants links of its own here");
        assert!(marks.foreign(0, 2, Some((6, Isolation::Def))));
        marks.add(0, 6, Isolation::Def, 1);
        assert!(marks.foreign(0, 3, Some((5, Isolation::Vlane))));
    }
}
