//! Wake-up times of a node's machines.
//!
//! A node of one device has a few timers and looks through them; one of thousands keeps a heap. The heap may hold moments
//! that a machine has since revised; the list of all moments tells which hold.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_machine::Time;

use crate::{Client, DeviceId, PortId};

/// Up to this number of timers looking through them costs less than a heap.
const FEW: usize = 4;

const NEVER: Time = Time::from_nanos(u64::MAX);

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No one's; the place is given to the next.
    Free,
    Device(DeviceId),
    /// The host behind a port.
    Host(PortId),
    /// A program's MAD layer.
    Layer(Client),
    /// What is on its way over long cables.
    Held,
    /// Links that flap.
    Flap,
}

/// A timer's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId(u32);

weft_wire::defaults! {
    /// All timers of a node.
    #[derive(Debug)]
    pub(crate) struct Timers {
        /// By place, as long as there are few.
        few: [Time; FEW] = [NEVER; FEW],
        /// By place, once there are many.
        many: Option<Box<Many>> = None,
        owners: Vec<Owner> = Vec::new(),
        free: Vec<TimerId> = Vec::new(),
    }
}

/// Many timers.
#[derive(Debug, Default)]
struct Many {
    /// By place.
    moments: Vec<Time>,
    heap: BinaryHeap<Reverse<(Time, TimerId)>>,
}

impl Timers {
    /// A timer that is not set.
    pub(crate) fn add(&mut self, owner: Owner) -> TimerId {
        if let Some(timer) = self.free.pop() {
            self.owners[timer.0 as usize] = owner;
            return timer;
        }
        self.owners.push(owner);
        let place = self.owners.len() - 1;
        if place >= FEW {
            let few = self.few;
            let many = self.many.get_or_insert_with(|| Box::new(Many::of(&few)));
            many.moments.push(NEVER);
        }
        TimerId(place as u32)
    }

    /// Gives a timer back.
    pub(crate) fn remove(&mut self, timer: TimerId) {
        self.set(timer, NEVER);
        self.owners[timer.0 as usize] = Owner::Free;
        self.free.push(timer);
    }

    /// Sets a timer, or stops it; gives the moment that it was set to.
    #[inline]
    fn set(&mut self, timer: TimerId, moment: Time) -> Time {
        match &mut self.many {
            None => std::mem::replace(&mut self.few[timer.0 as usize % FEW], moment),
            Some(many) => many.set(timer, moment),
        }
    }

    /// Sets a timer, or stops it; gives the moment that it was set to, if that has come by now and is another one.
    #[inline]
    pub(crate) fn revise(&mut self, now: Time, timer: TimerId, moment: Option<Time>) -> Option<Time> {
        let moment = moment.unwrap_or(NEVER);
        let before = self.set(timer, moment);
        (before <= now && before != moment).then_some(before)
    }

    /// The earliest moment.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<Time> {
        let earliest = match &self.many {
            None => self.few.iter().copied().fold(NEVER, Time::min),
            Some(many) => many.heap.peek().map_or(NEVER, |Reverse((at, _))| *at),
        };
        (earliest != NEVER).then_some(earliest)
    }

    /// Whose the earliest moment is.
    pub(crate) fn first(&self) -> Option<(Owner, Time)> {
        let at = self.earliest()?;
        Some((self.owners[self.place_of(at)?], at))
    }

    /// The place of the earliest moment; of several the first.
    #[inline]
    fn place_of(&self, earliest: Time) -> Option<usize> {
        match &self.many {
            None => self.few.iter().position(|moment| *moment == earliest),
            Some(many) => many.heap.peek().map(|Reverse((_, timer))| timer.0 as usize),
        }
    }

    /// Whether there is more than one.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        self.owners.len() > 1
    }

    /// A timer whose moment has come, and the moment. It is stopped. Of several at one moment the first place is first.
    #[inline]
    pub(crate) fn due(&mut self, now: Time) -> Option<(Owner, Time)> {
        let at = self.earliest().filter(|at| *at <= now)?;
        let place = self.place_of(at)?;
        self.set(TimerId(place as u32), NEVER);
        Some((self.owners[place], at))
    }
}

impl Many {
    fn of(few: &[Time]) -> Self {
        let mut many = Self { moments: few.to_vec(), heap: BinaryHeap::new() };
        many.rebuild();
        many
    }

    fn set(&mut self, timer: TimerId, moment: Time) -> Time {
        let before = std::mem::replace(&mut self.moments[timer.0 as usize], moment);
        if before == moment {
            return before;
        }
        if moment != NEVER {
            self.heap.push(Reverse((moment, timer)));
        }
        if self.heap.len() > 64 + 4 * self.moments.len() {
            self.rebuild();
        }
        // The first of the heap holds, so that looking at it suffices.
        while let Some(Reverse((at, first))) = self.heap.peek()
            && self.moments[first.0 as usize] != *at
        {
            self.heap.pop();
        }
        before
    }

    fn rebuild(&mut self) {
        let set = self.moments.iter().enumerate().filter(|(_, moment)| **moment != NEVER);
        self.heap = set.map(|(place, moment)| Reverse((*moment, TimerId(place as u32)))).collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device(number: u32) -> Owner {
        Owner::Device(DeviceId(number))
    }

    #[test]
    fn the_earliest_is_due_first_and_only_once() {
        for others in [0, 10] {
            let mut timers = Timers::default();
            let ids: Vec<_> = (0..3 + others).map(|number| timers.add(device(number))).collect();
            for (id, at) in ids.iter().zip([30, 10, 20]) {
                assert_eq!(timers.set(*id, Time::from_nanos(at)), NEVER);
            }
            assert_eq!(timers.due(Time::from_nanos(9)), None);
            assert_eq!(timers.due(Time::from_nanos(25)), Some((device(1), Time::from_nanos(10))));
            assert_eq!(timers.due(Time::from_nanos(25)), Some((device(2), Time::from_nanos(20))));
            assert_eq!(timers.due(Time::from_nanos(25)), None);
            assert_eq!(timers.set(ids[0], NEVER), Time::from_nanos(30));
            assert_eq!(timers.earliest(), None);
        }
    }

    #[test]
    fn endless_revisions_do_not_grow_the_heap() {
        let mut timers = Timers::default();
        let ids: Vec<_> = (0..8).map(|number| timers.add(device(number))).collect();
        for at in 1..100_000u64 {
            timers.set(ids[at as usize % 2], Time::from_nanos(at));
        }
        let heap = timers.many.as_ref().map(|many| many.heap.len());
        assert!(heap.is_some_and(|len| len <= 64 + 4 * 8 + 1), "{heap:?}");
        assert_eq!(timers.earliest(), Some(Time::from_nanos(99_998)));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add,
        Remove(usize),
        Set(usize, Option<u64>),
        Due(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => Just(Step::Add),
            1 => any::<usize>().prop_map(Step::Remove),
            6 => (any::<usize>(), proptest::option::of(0u64..100)).prop_map(|(at, when)| Step::Set(at, when)),
            2 => (0u64..100).prop_map(Step::Due),
        ]
    }

    proptest! {
        /// Few or many, timers do what a plain list of moments does.
        #[test]
        fn as_a_list_does(steps in proptest::collection::vec(step(), 0..120)) {
            let mut timers = Timers::default();
            let mut list: Vec<(TimerId, u32, Option<u64>)> = Vec::new();
            let mut next = 0;
            for step in steps {
                match step {
                    Step::Add => {
                        let timer = timers.add(device(next));
                        prop_assert!(list.iter().all(|(known, ..)| *known != timer));
                        list.push((timer, next, None));
                        next += 1;
                    }
                    Step::Remove(at) if !list.is_empty() => {
                        let (timer, ..) = list.remove(at % list.len());
                        timers.remove(timer);
                    }
                    Step::Set(at, when) if !list.is_empty() => {
                        let index = at % list.len();
                        let (timer, _, known) = &mut list[index];
                        let now = Time::from_nanos(50);
                        let met = timers.revise(now, *timer, when.map(Time::from_nanos));
                        let changed = known.filter(|at| *at <= 50 && *known != when);
                        prop_assert_eq!(met, changed.map(Time::from_nanos));
                        *known = when;
                    }
                    Step::Due(now) => {
                        let earliest = list.iter().filter_map(|(.., at)| *at).min();
                        let due = timers.due(Time::from_nanos(now));
                        prop_assert_eq!(due.map(|(_, at)| at.as_nanos()), earliest.filter(|at| *at <= now));
                        if let Some((owner, at)) = due {
                            let found = list.iter_mut().find(|(_, number, _)| device(*number) == owner);
                            let (.., known) = found.expect("an owner that is there");
                            prop_assert_eq!(known.take(), Some(at.as_nanos()));
                        }
                    }
                    _ => {}
                }
                let earliest = list.iter().filter_map(|(.., at)| *at).min();
                prop_assert_eq!(timers.earliest(), earliest.map(Time::from_nanos));
                prop_assert_eq!(timers.first().map(|(_, at)| at), timers.earliest());
            }
        }
    }
}
