//! Repath notices of the manager's own: hosts hear which paths another routing has changed, and which ports carry more or less than before.

use weft_wire::{Guid, Lid, RepathDetails, RepathKind, trap};

use super::inform::own_notice;
use super::view::View;
use super::{Administrator, repath};
use crate::Event;

impl Administrator {
    /// Tells subscribers which paths have changed. Whoever subscribed before the manager was away for a while is to ask
    /// for all of them again.
    pub(super) fn tell_changes(&mut self, before: &View, after: &View) {
        let changes = match before.ends.is_empty() {
            true => vec![(RepathDetails::default(), None)],
            false => repath::changes(before, after),
        };
        for (details, only) in changes {
            self.tell_repath(details, only, after);
        }
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
