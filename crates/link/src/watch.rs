//! Liveness that sending does not prolong.
//!
//! QUIC's own idle timer begins anew with the first packet that is sent after something was heard (RFC 9000,
//! section 10.1), so a subnet manager that probes a dead neighbour would keep its link alive for up to twice the
//! link timeout. This watch goes by what was heard alone.

use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use crate::alarm::Alarm;
use crate::links::Inner;

/// How many looks there are in one link timeout.
const LOOKS: u32 = 8;
/// How many looks in a row may be too late to judge by. A watcher that is late for ever must see a death all the same.
const FORGIVEN_MAX: u32 = 2;

/// What was heard on one connection, as of the last look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    datagrams: u64,
    at: Instant,
}

impl Heard {
    /// Of a connection that is new.
    pub(crate) fn now() -> Self {
        Self { datagrams: 0, at: Instant::now() }
    }

    /// Takes note of the datagrams received so far and tells whether nothing has come for `limit`. A watcher that
    /// is itself `late` cannot tell, since what has come meanwhile waits to be read; it begins anew.
    fn is_silent(&mut self, datagrams: u64, now: Instant, late: bool, limit: Duration) -> bool {
        if late || self.datagrams != datagrams {
            *self = Self { datagrams, at: now };
        }
        now.duration_since(self.at) >= limit
    }
}

/// How many looks in a row were late.
#[derive(Debug, Default)]
struct Lateness(u32);

impl Lateness {
    /// Whether the next look is to begin anew.
    fn forgives(&mut self, late: bool) -> bool {
        self.0 = if late { self.0.saturating_add(1) } else { 0 };
        (1..=FORGIVEN_MAX).contains(&self.0)
    }
}

/// Takes down links on which nothing is heard, until the agent's links are gone.
pub(crate) async fn watch(inner: Weak<Inner>, alarm: Alarm, timeout: Duration) {
    let tick = timeout / LOOKS;
    // The last word may have come right after a look, and the next look may come right before the timeout's end.
    let limit = tick * (LOOKS - 2);
    let mut before = Instant::now();
    let mut lateness = Lateness::default();
    loop {
        alarm.set(tick);
        if alarm.ring().await.is_err() {
            return;
        }
        let Some(inner) = inner.upgrade() else { return };
        let now = Instant::now();
        look(&inner, now, lateness.forgives(now.duration_since(before) > tick * 2), limit);
        before = now;
    }
}

fn look(inner: &Rc<Inner>, now: Instant, late: bool, limit: Duration) {
    for slot in &inner.slots {
        let silent = slot.live().as_ref().is_some_and(|live| {
            let mut heard = live.heard.get();
            let silent = heard.is_silent(live.datagrams_received(), now, late, limit);
            live.heard.set(heard);
            silent
        });
        if silent {
            slot.end_for_silence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_from_the_last_word_and_forgiven_to_a_late_watcher() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let limit = Duration::from_millis(1500);
        let mut heard = Heard { datagrams: 0, at: start };
        assert!(!heard.is_silent(3, at(250), false, limit));
        assert!(!heard.is_silent(3, at(1500), false, limit));
        assert!(heard.is_silent(3, at(1750), false, limit));
        assert!(!heard.is_silent(3, at(4000), true, limit), "the watcher slept, perhaps the peer did not");
        assert!(!heard.is_silent(4, at(6000), false, limit), "a word");
        assert!(heard.is_silent(4, at(7500), false, limit));
    }

    #[test]
    fn a_watcher_that_is_always_late_sees_a_death_all_the_same() {
        let start = Instant::now();
        let limit = Duration::from_millis(1500);
        let mut heard = Heard { datagrams: 0, at: start };
        let mut lateness = Lateness::default();
        let seen = (1..20u64).find(|look| {
            let now = start + Duration::from_millis(look * 600);
            heard.is_silent(3, now, lateness.forgives(true), limit)
        });
        assert_eq!(seen, Some(5), "two looks are forgiven, and the silence begins at the second");
        assert!(!lateness.forgives(false));
        assert!(lateness.forgives(true), "one look in time, and it may be late again");
    }
}
