//! The agenda: tasks to do next, and when.

use std::collections::{BTreeSet, VecDeque};

use weft_machine::{Time, Timer};

use crate::{Reason, SmTimer};

/// The most sweeps that may be owed, when every trap is one sweep.
const OWED_MAX: usize = 64;

/// Sweeps and looks that are due or will be.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heavy: Option<(Time, Reason)>,
    /// Sweeps owed to traps, one each.
    owed: VecDeque<Reason>,
    /// Nodes that sent traps.
    look: Option<(Time, Reason, BTreeSet<u32>)>,
    light: Option<(Time, Reason)>,
    /// When to write other P_Keys.
    partitions: Option<Time>,
    /// When to prove what is routed.
    prove: Option<Time>,
    /// When to go on with a rebalance.
    rebalance: Option<Time>,
    /// When to weigh what hosts receive.
    learn: Option<Time>,
    /// When to look whether those who have moved are there.
    plug: Option<Time>,
    /// When to write rows of moves that are late.
    late_rows: Option<Time>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Heavy(Reason),
    Look(Reason, BTreeSet<u32>),
    Light(Reason),
    Prove,
    Plug,
    LateRows,
    Rebalance,
    Learn,
    Partitions,
}

impl Agenda {
    /// A heavy sweep; of two wishes the earlier one is granted, and does for both.
    pub(super) fn heavy(&mut self, at: Time, reason: Reason) {
        if self.heavy.is_none_or(|(before, _)| at < before) {
            self.heavy = Some((at, reason));
        }
    }

    /// A heavy sweep of its own for this reason.
    pub(super) fn owe(&mut self, reason: Reason) {
        if self.owed.len() < OWED_MAX {
            self.owed.push_back(reason);
        }
    }

    /// A look at this node, together with all others that are to be looked at.
    pub(super) fn look(&mut self, at: Time, reason: Reason, node: u32) {
        self.look.get_or_insert_with(|| (at, reason, BTreeSet::new())).2.insert(node);
    }

    /// Nodes have other places in the list from now on; `None` for those that are gone.
    pub(super) fn renumber(&mut self, place: impl Fn(u32) -> Option<u32>) {
        if let Some((_, _, nodes)) = &mut self.look {
            *nodes = nodes.iter().filter_map(|node| place(*node)).collect();
        }
    }

    /// A light sweep, instead of the one that was planned.
    pub(super) fn light(&mut self, at: Time, reason: Reason) {
        self.light = Some((at, reason));
    }

    /// A light sweep at the latest then: one that is planned for an earlier time stays, however often this is asked for.
    pub(super) fn light_by(&mut self, at: Time, reason: Reason) {
        if self.light.is_none_or(|(before, _)| at < before) {
            self.light = Some((at, reason));
        }
    }

    /// A proof of what is routed.
    pub(super) fn prove(&mut self, at: Time) {
        self.prove = Some(at);
    }

    /// The next step of a rebalance.
    pub(super) fn rebalance(&mut self, at: Time) {
        self.rebalance = Some(at);
    }

    /// A report of what hosts receive.
    pub(super) fn learn(&mut self, at: Time) {
        self.learn = Some(at);
    }

    /// A look at the places of those who have moved.
    pub(super) fn plug(&mut self, at: Time) {
        self.plug = Some(self.plug.map_or(at, |before| before.min(at)));
    }

    /// Rows of moves that are late.
    pub(super) fn late_rows(&mut self, at: Time) {
        self.late_rows = Some(self.late_rows.map_or(at, |before| before.min(at)));
    }

    /// Other P_Keys.
    pub(super) fn partitions(&mut self, at: Time) {
        self.partitions = Some(self.partitions.map_or(at, |before| before.min(at)));
    }

    /// Whether a heavy sweep is due.
    pub(super) fn is_heavy_due(&self, now: Time) -> bool {
        self.heavy.is_some_and(|(at, _)| at <= now) || !self.owed.is_empty()
    }

    /// Whether a proof is to come, or a step of a rebalance.
    pub(super) fn will_prove(&self) -> bool {
        self.prove.is_some() || self.rebalance.is_some()
    }

    /// When the cabling is to be looked at next because it may be another now, and why.
    pub(super) fn next_look(&self, now: Time) -> Option<(Time, Reason)> {
        let owed = self.owed.front().map(|reason| (now, *reason));
        let look = self.look.as_ref().map(|(at, reason, _)| (*at, *reason));
        [self.heavy, owed, look].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Takes what is due. A heavy sweep does for everything else.
    pub(super) fn due(&mut self, now: Time) -> Option<Due> {
        if let Some((at, reason)) = self.heavy
            && at <= now
        {
            self.heavy = None;
            return Some(Due::Heavy(reason));
        }
        if let Some(reason) = self.owed.pop_front() {
            return Some(Due::Heavy(reason));
        }
        if self.plug.take_if(|at| *at <= now).is_some() {
            return Some(Due::Plug);
        }
        if self.late_rows.take_if(|at| *at <= now).is_some() {
            return Some(Due::LateRows);
        }
        if self.partitions.take_if(|at| *at <= now).is_some() {
            return Some(Due::Partitions);
        }
        // What is to be repaired has to be proved before.
        if self.prove.take_if(|at| *at <= now).is_some() {
            return Some(Due::Prove);
        }
        if self.look.as_ref().is_some_and(|(at, ..)| *at <= now) {
            return self.look.take().map(|(_, reason, nodes)| Due::Look(reason, nodes));
        }
        if self.rebalance.take_if(|at| *at <= now).is_some() {
            return Some(Due::Rebalance);
        }
        if self.learn.take_if(|at| *at <= now).is_some() {
            return Some(Due::Learn);
        }
        self.light.take_if(|(at, _)| *at <= now).map(|(_, reason)| Due::Light(reason))
    }

    /// A heavy sweep begins: what it does for is taken off. What hosts receive is weighed when it has ended.
    pub(super) fn sweep_begins(&mut self) {
        *self = Self { owed: std::mem::take(&mut self.owed), learn: self.learn, ..Self::default() };
    }

    /// What comes first, in the order of [`Agenda::due`].
    pub(super) fn next(&self, now: Time) -> Option<Timer<SmTimer>> {
        let owed = self.owed.front().map(|_| now);
        Timer::earliest([
            Timer::new(self.heavy.map(|(at, _)| at), SmTimer::HeavySweep),
            Timer::new(owed, SmTimer::HeavySweep),
            Timer::new(self.plug, SmTimer::Plug),
            Timer::new(self.late_rows, SmTimer::LateRows),
            Timer::new(self.partitions, SmTimer::Partitions),
            Timer::new(self.prove, SmTimer::Proof),
            Timer::new(self.look.as_ref().map(|(at, ..)| *at), SmTimer::Look),
            Timer::new(self.rebalance, SmTimer::Rebalance),
            Timer::new(self.learn, SmTimer::Learn),
            Timer::new(self.light.map(|(at, _)| at), SmTimer::LightSweep),
        ])
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::{Lid, TrapNumber};

    const COMMAND: Reason = Reason::Command;

    #[test]
    fn a_heavy_sweep_does_for_all_that_was_planned() {
        let mut agenda = Agenda::default();
        agenda.heavy(Time::from_secs(2), Reason::Incomplete);
        agenda.heavy(Time::from_secs(1), COMMAND);
        agenda.heavy(Time::from_secs(3), Reason::OwnPort);
        agenda.light(Time::from_secs(1), Reason::Interval);
        agenda.look(Time::from_secs(1), COMMAND, 3);
        let heavy = Timer { at: Time::from_secs(1), reason: SmTimer::HeavySweep };
        assert_eq!(agenda.next(Time::ZERO), Some(heavy));
        assert_eq!(agenda.due(Time::ZERO), None);
        assert_eq!(agenda.due(Time::from_secs(1)), Some(Due::Heavy(COMMAND)));
        agenda.sweep_begins();
        assert_eq!((agenda.next(Time::ZERO), agenda.due(Time::from_secs(9))), (None, None));
    }

    #[test]
    fn the_next_timer_matches_the_next_due_task() {
        type Plan = fn(&mut Agenda, Time);
        let plans: [(Plan, SmTimer, Due); 10] = [
            (|agenda, at| agenda.heavy(at, COMMAND), SmTimer::HeavySweep, Due::Heavy(COMMAND)),
            (|agenda, _| agenda.owe(COMMAND), SmTimer::HeavySweep, Due::Heavy(COMMAND)),
            (Agenda::plug, SmTimer::Plug, Due::Plug),
            (Agenda::late_rows, SmTimer::LateRows, Due::LateRows),
            (Agenda::partitions, SmTimer::Partitions, Due::Partitions),
            (Agenda::prove, SmTimer::Proof, Due::Prove),
            (
                |agenda, at| agenda.look(at, COMMAND, 3),
                SmTimer::Look,
                Due::Look(COMMAND, BTreeSet::from([3])),
            ),
            (Agenda::rebalance, SmTimer::Rebalance, Due::Rebalance),
            (Agenda::learn, SmTimer::Learn, Due::Learn),
            (|agenda, at| agenda.light(at, COMMAND), SmTimer::LightSweep, Due::Light(COMMAND)),
        ];
        let at = Time::from_secs(1);
        // Each alone, and with all that come after it at the same moment.
        for (first, (_, reason, due)) in plans.iter().enumerate() {
            for last in first..plans.len() {
                let mut agenda = Agenda::default();
                plans[first..=last].iter().for_each(|(plan, ..)| plan(&mut agenda, at));
                assert_eq!(agenda.next(at), Some(Timer { at, reason: *reason }), "{first} to {last}");
                assert_eq!(agenda.due(at).as_ref(), Some(due), "{first} to {last}");
            }
        }
    }

    #[test]
    fn nodes_to_look_at_come_together() {
        let mut agenda = Agenda::default();
        for node in [5, 3, 5] {
            agenda.look(Time::from_secs(u64::from(node)), COMMAND, node);
        }
        agenda.light(Time::from_secs(4), Reason::Interval);
        assert_eq!(agenda.due(Time::from_secs(4)), Some(Due::Light(Reason::Interval)));
        assert_eq!(agenda.due(Time::from_secs(5)), Some(Due::Look(COMMAND, BTreeSet::from([3, 5]))));
        assert_eq!(agenda.next(Time::ZERO), None);
    }

    #[test]
    fn owed_sweeps_are_given_one_by_one_and_bounded() {
        let mut agenda = Agenda::default();
        let reason = |lid| Reason::Trap { number: TrapNumber(128), lid: Lid(lid) };
        (0..100).for_each(|lid| agenda.owe(reason(lid)));
        for lid in 0..64 {
            assert_eq!(agenda.due(Time::ZERO), Some(Due::Heavy(reason(lid))));
            agenda.sweep_begins();
        }
        assert_eq!(agenda.due(Time::ZERO), None);
    }
}
