use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

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

/// The reference: one heap.
#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(Time, u64)>>,
    sequence: u64,
}

impl Heap {
    fn push(&mut self, at: Time) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence)));
    }

    fn pop_until(&mut self, limit: Time) -> Option<(Time, u64)> {
        self.heap.peek().filter(|Reverse((at, _))| *at <= limit)?;
        self.heap.pop().map(|Reverse(next)| next)
    }
}

fn seed() -> u64 {
    match std::env::var("WEFT_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("WEFT_SEED is to be a number, not `{text}`")),
        Err(_) => 4711,
    }
}

/// How far away what is decided lies: now, a few nanoseconds, one of a few fixed spans as cables and packets have
/// them, or up to hours.
fn delay(random: &mut Pcg64, usual: &[u64]) -> u64 {
    match random.random_range(0..10u32) {
        0 => 0,
        1 => random.random_range(0..16),
        2..8 => usual[random.random_range(0..usual.len() as u64) as usize],
        8 => random.random_range(0..10_000_000),
        _ => 1 << random.random_range(0..44u32),
    }
}

/// Things happen in phases of different rates, so that the buckets' span changes; now and then nothing happens by
/// the limit, and something earlier than the next thing is decided afterwards.
#[test]
fn the_same_order_as_a_heap() {
    let first = seed();
    for seed in first..first + 20 {
        let mut random = Pcg64::seed_from_u64(seed);
        let (mut queue, mut heap) = (Queue::new(), Heap::default());
        let (mut now, mut spans) = (0, Vec::new());
        for phase in 0..4u32 {
            let scale = random.random_range(0..24u32);
            let usual: Vec<u64> = (0..4).map(|_| random.random_range(0..2u64 << scale)).collect();
            for step in 0..20_000 {
                let push = random.random_range(0..20_000u32) > step;
                for _ in 0..u32::from(push) * random.random_range(1..3u32) {
                    let at = Time::from_nanos(now + delay(&mut random, &usual));
                    heap.push(at);
                    queue.push(at, heap.sequence);
                }
                for _ in 0..u32::from(push) * random.random_range(0..3u32) {
                    let at = Time::from_nanos(now + usual[0]);
                    heap.push(at);
                    queue.push_in_turn(at, heap.sequence);
                }
                let limit = Time::from_nanos(now + delay(&mut random, &usual));
                let (found, wanted) = (queue.pop_until(limit), heap.pop_until(limit));
                assert_eq!(found, wanted, "WEFT_SEED={seed}, phase {phase}, step {step}");
                now = found.map_or(now, |(at, _)| at.as_nanos());
            }
            spans.push(queue.shift);
        }
        let end = Time::from_nanos(u64::MAX);
        while let Some(wanted) = heap.pop_until(end) {
            assert_eq!(queue.pop_until(end), Some(wanted), "WEFT_SEED={seed}, the rest");
        }
        assert_eq!(queue.pop_until(end), None, "WEFT_SEED={seed}");
        assert!(spans.iter().any(|&span| span != 12), "WEFT_SEED={seed}: the span never changed");
    }
}
