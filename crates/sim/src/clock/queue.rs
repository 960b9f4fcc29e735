//! The queue of events, in order of time, and at the same time in the order in which they were decided.
//!
//! A calendar queue (R. Brown, "Calendar queues", CACM 31(10), 1988): a wheel of buckets, each a short span of time.
//! Events beyond the wheel's turn wait in a heap. The bucket in hand is sorted; what is still decided for it goes
//! into a second heap, so that thousands of things at one moment cost no more than a heap does. The buckets' span
//! follows the rate at which things happen, so taking and putting are O(1) on average. What takes the same time each, as
//! cables do, is in order already: it stands in a line of its own.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use weft_machine::Time;

/// Buckets of the wheel; one word says which words of [`Queue::occupied`] are not zero.
const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;

/// No entry.
const NONE: u32 = u32::MAX;

/// The queue reconsiders the buckets' span after this number of events.
const LOOK_EVERY: u32 = 8192;

/// A bucket is to hold 2 to this power things.
const BUCKET_BITS: u32 = 2;

/// A bucket's longest span: 2 to this power nanoseconds.
const SHIFT_MAX: u32 = 40;

/// A queue of things to happen. Bounded by what the machines have in flight.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    sequence: u64,
    /// The bucket in hand: what lies in it or before it is in `current` and `late`.
    bucket: u64,
    /// Sorted, the next one last.
    current: Vec<Entry<T>>,
    /// Decided since the bucket was taken in hand.
    late: BinaryHeap<Reverse<Entry<T>>>,
    /// The first entry of each bucket.
    heads: Vec<u32>,
    occupied: [u64; WORDS],
    summary: u64,
    /// The buckets' entries, linked; also the unused ones.
    nodes: Vec<Node<T>>,
    free: u32,
    /// Beyond the wheel.
    far: BinaryHeap<Reverse<Entry<T>>>,
    /// What came in the order in which it happens, beside all others.
    in_turn: VecDeque<Entry<T>>,
    /// A bucket spans 2 to this power nanoseconds.
    shift: u32,
    taken: u32,
    looked_at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    at: Time,
    sequence: u64,
    what: T,
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    entry: Entry<T>,
    next: u32,
}

impl<T: Copy> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            sequence: 0,
            bucket: 0,
            current: Vec::new(),
            late: BinaryHeap::new(),
            heads: vec![NONE; BUCKETS],
            occupied: [0; WORDS],
            summary: 0,
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            in_turn: VecDeque::new(),
            shift: 12,
            taken: 0,
            looked_at: Time::ZERO,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Time, what: T) {
        self.sequence += 1;
        self.put(Entry { at, sequence: self.sequence, what });
    }

    /// As [`push`](Self::push), for what takes the same time each and so comes in the order in which it was decided: it
    /// stands in line, and needs no sorting.
    #[inline]
    pub(crate) fn push_in_turn(&mut self, at: Time, what: T) {
        if self.in_turn.back().is_some_and(|last| at < last.at) {
            return self.push(at, what);
        }
        self.sequence += 1;
        self.in_turn.push_back(Entry { at, sequence: self.sequence, what });
    }

    /// The next thing that happens no later than `limit`.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit: Time) -> Option<(Time, T)> {
        if self.current.is_empty() && self.late.is_empty() {
            let limit = self.in_turn.front().map_or(limit, |first| limit.min(first.at));
            self.next_bucket(limit);
        }
        let sorted = self.current.last();
        let late = self.late.peek().map(|Reverse(entry)| entry);
        let from_late = late.is_some_and(|late| sorted.is_none_or(|sorted| late < sorted));
        let next = if from_late { late } else { sorted };
        if let Some(first) = self.in_turn.front()
            && next.is_none_or(|next| first < next)
        {
            let first = (first.at <= limit).then_some((first.at, first.what))?;
            self.in_turn.pop_front();
            return Some(first);
        }
        if next?.at > limit {
            return None;
        }
        let entry = if from_late { self.late.pop().map(|Reverse(entry)| entry) } else { self.current.pop() }?;
        self.taken += 1;
        if self.taken == LOOK_EVERY {
            self.adapt(entry.at);
        }
        Some((entry.at, entry.what))
    }

    #[inline]
    fn put(&mut self, entry: Entry<T>) {
        let bucket = entry.at.as_nanos() >> self.shift;
        if bucket <= self.bucket {
            self.late.push(Reverse(entry));
        } else if bucket - self.bucket < BUCKETS as u64 {
            self.put_in_wheel(bucket, entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    #[inline]
    fn put_in_wheel(&mut self, bucket: u64, entry: Entry<T>) {
        let slot = bucket as usize % BUCKETS;
        let node = Node { entry, next: self.heads[slot] };
        let at = self.free;
        if let Some(free) = self.nodes.get_mut(at as usize) {
            self.free = free.next;
            *free = node;
            self.heads[slot] = at;
        } else {
            self.heads[slot] = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    /// Takes the next bucket in hand that has something in it, unless it begins after `limit`.
    fn next_bucket(&mut self, limit: Time) {
        let far = |queue: &Self| queue.far.peek().map(|Reverse(entry)| entry.at.as_nanos() >> queue.shift);
        // Events beyond the wheel are later than those in it.
        let Some(bucket) = self.next_in_wheel().or_else(|| far(self)) else { return };
        if bucket > limit.as_nanos() >> self.shift {
            return;
        }
        self.bucket = bucket;
        self.empty_slot(bucket as usize % BUCKETS);
        while far(self).is_some_and(|far| far - bucket < BUCKETS as u64) {
            if let Some(Reverse(entry)) = self.far.pop() {
                match entry.at.as_nanos() >> self.shift {
                    at if at == bucket => self.current.push(entry),
                    at => self.put_in_wheel(at, entry),
                }
            }
        }
        if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The first bucket of the wheel, after the one in hand, that has something in it.
    fn next_in_wheel(&self) -> Option<u64> {
        let first = (self.bucket + 1) as usize % BUCKETS;
        let (word, bit) = (first / 64, first % 64);
        let here = self.occupied[word] & (u64::MAX << bit);
        let slot = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // Words after this one, then those from the beginning; this one's lower bits come last.
            let after = self.summary & u64::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
            let word = if after != 0 { after } else { self.summary };
            if word == 0 {
                return None;
            }
            let word = word.trailing_zeros() as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        let ahead = (slot + BUCKETS - first) % BUCKETS;
        Some(self.bucket + 1 + ahead as u64)
    }

    /// Moves a slot's entries into `current`.
    fn empty_slot(&mut self, slot: usize) {
        let mut at = std::mem::replace(&mut self.heads[slot], NONE);
        while let Some(node) = self.nodes.get_mut(at as usize) {
            self.current.push(node.entry);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }

    /// Gives the buckets another span when things happen much more often, or much less, than it was made for.
    fn adapt(&mut self, now: Time) {
        let gap = now.saturating_sub(self.looked_at).as_nanos() / u64::from(LOOK_EVERY);
        (self.taken, self.looked_at) = (0, now);
        let shift = (u64::BITS - gap.leading_zeros() + BUCKET_BITS).min(SHIFT_MAX);
        if shift.abs_diff(self.shift) < 2 {
            return;
        }
        for slot in 0..BUCKETS {
            if self.heads[slot] != NONE {
                self.empty_slot(slot);
            }
        }
        let mut entries = std::mem::take(&mut self.current);
        entries.extend(self.late.drain().map(|Reverse(entry)| entry));
        entries.extend(self.far.drain().map(|Reverse(entry)| entry));
        self.shift = shift;
        self.bucket = now.as_nanos() >> shift;
        entries.into_iter().for_each(|entry| self.put(entry));
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
mod tests;
