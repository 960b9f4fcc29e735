//! Repath notices of the manager's own: which paths another routing has changed, and which ports carry more or less than before.
//!
//! | [`Signalling`] | notified | when |
//! |---|---|---|
//! | wildcard | all subscribers, that all paths are to be asked for again | after every routing |
//! | repath | source and destination of a changed pair, its level; all, another LID of a port | for each |
//! | hybrid | all subscribers, that all paths are to be asked for again | if a pair or a LID has changed |
//!
//! A pair is changed if its service level is another one (paper 004, algorithms 1 to 3, lines 997–1070; `OLD_VL` is the view before).
//! Whoever subscribed before the manager lost its port may have missed a notice: there all methods say that all is to be asked for.

use weft_wire::{Guid, Lid, RepathDetails, RepathKind, ServiceLevel, trap};

use super::ends::End;
use super::inform::own_notice;
use super::view::View;
use super::{Administrator, repath};
use crate::options::Signalling;
use crate::{Event, RepathUse};

/// The most changed pairs that wait to be reported one by one: those of 2048 hosts among themselves. With more, all is to be asked for again.
const PAIRS_MAX: usize = 1 << 22;
/// Pairs are reported while fewer Reports than this wait: whatever else is reported does not stand behind all of them.
const REPORTS_AHEAD: usize = 64;

/// The most virtual functions that are remembered after they have gone. One that is forgotten is as one that boots.
const DEPARTED_MAX: usize = 1 << 16;

/// Two views of the subnet, one routing apart.
struct Compared<'a> {
    before: &'a View,
    after: &'a View,
    /// Hosts that both have, as they were and as they are.
    both: Vec<(&'a End, &'a End)>,
}

impl<'a> Compared<'a> {
    fn new(before: &'a View, after: &'a View) -> Self {
        let both = after.hosts().filter_map(|end| Some((before.by_guid(end.guid)?, end))).collect();
        Self { before, after, both }
    }

    /// Hosts that have another LID, virtual functions left out where they are signalled as such.
    fn moved(&self, signals_moves: bool) -> impl Iterator<Item = &(&'a End, &'a End)> {
        let is_other = move |end: &End| !signals_moves || !self.after.is_guest(end);
        self.both.iter().filter(move |(before, after)| before.lid != after.lid && is_other(after))
    }

    /// Pairs of hosts with another service level, as LIDs of now. Those that follow each other have different sources, so that no host
    /// hears of all of its own at once.
    fn pairs(&self) -> impl Iterator<Item = (Lid, Lid)> {
        let count = if self.before.levels() == self.after.levels() { 0 } else { self.both.len() };
        let pairs = (1..count).flat_map(move |step| (0..count).map(move |at| (at, (at + step) % count)));
        pairs.filter_map(|(from, to)| {
            let ((old_from, from), (old_to, to)) = (self.both[from], self.both[to]);
            let changed = level(self.before, old_from.lid, old_to.lid) != level(self.after, from.lid, to.lid);
            changed.then_some((from.lid, to.lid))
        })
    }
}

/// Where one lane does, records say 0 unless something else is asked for.
fn level(view: &View, from: Lid, to: Lid) -> ServiceLevel {
    view.level(from, to).unwrap_or(ServiceLevel(0))
}

impl Administrator {
    /// Tells subscribers of paths that have changed. `is_routed`: the sweep has routed, whatever came of it.
    pub(super) fn signal(&mut self, before: &View, after: &View, is_routed: bool) {
        let method = self.options.sa.signalling;
        let has_levels = |view: &View| view.levels().is_some();
        if before.ends.is_empty() {
            // Nothing is known of before. Where all pairs are alike nothing can have changed but LIDs, which ports say themselves.
            let may_differ = self.had_levels || has_levels(after);
            if method == Signalling::Wildcard || method != Signalling::Off && may_differ {
                self.tell_repath(RepathDetails::default(), None, after);
            }
            return;
        }
        let compared = Compared::new(before, after);
        let signals_moves = self.options.sa.signal_moves;
        match method {
            Signalling::Off => {}
            Signalling::Wildcard => {
                if is_routed {
                    self.tell_repath(RepathDetails::default(), None, after);
                }
            }
            Signalling::Hybrid => {
                if compared.moved(signals_moves).next().is_some() || compared.pairs().next().is_some() {
                    self.tell_repath(RepathDetails::default(), None, after);
                }
            }
            Signalling::Repath => {
                for (old, new) in compared.moved(signals_moves) {
                    let (kind, guid) = (RepathKind::NEW_LID, new.guid);
                    let (slid, dlid) = (old.lid, new.lid);
                    let details = RepathDetails { kind, guid, slid, dlid, ..RepathDetails::default() };
                    self.tell_repath(details, None, after);
                }
                self.line_up_pairs(&compared);
            }
        }
    }

    /// Tells subscribers of virtual functions that are back with another LID (paper 004, algorithm 1, lines 2603–2620): not of one that boots
    /// for the first time, or that has the LID that it had. The notice is of the new record; line 2606 prints the old one.
    pub(super) fn signal_moves(&mut self, before: &View, after: &View) {
        if !self.options.sa.signal_moves {
            return;
        }
        for end in before.hosts().filter(|end| before.is_guest(end) && after.by_guid(end.guid).is_none()) {
            if self.departed.len() >= DEPARTED_MAX {
                self.departed.pop_first();
            }
            self.departed.insert(end.guid, end.lid);
        }
        for new in after.hosts().filter(|end| after.is_guest(end)) {
            let departed = self.departed.remove(&new.guid);
            let old = before.by_guid(new.guid).map(|end| end.lid).or(departed);
            if let Some(slid) = old.filter(|lid| *lid != new.lid && lid.is_unicast()) {
                let (kind, guid, dlid) = (RepathKind::NEW_LID, new.guid, new.lid);
                let details = RepathDetails { kind, guid, slid, dlid, ..RepathDetails::default() };
                self.tell_repath(details, None, after);
            }
        }
    }

    /// Notes which pairs are to be reported.
    fn line_up_pairs(&mut self, compared: &Compared<'_>) {
        let (mut hosts, mut count) = (std::collections::BTreeSet::new(), 0_usize);
        for (from, to) in compared.pairs() {
            if self.pairs.len() >= PAIRS_MAX {
                self.pairs.clear();
                return self.tell_repath(RepathDetails::default(), None, compared.after);
            }
            hosts.extend([from, to]);
            self.pairs.push_back((from, to));
            count += 1;
        }
        if count > 0 {
            let (number, from, kind) = (trap::REPATH, self.myself.lid, RepathUse::Path);
            let (service_level, slid, dlid, target) = Default::default();
            let told = hosts.len() as u32;
            self.events.push(Event::Repath { number, from, kind, service_level, slid, dlid, target, told });
        }
    }

    /// Tells both ends of the next changed pair, if not too many Reports wait. Whether there was one.
    pub(super) fn tell_next_pair(&mut self) -> bool {
        if self.pairs.is_empty() || self.subscriptions.queued() >= REPORTS_AHEAD {
            return false;
        }
        let (Some(view), Some((slid, dlid))) = (&self.view, self.pairs.pop_front()) else { return false };
        // The level is as it is now: another sweep may have ended meanwhile.
        let service_level = level(view, slid, dlid);
        let details =
            RepathDetails { kind: RepathKind::PATH, service_level, slid, dlid, ..Default::default() };
        let notice = own_notice(self.myself.lid, &repath::repath(details));
        for end in [slid, dlid].into_iter().filter_map(|lid| view.by_lid(lid)) {
            self.subscriptions.report(&notice, Some(end.guid), None, view);
        }
        true
    }

    /// Tells subscribers that ways from and to a port carry more or less than their path records say.
    pub(super) fn tell_rate(&mut self, guid: Guid, view: &View) {
        let Some(dlid) = view.by_guid(guid).map(|end| end.lid) else { return };
        let details = RepathDetails { kind: RepathKind::RATE, guid, dlid, ..RepathDetails::default() };
        self.tell_repath(details, None, view);
    }

    /// Reports a repath of the manager's own.
    fn tell_repath(&mut self, details: RepathDetails, only: Option<Guid>, view: &View) {
        let notice = own_notice(self.myself.lid, &repath::repath(details));
        let told = self.subscriptions.report(&notice, only, None, view).ports.len() as u32;
        let RepathDetails { kind, service_level, slid, dlid, .. } = details;
        let (from, target) = (self.myself.lid, only.and_then(|guid| view.by_guid(guid)));
        let target = target.map_or(Lid(0), |end| end.lid);
        let number = trap::REPATH;
        self.events.push(Event::Repath {
            number,
            from,
            kind: kind.into(),
            service_level,
            slid,
            dlid,
            target,
            told,
        });
    }
}
