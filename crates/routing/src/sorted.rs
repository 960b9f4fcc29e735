//! Sorting by a key, with one instance of the sort for all types: it sorts numbers, and what they stand for follows.
//!
//! Sorts within loops over tables or paths go by themselves, without the detour.

use std::cmp::Ordering;

/// Sorts by a key, which is made once for each item. Items of one key stay in their order.
pub(crate) fn by_key<T, K: Ord>(items: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = items.iter().map(key).collect();
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    sort(&mut order, &|a, b| keys[a as usize].cmp(&keys[b as usize]).then(a.cmp(&b)));
    for first in 0..items.len() {
        // Each circle of places is gone round once: every place takes its item from where that lies.
        let mut at = first;
        while order[at] as usize != first {
            let from = std::mem::replace(&mut order[at], at as u32) as usize;
            items.swap(at, from);
            at = from;
        }
        order[at] = at as u32;
    }
}

/// Sorts numbers by a key. In which order those of one key are is not said, but always the same.
pub(crate) fn numbers<K: Ord>(numbers: &mut [u32], key: impl Fn(u32) -> K) {
    sort(numbers, &|a, b| key(a).cmp(&key(b)));
}

/// The place of each number in an order of all of them.
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, number) in (0..).zip(order) {
        places[*number as usize] = place;
    }
    places
}

#[inline(never)]
fn sort(numbers: &mut [u32], compare: &dyn Fn(u32, u32) -> Ordering) {
    numbers.sort_unstable_by(|a, b| compare(*a, *b));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_of_one_key_stay_in_their_order(keys in proptest::collection::vec(0_u8..6, 0..80)) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            super::by_key(&mut items, |(key, _)| *key);
            prop_assert_eq!(items, expected);
        }

        #[test]
        fn numbers_are_sorted_as_the_standard_library_does(keys in proptest::collection::vec(0_u8..6, 0..200)) {
            let mut numbers: Vec<u32> = (0..keys.len() as u32).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable_by_key(|at| keys[*at as usize]);
            super::numbers(&mut numbers, |at| keys[at as usize]);
            prop_assert_eq!(numbers, expected);
        }
    }
}
