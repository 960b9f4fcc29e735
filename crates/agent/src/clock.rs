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

/// When each device wants to be woken, the earliest first.
///
/// The heap may hold moments that a device has since revised; `current` tells which hold.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    current: Vec<Option<Time>>,
    heap: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Deadlines {
    pub(crate) fn new(devices: usize) -> Self {
        Self { current: vec![None; devices], heap: BinaryHeap::new() }
    }

    /// Notes what a device's `poll_timeout` says.
    #[inline]
    pub(crate) fn set(&mut self, device: usize, deadline: Option<Time>) {
        if self.current[device] == deadline {
            return;
        }
        self.current[device] = deadline;
        if let Some(deadline) = deadline {
            self.heap.push(Reverse((deadline, device)));
            if self.heap.len() > 64 + 4 * self.current.len() {
                self.rebuild();
            }
        }
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&mut self) -> Option<Time> {
        while let Some(Reverse((deadline, device))) = self.heap.peek().copied() {
            if self.current[device] == Some(deadline) {
                return Some(deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// A device whose deadline has come; its deadline is forgotten.
    pub(crate) fn due(&mut self, now: Time) -> Option<usize> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((_, device)) = self.heap.pop()?;
        self.current[device] = None;
        Some(device)
    }

    fn rebuild(&mut self) {
        let devices = self.current.iter().enumerate();
        self.heap = devices.filter_map(|(device, at)| at.map(|at| Reverse((at, device)))).collect();
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
        assert_eq!(deadlines.due(Time::from_nanos(25)), Some(1));
        assert_eq!(deadlines.due(Time::from_nanos(25)), Some(2));
        assert_eq!(deadlines.due(Time::from_nanos(25)), None);
        assert_eq!(deadlines.earliest(), Some(Time::from_nanos(30)));
    }

    #[test]
    fn a_revised_deadline_replaces_the_one_before() {
        let mut deadlines = Deadlines::new(1);
        deadlines.set(0, Some(Time::from_nanos(10)));
        deadlines.set(0, Some(Time::from_nanos(50)));
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
