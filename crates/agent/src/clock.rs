//! The wall clock as machines see it, and when each of them wants to be woken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use weft_machine::Time;

/// Nanoseconds since the agent began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// When each machine wants to be woken, the earliest first.
///
/// The heap may hold moments that a machine has since revised; `current` tells which hold.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    current: Vec<Option<Time>>,
    heap: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Deadlines {
    pub(crate) fn new(machines: usize) -> Self {
        Self { current: vec![None; machines], heap: BinaryHeap::new() }
    }

    /// Notes what a machine's `poll_timeout` says; gives what it said before, if that was something else.
    #[inline]
    pub(crate) fn set(&mut self, machine: usize, deadline: Option<Time>) -> Option<Time> {
        if self.current[machine] == deadline {
            return None;
        }
        let before = std::mem::replace(&mut self.current[machine], deadline);
        if let Some(deadline) = deadline {
            self.heap.push(Reverse((deadline, machine)));
            if self.heap.len() > 64 + 4 * self.current.len() {
                self.rebuild();
            }
        }
        before
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&mut self) -> Option<Time> {
        while let Some(Reverse((deadline, machine))) = self.heap.peek().copied() {
            if self.current[machine] == Some(deadline) {
                return Some(deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// A machine whose deadline has come, and the deadline, which is forgotten.
    pub(crate) fn due(&mut self, now: Time) -> Option<(usize, Time)> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((deadline, machine)) = self.heap.pop()?;
        self.current[machine] = None;
        Some((machine, deadline))
    }

    fn rebuild(&mut self) {
        let machines = self.current.iter().enumerate();
        self.heap = machines.filter_map(|(machine, at)| at.map(|at| Reverse((at, machine)))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_device_is_due_first_and_only_once() {
        let mut deadlines = Deadlines::new(3);
        deadlines.set(0, Some(Time::from_nanos(30)));
        deadlines.set(1, Some(Time::from_nanos(10)));
        deadlines.set(2, Some(Time::from_nanos(20)));
        assert_eq!(deadlines.due(Time::from_nanos(9)), None);
        assert_eq!(deadlines.due(Time::from_nanos(25)), Some((1, Time::from_nanos(10))));
        assert_eq!(deadlines.due(Time::from_nanos(25)), Some((2, Time::from_nanos(20))));
        assert_eq!(deadlines.due(Time::from_nanos(25)), None);
        assert_eq!(deadlines.earliest(), Some(Time::from_nanos(30)));
    }

    #[test]
    fn a_revised_deadline_replaces_the_one_before() {
        let mut deadlines = Deadlines::new(1);
        deadlines.set(0, Some(Time::from_nanos(10)));
        assert_eq!(deadlines.set(0, Some(Time::from_nanos(50))), Some(Time::from_nanos(10)));
        assert_eq!(deadlines.set(0, Some(Time::from_nanos(50))), None, "nothing is revised");
        assert_eq!(deadlines.due(Time::from_nanos(20)), None);
        deadlines.set(0, None);
        assert_eq!(deadlines.due(Time::from_nanos(60)), None);
        assert_eq!(deadlines.earliest(), None);
    }

    #[test]
    fn endless_revisions_do_not_grow_the_heap() {
        let mut deadlines = Deadlines::new(2);
        for at in 1..100_000 {
            deadlines.set(at % 2, Some(Time::from_nanos(at as u64)));
        }
        assert!(deadlines.heap.len() <= 64 + 4 * 2 + 1);
        assert_eq!(deadlines.earliest(), Some(Time::from_nanos(99_998)));
    }
}
