//! Notices of a move's service levels: who is to hold queue pairs before rows are written, and who is to ask for paths again after it.
//!
//! ```text
//!   HOLD ▶ all subscribers but those that are suspended ▶ ReportResp of each ▶ … rows are written … ▶ LEVELS ▶ they ask for the path
//! ```

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_wire::{Guid, Lid, RepathDetails, RepathKind};

use super::Administrator;
use super::inform::own_notice;
use super::repath::repath;
use crate::Event;
use crate::knowledge::Subnet;

/// A port that moves, and whose ways have other service levels then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Releveled {
    pub(crate) guid: Guid,
    pub(crate) lid: Lid,
}

/// The hosts that are asked to hold queue pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Ports.
    pub(crate) told: u32,
    /// Hosts with a port that is not asked, because it has not subscribed. A physical function may hand on what it hears.
    pub(crate) untold: u32,
}

impl Administrator {
    /// Tells all that have subscribed, but those who are suspended, to hold queue pairs to these for this number of seconds at most.
    /// Returns how many those are, and how many have not subscribed.
    pub(crate) fn hold_levels(
        &mut self,
        now: Time,
        ports: &[Releveled],
        hold_s: u16,
        suspended: &BTreeSet<Guid>,
    ) -> Asked {
        let all = self.subscriptions.ports();
        let awake: BTreeSet<Guid> = all.difference(suspended).copied().collect();
        let Some(view) = &self.view else { return Asked::default() };
        let (mut told, mut lost) = (BTreeSet::new(), BTreeSet::new());
        for Releveled { guid, lid } in ports.iter().copied() {
            let kind = RepathKind::HOLD;
            let details = RepathDetails { kind, guid, dlid: lid, hold_s, ..RepathDetails::default() };
            let notice = own_notice(self.myself.lid, &repath(details));
            let mut heard = BTreeSet::new();
            for port in &awake {
                let reported = self.subscriptions.report(&notice, Some(*port), None, view);
                lost.extend((reported.dropped > 0).then_some(*port));
                heard.extend(reported.ports);
            }
            self.events.push(event(self.myself.lid, details, heard.len() as u32));
            told.append(&mut heard);
        }
        let moving = ports.iter().map(|port| port.guid);
        let silent: BTreeSet<Guid> = suspended.iter().copied().chain(moving).collect();
        let others = view.hosts().map(|end| end.guid).filter(|guid| !silent.contains(guid));
        let untold = view.requesters.not_among(&told, others.filter(|guid| *guid != self.myself.guid));
        let count = Asked { told: told.len() as u32, untold: untold.len() as u32 };
        self.subscriptions.await_answers(told);
        self.subscriptions.give_up_on(lost);
        self.flush(now);
        count
    }

    /// Whether some of those have yet to confirm that.
    pub(crate) fn is_awaiting_holds(&self) -> bool {
        self.subscriptions.is_awaiting()
    }

    /// Those that have not confirmed it in time.
    pub(crate) fn take_unheld(&mut self) -> BTreeSet<Guid> {
        self.subscriptions.take_unanswered()
    }

    /// The service levels are others now from and to these.
    pub(crate) fn levels_changed(&mut self, now: Time, subnet: &Subnet, ports: &[Releveled]) {
        let Some(view) = &mut self.view else { return };
        view.relevel(subnet);
        self.tell_levels(now, ports);
    }

    /// Tells all that have subscribed to ask for the ways from and to these again.
    pub(crate) fn tell_levels(&mut self, now: Time, ports: &[Releveled]) {
        let Some(view) = &self.view else { return };
        for Releveled { guid, lid } in ports.iter().copied() {
            let kind = RepathKind::LEVELS;
            let details = RepathDetails { kind, guid, dlid: lid, ..RepathDetails::default() };
            let notice = own_notice(self.myself.lid, &repath(details));
            let told = self.subscriptions.report(&notice, None, None, view).ports.len() as u32;
            self.events.push(event(self.myself.lid, details, told));
        }
        self.flush(now);
    }
}

fn event(from: Lid, details: RepathDetails, told: u32) -> Event {
    let RepathDetails { kind, service_level, slid, dlid, target, .. } = details;
    let number = weft_wire::trap::REPATH;
    Event::Repath { number, from, kind: kind.into(), service_level, slid, dlid, target, told }
}
