//! Bringing the packets of many agents into one order.
//!
//! Each agent tells its packets in the order of its own clock and gathers them for a few milliseconds, so those of two
//! agents come in any order. A packet is therefore held until it is [`HOLD`] old, by when all that happened before it
//! has come, and then let go, the oldest first. What comes later still, because an agent was slow to write, is
//! let go at once, behind packets that it should have been before, and counted. No more than a bound is held: beyond
//! it the oldest goes early.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use weft_control::agent::Captured;

/// How old a packet is when it is let go.
const HOLD: Duration = Duration::from_millis(100);

/// Packets held at once.
const HELD_MAX: usize = 65_536;

/// Packets that wait for older ones.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    hold_ns: u64,
    /// Time and number of each packet.
    order: BinaryHeap<Reverse<(u64, u64)>>,
    packets: BTreeMap<u64, Captured>,
    next: u64,
    last_ns: u64,
    late: u64,
}

impl Merge {
    /// Packets of `sources` agents: those of one are in order already.
    pub(crate) fn new(sources: usize) -> Self {
        let hold = if sources > 1 { HOLD } else { Duration::ZERO };
        Self { hold_ns: u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX), ..Self::default() }
    }

    /// Takes a packet.
    pub(crate) fn push(&mut self, packet: Captured) {
        self.order.push(Reverse((packet.time_ns, self.next)));
        self.packets.insert(self.next, packet);
        self.next += 1;
    }

    /// The oldest packet, once it is old enough.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Captured> {
        let Reverse((time_ns, _)) = *self.order.peek()?;
        // A clock that was put back must not hold anything up for as long as it was.
        let old = now_ns.abs_diff(time_ns) >= self.hold_ns;
        (old || self.order.len() > HELD_MAX).then(|| self.pop_any()).flatten()
    }

    /// The oldest packet, however old.
    pub(crate) fn pop_any(&mut self) -> Option<Captured> {
        let Reverse((time_ns, number)) = self.order.pop()?;
        self.late += u64::from(time_ns < self.last_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.packets.remove(&number)
    }

    /// How long the oldest packet still has to wait; `None` without any.
    pub(crate) fn wait(&self, now_ns: u64) -> Option<Duration> {
        let Reverse((time_ns, _)) = *self.order.peek()?;
        Some(Duration::from_nanos(self.hold_ns.saturating_sub(now_ns.abs_diff(time_ns))))
    }

    /// Packets that were let go behind younger ones.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use weft_control::agent::PortEnd;
    use weft_control::{HexBytes, HexGuid};
    use weft_wire::{Guid, PortNum};

    use super::*;

    const HOLD_NS: u64 = HOLD.as_nanos() as u64;

    fn packet(time_ns: u64) -> Captured {
        let end = PortEnd { node: HexGuid(Guid(1)), port: PortNum(1) };
        Captured { end, sent: true, damaged: false, time_ns, lost: 0, packet: HexBytes::default() }
    }

    fn times(merge: &mut Merge, now_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| merge.pop(now_ns)).map(|packet| packet.time_ns).collect()
    }

    #[test]
    fn packets_of_several_agents_leave_in_order_of_time() {
        let mut merge = Merge::new(2);
        [5, 9, 2, 7].into_iter().for_each(|time| merge.push(packet(time)));
        assert!(times(&mut merge, 9).is_empty());
        assert_eq!(merge.wait(9), Some(Duration::from_nanos(HOLD_NS - 7)));
        assert_eq!(times(&mut merge, HOLD_NS + 5), [2, 5]);
        merge.push(packet(6));
        assert_eq!(times(&mut merge, HOLD_NS + 100), [6, 7, 9]);
        assert_eq!((merge.late(), merge.wait(0)), (0, None));
    }

    #[test]
    fn late_packets_leave_the_merge_at_once_and_are_counted() {
        let mut merge = Merge::new(2);
        merge.push(packet(50));
        assert_eq!(times(&mut merge, HOLD_NS + 50), [50]);
        merge.push(packet(49));
        assert_eq!(times(&mut merge, HOLD_NS + 50), [49]);
        assert_eq!(merge.late(), 1);
    }

    #[test]
    fn one_agent_has_nothing_to_wait_for() {
        let mut merge = Merge::new(1);
        [5, 9].into_iter().for_each(|time| merge.push(packet(time)));
        assert_eq!(times(&mut merge, 9), [5, 9]);
    }

    #[test]
    fn no_more_is_held_than_the_bound() {
        let mut merge = Merge::new(2);
        (0..HELD_MAX as u64 + 3).for_each(|time| merge.push(packet(time)));
        assert_eq!(times(&mut merge, 0), [0, 1, 2]);
        assert_eq!(merge.packets.len(), HELD_MAX);
    }
}
