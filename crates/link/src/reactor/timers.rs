//! All of an agent's QUIC timers on one alarm.
//!
//! A connection moves its timer at every packet, nearly always to later. So a timer that is moved to later stays
//! where it is in the heap and is looked at again when its old moment comes; only one moved to earlier is put in
//! again. When a connection falls quiet its next moment is far away: then the alarm is put off too, rather than let
//! it wake the agent for nothing. Moments far away are rounded up to a common grid, so that the keepalives of all
//! links of a switch are sent at one wake-up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use quinn::AsyncTimer;

use crate::alarm::Alarm;

/// A timer that is at least this far away is not in a hurry.
const FAR: Duration = Duration::from_millis(200);
/// The grid of timers that are not in a hurry.
const GRID_MS: u64 = 50;

/// The timers of one endpoint.
#[derive(Debug)]
pub(super) struct Timers {
    alarm: Arc<Alarm>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    epoch: Instant,
    entries: Vec<Entry>,
    /// Places in `entries` that no timer has.
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    /// When the alarm rings.
    armed: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    deadline: Instant,
    /// The moment in the heap that counts for this timer.
    queued: Option<Instant>,
    waker: Option<Waker>,
}

impl Timers {
    /// Starts the task that waits for the alarm; it ends with the timers.
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let alarm = Arc::new(Alarm::new()?);
        let timers = Arc::new(Self { alarm: alarm.clone(), state: Mutex::new(State::new(Instant::now())) });
        tokio::task::spawn_local(ring(alarm, Arc::downgrade(&timers)));
        Ok(timers)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // One thread: no one can have panicked with the lock held and left anybody to see it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the alarm if it would ring too late.
    fn arm(&self, state: &mut State, at: Instant, now: Instant) {
        if state.armed.is_none_or(|armed| at < armed) {
            state.armed = Some(at);
            self.alarm.set(at.saturating_duration_since(now));
        }
    }
}

async fn ring(alarm: Arc<Alarm>, timers: Weak<Timers>) {
    while alarm.ring().await.is_ok() {
        let Some(timers) = timers.upgrade() else { return };
        let now = Instant::now();
        let due = {
            let state = &mut *timers.state();
            state.armed = None;
            let due = state.due(now);
            if let Some(at) = state.earliest() {
                timers.arm(state, at, now);
            }
            due
        };
        due.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn new(epoch: Instant) -> Self {
        Self { epoch, entries: Vec::new(), free: Vec::new(), heap: BinaryHeap::new(), armed: None }
    }

    /// When a timer for `deadline` rings: on the grid, if it is far.
    fn rounded(&self, deadline: Instant, now: Instant) -> Instant {
        if deadline.saturating_duration_since(now) < FAR {
            return deadline;
        }
        let since_ms = deadline.saturating_duration_since(self.epoch).as_millis();
        let ticks = u64::try_from(since_ms).unwrap_or(u64::MAX) / GRID_MS + 1;
        self.epoch.checked_add(Duration::from_millis(ticks.saturating_mul(GRID_MS))).unwrap_or(deadline)
    }

    fn add(&mut self) -> usize {
        let entry = Entry { deadline: self.epoch, queued: None, waker: None };
        match self.free.pop() {
            Some(place) => {
                self.entries[place] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    /// Moves a timer; returns the moment that the alarm must not be later than.
    fn set(&mut self, place: usize, deadline: Instant, now: Instant) -> Option<Instant> {
        let deadline = self.rounded(deadline, now);
        let entry = &mut self.entries[place];
        entry.deadline = deadline;
        if entry.queued.is_some_and(|queued| queued <= deadline) {
            return None;
        }
        entry.queued = Some(deadline);
        self.heap.push(Reverse((deadline, place)));
        if self.heap.len() > 64 + 4 * self.entries.len() {
            self.rebuild();
        }
        Some(deadline)
    }

    /// Where the alarm may be put off to, now that a timer has been moved to a `deadline` much later than it rings
    /// and if no other wants it before.
    fn put_off(&mut self, deadline: Instant) -> Option<Instant> {
        let later = self.armed? + FAR;
        if deadline < later {
            return None;
        }
        self.earliest().filter(|at| *at >= later)
    }

    /// The next moment at which a timer rings. What is in the heap before it counts no more or is put where it
    /// belongs now.
    fn earliest(&mut self) -> Option<Instant> {
        while let Some(mut first) = self.heap.peek_mut() {
            let Reverse((at, place)) = *first;
            let entry = &mut self.entries[place];
            if entry.queued != Some(at) {
                PeekMut::pop(first);
            } else if entry.deadline > at {
                entry.queued = Some(entry.deadline);
                *first = Reverse((entry.deadline, place));
            } else {
                return Some(at);
            }
        }
        None
    }

    /// The tasks whose timers have rung.
    fn due(&mut self, now: Instant) -> Vec<Waker> {
        let mut due = Vec::new();
        while self.earliest().is_some_and(|at| at <= now) {
            let Some(Reverse((_, place))) = self.heap.pop() else { break };
            let entry = &mut self.entries[place];
            entry.queued = None;
            due.extend(entry.waker.take());
        }
        due
    }

    fn rebuild(&mut self) {
        let entries = self.entries.iter().enumerate();
        self.heap = entries.filter_map(|(place, entry)| Some(Reverse((entry.queued?, place)))).collect();
    }

    fn remove(&mut self, place: usize) {
        self.entries[place].queued = None;
        self.entries[place].waker = None;
        self.free.push(place);
    }
}

/// One connection's timer.
#[derive(Debug)]
pub(super) struct Timer {
    timers: Arc<Timers>,
    place: usize,
}

impl Timer {
    pub(super) fn new(timers: &Arc<Timers>, deadline: Instant) -> Self {
        let place = timers.state().add();
        let timer = Self { timers: timers.clone(), place };
        timer.move_to(deadline);
        timer
    }

    fn move_to(&self, deadline: Instant) {
        let now = Instant::now();
        let state = &mut *self.timers.state();
        match state.set(self.place, deadline, now) {
            Some(at) => self.timers.arm(state, at, now),
            None => {
                if let Some(at) = state.put_off(deadline) {
                    state.armed = None;
                    self.timers.arm(state, at, now);
                }
            }
        }
    }
}

impl AsyncTimer for Timer {
    fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.move_to(deadline);
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let entry = &mut self.timers.state().entries[self.place];
        // Rung, or about to: the alarm takes what is due out of the heap before it wakes.
        if entry.queued.is_none() {
            return Poll::Ready(());
        }
        if !entry.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            entry.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.timers.state().remove(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn state() -> (State, Instant, impl Fn(u64) -> Instant) {
        let epoch = Instant::now();
        (State::new(epoch), epoch, move |ms| epoch + Duration::from_millis(ms))
    }

    fn with_waker(state: &mut State, place: usize) -> Arc<Count> {
        let count = Arc::new(Count::default());
        state.entries[place].waker = Some(Waker::from(count.clone()));
        count
    }

    #[test]
    fn a_near_timer_rings_at_its_moment_and_once() {
        let (mut state, epoch, at) = state();
        let place = state.add();
        assert_eq!(state.set(place, at(10), epoch), Some(at(10)));
        with_waker(&mut state, place);
        assert_eq!(state.due(at(9)).len(), 0);
        assert_eq!(state.due(at(10)).len(), 1);
        assert_eq!(state.due(at(11)).len(), 0);
    }

    #[test]
    fn far_timers_meet_on_the_grid_and_are_never_early() {
        let (mut state, epoch, at) = state();
        let (one, other) = (state.add(), state.add());
        assert_eq!(state.set(one, at(501), epoch), Some(at(550)));
        assert_eq!(state.set(other, at(549), epoch), Some(at(550)));
        with_waker(&mut state, one);
        with_waker(&mut state, other);
        assert_eq!(state.due(at(549)).len(), 0);
        assert_eq!(state.due(at(550)).len(), 2);
    }

    #[test]
    fn a_timer_moved_to_later_needs_no_alarm_and_rings_later() {
        let (mut state, epoch, at) = state();
        let place = state.add();
        assert!(state.set(place, at(10), epoch).is_some());
        assert_eq!(state.set(place, at(20), epoch), None);
        with_waker(&mut state, place);
        assert_eq!(state.due(at(15)).len(), 0);
        assert_eq!(state.due(at(20)).len(), 1);
    }

    #[test]
    fn a_timer_moved_to_earlier_rings_earlier_and_not_again() {
        let (mut state, epoch, at) = state();
        let place = state.add();
        assert!(state.set(place, at(100), epoch).is_some());
        assert_eq!(state.set(place, at(10), epoch), Some(at(10)));
        with_waker(&mut state, place);
        assert_eq!(state.due(at(10)).len(), 1);
        with_waker(&mut state, place);
        assert_eq!(state.due(at(200)).len(), 0);
    }

    #[test]
    fn the_alarm_moves_back_when_no_near_timer_is_left() {
        let (mut state, epoch, at) = state();
        let (one, other) = (state.add(), state.add());
        state.armed = state.set(one, at(10), epoch);
        assert_eq!(state.set(other, at(20), epoch), Some(at(20)));
        assert_eq!(state.set(one, at(15), epoch), None);
        assert_eq!(state.put_off(at(15)), None, "hardly later");
        assert_eq!(state.set(one, at(500), epoch), None);
        assert_eq!(state.put_off(at(500)), None, "the other one still is in a hurry");
        assert_eq!(state.set(other, at(520), epoch), None);
        assert_eq!(state.put_off(at(520)), Some(at(550)));
        assert_eq!(state.earliest(), Some(at(550)));
    }

    #[test]
    fn a_place_is_used_again_without_its_former_moments() {
        let (mut state, epoch, at) = state();
        let place = state.add();
        assert!(state.set(place, at(10), epoch).is_some());
        state.remove(place);
        assert_eq!(state.add(), place);
        assert!(state.set(place, at(50), epoch).is_some());
        with_waker(&mut state, place);
        assert_eq!(state.due(at(20)).len(), 0);
        assert_eq!(state.due(at(50)).len(), 1);
    }

    #[test]
    fn endless_moving_does_not_grow_the_heap() {
        let (mut state, epoch, at) = state();
        let place = state.add();
        for step in 0..100_000u64 {
            let _ = state.set(place, at(190 - step % 190), epoch);
        }
        assert!(state.heap.len() <= 64 + 4 + 1, "{}", state.heap.len());
    }
}
