//! What is going to happen, in order of time, and at the same time in the order in which it was decided.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use weft_machine::Time;

/// A queue of things to happen. Bounded by what the machines have in flight.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Time,
    sequence: u64,
    what: T,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    pub(crate) fn push(&mut self, at: Time, what: T) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, what }));
    }

    /// The next thing that happens no later than `limit`.
    pub(crate) fn pop_until(&mut self, limit: Time) -> Option<(Time, T)> {
        if self.heap.peek()?.0.at > limit {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_by_order_of_decision() {
        let mut queue = Queue::new();
        for (at, what) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (9, 'e')] {
            queue.push(Time::from_nanos(at), what);
        }
        let until = |queue: &mut Queue<char>, limit| -> String {
            std::iter::from_fn(|| queue.pop_until(Time::from_nanos(limit))).map(|(_, what)| what).collect()
        };
        assert_eq!(until(&mut queue, 5), "bdac");
        assert_eq!(until(&mut queue, 8), "");
        assert_eq!(until(&mut queue, 9), "e");
    }
}
