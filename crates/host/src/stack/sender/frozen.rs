//! A sender that is suspended, moved and resumed.

use weft_machine::Time;

use super::lane_change::{LANE_CHANGES_MAX, LaneChange};
use super::{Pace, Phase, Rules, Sender, Target};
use crate::stack::clock::Rebase;
use crate::stack::numbers::{COUNT_MAX, NUMBER_MAX, ensure};
use crate::traffic::FlowId;

/// Unacknowledged packets at most: a PSN says no more (IBA 9.7.2 allows half of the numbers).
const IN_FLIGHT_MAX: u64 = 1 << 23;

impl Sender {
    /// It stands in no ring, and no timer is set for it.
    pub(in crate::stack) fn quiet(&mut self) {
        (self.queued, self.wake_at, self.expiry_at) = (0, None, None);
        if let Target::Mix(mix) = &mut self.target {
            mix.quiet();
        }
    }

    /// It goes on: what was in the adapter is sent again, and what waits is looked at.
    pub(in crate::stack) fn resume(&mut self, now: Time, rules: &Rules) {
        self.repeat(now, rules);
        if let Target::Mix(mix) = &mut self.target {
            mix.resume();
        }
    }

    /// Its moments are those of another clock from now on. The log of its changes of lane keeps the clock it was written by.
    pub(in crate::stack) fn rebase(&mut self, rebase: &Rebase) {
        for at in [&mut self.not_before, &mut self.last_fresh_at, &mut self.message_at] {
            rebase.shift(at);
        }
        if let Some(deadline) = &mut self.deadline {
            rebase.shift(deadline);
        }
        if let Some(pace) = &mut self.pace {
            rebase.shift(&mut pace.due);
        }
        if let LaneChange::Drain { at, .. } | LaneChange::Rearm { at, .. } = &mut self.lane_change {
            rebase.shift(at);
        }
        if let Target::Mix(mix) = &mut self.target {
            mix.rebase(rebase);
        }
        self.messages.rebase(rebase);
        self.throttle.rebase(rebase);
    }

    /// Sends again from the oldest unacknowledged packet at once (go-back-N, IBA 9.7.5.1), with all its retries: that an
    /// end was suspended is not the other end's fault. Whether there is anything to send again.
    pub(in crate::stack) fn repeat(&mut self, now: Time, rules: &Rules) -> bool {
        if !self.is_reliable() || self.phase != Phase::Active || !self.is_outstanding() {
            return false;
        }
        self.go_back();
        self.attempts_left = rules.retries;
        let patience = self.lane_change.since().unwrap_or(now) + rules.ack_timeout;
        self.deadline = Some(patience.max(now));
        true
    }

    /// Checks that an image's sender can be one: everything that other code relies on.
    pub(in crate::stack) fn verify(&self, flow: FlowId, paths: usize) -> Result<(), &'static str> {
        ensure(self.flow == flow, "a sender has another flow's number")?;
        ensure(self.fresh <= NUMBER_MAX, "a packet's number is too high")?;
        ensure(self.address.is_possible(), "a sender has no such service level")?;
        let in_order = self.base <= self.unacknowledged
            && self.unacknowledged <= self.next
            && self.next <= self.fresh
            && self.fresh - self.unacknowledged <= IN_FLIGHT_MAX;
        ensure(in_order, "a sender's packet numbers are out of order")?;
        ensure(self.is_reliable() || !self.is_outstanding(), "datagrams wait for acknowledgements")?;
        self.geometry.verify()?;
        let at = (self.next - self.base) % u64::from(self.geometry.packets);
        ensure(u64::from(self.at) == at, "a packet's place in its message does not follow from its number")?;
        match &self.target {
            Target::One(path) => ensure((*path as usize) < paths, "a sender's path is not in the cache")?,
            Target::Mix(mix) => {
                ensure(!self.is_reliable(), "a reliable connection has several destinations")?;
                mix.verify(paths)?;
            }
            Target::Peer => {}
        }
        ensure(self.pace.is_none_or(|pace| pace.is_sane()), "a rate is none")?;
        ensure(self.lane_changes.len() <= LANE_CHANGES_MAX, "too many changes of lane are kept")?;
        self.throttle.verify()?;
        self.latency.verify()?;
        self.messages.verify()?;
        let counts = [
            self.packets,
            self.bytes,
            self.repeated,
            self.timeouts,
            self.notifications,
            self.lane_changes_total,
        ];
        ensure(counts.iter().all(|count| *count <= COUNT_MAX), "a counter is too high")
    }
}

impl Pace {
    fn is_sane(&self) -> bool {
        (1..=COUNT_MAX).contains(&self.bytes_per_second) && self.rest < self.bytes_per_second
    }
}
