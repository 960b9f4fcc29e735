//! Queue pairs that are held while the service levels of their path become others (SQD, IBA 10.3.1.5).
//!
//! ```text
//!        HOLD                       LEVELS, or the time is over            the path record, or no answer
//!   RTS ───────▶ SQD, nothing goes ─────────────────────────────▶ asked ─────────────────────────────────▶ RTS, all again on the new level
//! ```
//!
//! A machine that moves gets the levels of its new place. Where packets on the old ones could close a circle with the new rows, the subnet
//! manager has its peers hold their queue pairs before it writes a row, and waits until their packets are gone. The machine itself is
//! suspended meanwhile. Its port is asked to register again at the new place (ClientReregister), and it asks for its paths before it sends.
//!
//! Datagrams for one destination of several are thrown away and counted. Acknowledgements go on: they answer packets of the machine, which
//! sends none.

use weft_machine::Time;
use weft_wire::{Guid, RepathDetails};

use super::paths::{Address, Hold, Path};
use super::sender::{LaneChange, Phase, Rules, Sender, Target};
use super::{Stack, lanes};
use crate::traffic::PathSource;

/// For how long queue pairs are held at most where the notice does not say, in seconds.
const HOLD_DEFAULT_S: u64 = 60;

impl Stack {
    /// Ways to a port are about to have other service levels.
    pub(super) fn hold(&mut self, now: Time, details: &RepathDetails) {
        self.suspension.counts.holds_heard += 1;
        if details.guid == self.facts.guid {
            return;
        }
        let seconds = if details.hold_s == 0 { HOLD_DEFAULT_S } else { details.hold_s.into() };
        let hold = Hold { lid: details.dlid, until: now + Time::from_secs(seconds), is_over: false };
        self.hold_port(details.guid, hold);
    }

    fn hold_port(&mut self, guid: Guid, hold: Hold) {
        if !self.paths.hold(guid, hold) {
            return;
        }
        let paths: Vec<u32> = self.paths_to(guid);
        let mut has_peer = false;
        for place in self.flows.all() {
            let Some(sender) = self.flows.sender(place) else { continue };
            let stops = match &mut sender.target {
                Target::One(path) => paths.contains(path),
                Target::Peer => sender.address.dlid == hold.lid,
                Target::Mix(mix) => {
                    paths.iter().for_each(|path| mix.stop(*path));
                    false
                }
            };
            if stops && sender.phase == Phase::Active {
                has_peer |= matches!(sender.target, Target::Peer);
                sender.phase = Phase::Held;
                self.suspension.counts.senders_held += 1;
                self.dequeue(place);
            }
        }
        if has_peer {
            // Its answers need a level when they go on.
            self.asks_due |= self.paths.want(guid, PathSource::PathRecord).is_some();
        }
    }

    fn paths_to(&self, guid: Guid) -> Vec<u32> {
        let leads = |place: &u32| self.paths.get(*place).is_some_and(|path| path.to == guid);
        self.paths.places().filter(leads).collect()
    }

    /// Ways to a port have other service levels, and so do all of its own if it is this one.
    pub(super) fn levels_changed(&mut self, now: Time, guid: Guid) {
        let of = Some(guid).filter(|guid| *guid != self.facts.guid);
        self.suspension.counts.levels_heard += 1;
        self.suspension.counts.paths_renewed += self.paths.renew_capacity(of);
        self.asks_due = true;
        self.paths.end_hold(guid);
        self.go_on_where_known(now);
    }

    /// This port has moved, and its levels are others: nothing leaves it before they are known.
    pub(super) fn renew_own_levels(&mut self, now: Time) {
        for (guid, lid) in self.paths.ports_asked_for() {
            // One that is gone or was not found is asked for as well.
            let _ = self.paths.want(guid, PathSource::PathRecord);
            self.hold_port(guid, Hold { lid, until: now, is_over: true });
        }
        self.suspension.counts.paths_renewed += self.paths.renew_capacity(None);
        for place in self.flows.all() {
            // An acknowledgement goes on the level that its packet came on; what is not acknowledged is repeated.
            if let Some(receiver) = self.flows.receiver(place) {
                receiver.forget_acknowledgement();
            }
            self.forget_acknowledgements(place);
        }
        self.asks_due = true;
    }

    /// Holds that have lasted long enough end with the next answer, or without one.
    pub(super) fn end_holds(&mut self, now: Time) {
        if self.paths.holds_end().is_none_or(|until| until > now) {
            return;
        }
        for guid in self.paths.held_too_long(now) {
            self.suspension.counts.holds_expired += 1;
            self.suspension.counts.paths_renewed += self.paths.renew_capacity(Some(guid));
            self.paths.end_hold(guid);
            self.asks_due = true;
        }
        self.go_on_where_known(now);
    }

    /// Queue pairs go on whose hold is over and whose path is known, or will not be.
    pub(super) fn go_on_where_known(&mut self, now: Time) {
        let rules = self.rules;
        for (guid, hold) in self.paths.take_ended() {
            let paths = self.paths_to(guid);
            let known = |path: &u32| self.paths.get(*path).and_then(Path::address);
            let addresses: Vec<(u32, Option<Address>)> =
                paths.iter().map(|path| (*path, known(path))).collect();
            let of_lid = addresses.iter().filter_map(|(_, address)| *address).find(|to| to.dlid == hold.lid);
            for place in self.flows.all() {
                let Some(sender) = self.flows.sender(place) else { continue };
                let to = match &mut sender.target {
                    Target::One(path) => addresses.iter().find(|(known, _)| known == path),
                    Target::Peer if sender.address.dlid == hold.lid => {
                        sender.go_on(now, of_lid, &rules);
                        None
                    }
                    Target::Peer => None,
                    Target::Mix(mix) => {
                        paths.iter().for_each(|path| mix.go_on(*path));
                        None
                    }
                };
                if let Some((path, to)) = to {
                    let capacity = self.paths.get(*path).map(Path::capacity).unwrap_or_default();
                    sender.go_on(now, *to, &rules);
                    sender.capacity = capacity;
                }
                lanes::arm_expiry(sender, place, &mut self.timers);
                self.wake(now, place);
            }
            // Flows that waited for this path begin.
            paths.into_iter().for_each(|path| self.path_changed(now, path));
        }
    }
}

impl Sender {
    /// It was held, and goes on: nothing of it is under way, so that it takes another level at once and sends again what was not
    /// acknowledged.
    fn go_on(&mut self, now: Time, to: Option<Address>, rules: &Rules) {
        if self.phase != Phase::Held {
            return;
        }
        self.phase = Phase::Active;
        match to.filter(|to| *to != self.address) {
            Some(to) => {
                let boundary = self.message_end();
                self.lane_change = LaneChange::Drain { to, at: now, boundary };
                self.force_lane_change(now);
            }
            None => self.lane_change = LaneChange::No,
        }
        self.repeat(now, rules);
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::Lid;

    use super::*;

    #[test]
    fn a_hold_ends_once_its_path_is_known() {
        let mut paths = super::super::paths::Paths::default();
        let (guid, at) = (Guid(7), Time::from_secs);
        let place = paths.want(guid, PathSource::PathRecord).expect("there is room");
        assert!(paths.hold(guid, Hold { lid: Lid(3), until: at(9), is_over: false }));
        assert!(paths.is_held(guid) && paths.held_too_long(at(8)).is_empty());
        assert_eq!((paths.holds_end(), paths.held_too_long(at(9))), (Some(at(9)), vec![guid]));
        assert!(paths.take_ended().is_empty() && paths.end_hold(guid));
        assert!(paths.take_ended().is_empty(), "its path is wanted");
        paths.set(place, Address::default(), Default::default());
        assert_eq!(paths.take_ended().len(), 1);
        assert!(!paths.is_held(guid) && !paths.end_hold(guid));
    }
}
