//! In which order the hosts of a switch are routed.

use std::collections::BTreeMap;

use crate::options::PftreeOrder;
use crate::partitions::Isolation;
use crate::sorted;

/// A host of a switch that has a partition with members at other switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guest {
    /// Its place among all end ports.
    pub(super) end: usize,
    /// Its place in the operator's order.
    pub(super) named: usize,
    /// The partition by which it is routed.
    pub(super) tenant: u32,
    /// How well that is to be isolated.
    pub(super) isolation: Isolation,
    /// How much it receives.
    pub(super) weight: u64,
}

/// Orders the hosts of a switch, given by port. Those of the strictest partitions come first, then those that the operator names, and
/// the hosts of one partition swap places so that the heaviest come first.
pub(super) fn order(mut guests: Vec<Guest>, cables_up: usize, by: PftreeOrder) -> Vec<Guest> {
    sorted::by_key(&mut guests, |guest| (guest.isolation, guest.named));
    if by == PftreeOrder::Partition {
        sorted::by_key(&mut guests, |guest| guest.tenant);
    }
    sort_by_weight(&mut guests);
    match by {
        PftreeOrder::Interleaved => interleaved(guests, cables_up),
        PftreeOrder::Partition | PftreeOrder::Fabric => guests,
    }
}

/// Orders the hosts of a switch so that those of one partition come as many places apart as the switch has cables
/// upwards and so meet the same cable in every round (Zahid 2016, algorithm 2, which goes on with the next leaf where
/// the hosts are no more than the cables).
fn interleaved(guests: Vec<Guest>, cables_up: usize) -> Vec<Guest> {
    if guests.len() <= cables_up {
        return guests;
    }
    let mut places: Vec<Option<Guest>> = vec![None; guests.len()];
    let mut last_of: BTreeMap<u32, usize> = BTreeMap::new();
    let (mut at, mut free) = (0, 0);
    for guest in guests {
        if let Some(last) = last_of.get(&guest.tenant) {
            at = last + cables_up;
        }
        if places.get(at).is_none_or(Option::is_some) {
            while places[free].is_some() {
                free += 1;
            }
            at = free;
        }
        places[at] = Some(guest);
        last_of.insert(guest.tenant, at);
    }
    places.into_iter().flatten().collect()
}

/// The heaviest first, partition by partition, on the places that the partition has.
fn sort_by_weight(guests: &mut [Guest]) {
    let mut places_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, guest) in guests.iter().enumerate() {
        places_of.entry(guest.tenant).or_default().push(place);
    }
    for places in places_of.into_values() {
        let mut sorted: Vec<Guest> = places.iter().map(|place| guests[*place]).collect();
        sorted::by_key(&mut sorted, |guest| std::cmp::Reverse(guest.weight));
        for (place, guest) in places.into_iter().zip(sorted) {
            guests[place] = guest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(tenants: &[(u32, Isolation)], weights: &[u64], cables_up: usize) -> Vec<usize> {
        ordered_by(tenants, weights, cables_up, PftreeOrder::Interleaved)
    }

    fn ordered_by(
        tenants: &[(u32, Isolation)],
        weights: &[u64],
        cables_up: usize,
        by: PftreeOrder,
    ) -> Vec<usize> {
        let guests = tenants.iter().zip(weights).enumerate();
        let guests = guests.map(|(end, ((tenant, isolation), weight))| Guest {
            end,
            named: usize::MAX,
            tenant: *tenant,
            isolation: *isolation,
            weight: *weight,
        });
        order(guests.collect(), cables_up, by).into_iter().map(|guest| guest.end).collect()
    }

    const ONE: (u32, Isolation) = (1, Isolation::Def);
    const TWO: (u32, Isolation) = (2, Isolation::Def);
    const STRICT: (u32, Isolation) = (0, Isolation::Phy);

    #[test]
    fn hosts_of_one_partition_meet_the_same_cable() {
        // Figure 4: a and d, b and c with two cables up; then e and f, g and h.
        assert_eq!(ordered(&[ONE, TWO, TWO, ONE], &[1; 4], 2), [0, 1, 3, 2]);
        assert_eq!(ordered(&[TWO, TWO, ONE, ONE], &[1; 4], 2), [0, 2, 1, 3]);
        // Three hosts of one partition on two cables: the third takes what is free.
        assert_eq!(ordered(&[ONE, ONE, ONE, TWO], &[1; 4], 2), [0, 2, 1, 3]);
    }

    #[test]
    fn a_partition_comes_after_another_or_hosts_as_they_come() {
        let (hosts, weights) = ([TWO, ONE, TWO, ONE], [1, 1, 9, 1]);
        let by = |by| ordered_by(&hosts, &weights, 2, by);
        assert_eq!(by(PftreeOrder::Partition), [1, 3, 2, 0], "the heavier of the second first");
        assert_eq!(
            by(PftreeOrder::Fabric),
            [2, 1, 0, 3],
            "only the places of one partition's hosts are swapped"
        );
        // Algorithm 2 puts the second of each two places further on.
        assert_eq!(by(PftreeOrder::Interleaved), [2, 1, 0, 3]);
        assert_eq!(ordered_by(&[ONE, STRICT, TWO, ONE], &[1; 4], 2, PftreeOrder::Fabric), [1, 0, 2, 3]);
    }

    #[test]
    fn with_enough_cables_hosts_stay_in_order() {
        assert_eq!(ordered(&[ONE, TWO, TWO, ONE], &[1; 4], 4), [0, 1, 2, 3]);
        assert_eq!(ordered(&[], &[], 0), [] as [usize; 0]);
    }

    #[test]
    fn the_strictest_and_the_heaviest_come_first() {
        assert_eq!(ordered(&[ONE, STRICT, ONE], &[1; 3], 2), [1, 0, 2]);
        assert_eq!(ordered(&[ONE, TWO, ONE, TWO], &[1, 1, 100, 50], 4), [2, 3, 0, 1]);
    }
}
