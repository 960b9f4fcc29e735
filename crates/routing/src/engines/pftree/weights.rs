//! Weights: how much traffic each host receives.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use weft_topology::PortRef;
use weft_wire::Guid;

use crate::input::Input;
use crate::sorted;
use crate::tree::End;

/// The weights that an operator may give (Zahid 2016, section 7).
pub const WEIGHTS: RangeInclusive<u32> = 1..=100;

/// The weight of each host from the data that it received, mapped linearly onto `low` to `high` and rounded to the
/// nearest, halves up: the least receiver gets `low`, the greatest `high` (Zahid 2016, equation 1, with its
/// misprint corrected: the least of the counts is subtracted, not `low`). When all received as much, all get `low`.
///
/// `received` is in any unit; all counts are in the same and over the same time.
///
/// ```
/// use std::collections::BTreeMap;
/// use weft_routing::learn_weights;
/// use weft_wire::Guid;
///
/// let received = BTreeMap::from([(Guid(1), 4_000), (Guid(2), 10_000), (Guid(3), 5_000)]);
/// let weights = learn_weights(&received, 1, 100);
/// assert_eq!(weights, BTreeMap::from([(Guid(1), 1), (Guid(2), 100), (Guid(3), 18)]));
/// ```
pub fn learn_weights(received: &BTreeMap<Guid, u64>, low: u32, high: u32) -> BTreeMap<Guid, u32> {
    let least = received.values().copied().min().unwrap_or(0);
    let spread = u128::from(received.values().copied().max().unwrap_or(0) - least);
    let range = u128::from(high.saturating_sub(low));
    let weight = |count: u64| match spread {
        0 => low,
        // At most `range`, so it fits.
        _ => low + ((2 * u128::from(count - least) * range + spread) / (2 * spread)) as u32,
    };
    received.iter().map(|(guid, count)| (*guid, weight(*count))).collect()
}

/// The host ports in the order of what they received, the most first; by GUID where that is equal.
///
/// ```
/// use std::collections::BTreeMap;
/// use weft_routing::learn_order;
/// use weft_wire::Guid;
///
/// let received = BTreeMap::from([(Guid(1), 7), (Guid(2), 9), (Guid(3), 7)]);
/// assert_eq!(learn_order(&received), [Guid(2), Guid(1), Guid(3)]);
/// ```
pub fn learn_order(received: &BTreeMap<Guid, u64>) -> Vec<Guid> {
    let mut order: Vec<(Guid, u64)> = received.iter().map(|(guid, count)| (*guid, *count)).collect();
    sorted::by_key(&mut order, |(guid, count)| (std::cmp::Reverse(*count), *guid));
    order.into_iter().map(|(guid, _)| guid).collect()
}

/// The weight of every end port. Fails with a sentence that names the GUID when one is out of range.
pub(super) fn of_ends(input: &Input<'_>, ends: &[End]) -> Result<Vec<u64>, String> {
    let given = &input.options.weights;
    if let Some((guid, weight)) = given.iter().find(|(_, weight)| !WEIGHTS.contains(weight)) {
        let (low, high) = (WEIGHTS.start(), WEIGHTS.end());
        return Err(format!("the weight of {guid} is {weight}; weights are {low} to {high}"));
    }
    let node_guid = |port: PortRef| input.fabric.node(port.node).guid;
    let weight = |end: &End| given.get(&end.guid).or_else(|| given.get(&node_guid(end.port)));
    Ok(ends.iter().map(|end| u64::from(weight(end).copied().unwrap_or(*WEIGHTS.start()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(counts: &[u64], low: u32, high: u32) -> Vec<u32> {
        let received = (1..).map(Guid).zip(counts.iter().copied()).collect();
        learn_weights(&received, low, high).into_values().collect()
    }

    #[test]
    fn the_least_and_the_greatest_are_the_ends_of_the_range() {
        assert_eq!(learned(&[50, 100, 150], 1, 100), [1, 51, 100]);
        assert_eq!(learned(&[0, u64::MAX, u64::MAX / 2], 0, u32::MAX), [0, u32::MAX, u32::MAX / 2]);
        assert_eq!(learned(&[7, 8], 5, 5), [5, 5]);
    }

    #[test]
    fn equal_counts_and_none_at_all_are_no_division_by_zero() {
        assert_eq!(learned(&[9, 9, 9], 1, 100), [1, 1, 1]);
        assert_eq!(learned(&[9], 3, 100), [3]);
        assert_eq!(learned(&[], 1, 100), [] as [u32; 0]);
    }
}
