//! A host's view of its port and of the subnet: from the adapter, from answers and from notices.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::{
    AddressedMad, Details, Guid, Lid, Method, MgmtClass, PathRecord, PortFacts, RepathDetails, RepathKind,
    status, trap,
};

use super::bulk::Heard;
use super::desk::Job;
use super::names::guid_in;
use super::paths::State;
use super::relocation::MovedLid;
use super::sa::{Question, SaClient, lid_in, notice_in, path_in, path_of, report_response};
use super::sender::Phase;
use super::{Notices, Output, Stack};
use crate::traffic::PathSource;

/// What was not there is asked for again after this many timeouts.
const RETRY_AFTER: u64 = 5;

impl Stack {
    /// The adapter tells of its port.
    pub(super) fn learn_port(&mut self, now: Time, facts: PortFacts) {
        let arriving = self.is_arriving();
        self.suspension.registers |= arriving && facts.reregister;
        let before = std::mem::replace(&mut self.facts, facts);
        let Some(before) = self.port_before(before) else { return };
        let facts = &self.facts;
        let begins = facts.active && !before.active;
        let moved =
            facts.lid != before.lid || facts.gid_prefix != before.gid_prefix || facts.guid != before.guid;
        let other_manager = facts.sm_lid != before.sm_lid;
        if begins || moved || other_manager {
            // Answers to requests from the old address, or to the old manager, may never come.
            let seed = now.as_nanos() ^ facts.guid.0;
            self.sa.abandon(seed);
            self.paths.abandon();
            self.forget_tables(now);
            self.subscriptions.abandon();
        }
        if moved || other_manager {
            self.paths.renew(None);
        }
        if self.facts.guid == before.guid {
            self.partitions_changed(now, &before.p_keys);
        }
        if self.facts.reregister || begins || moved || other_manager {
            self.subscriptions.renew();
            self.offer.renew();
        }
        self.asks_due = true;
        if arriving {
            // The port of another host may take smaller packets.
            let mtu = self.facts.mtu;
            if std::mem::take(&mut self.suspension.registers) {
                self.renew_own_levels(now);
            }
            for place in self.flows.all() {
                let sender = self.flows.sender(place).filter(|sender| sender.phase == Phase::Active);
                if sender.is_some_and(|sender| sender.refuse_mtu(mtu)) {
                    self.dequeue(place);
                }
            }
        }
        if begins || arriving {
            self.pump_all(now);
            for place in self.flows.all() {
                self.wake(now, place);
            }
        }
    }

    /// Gives up its subscriptions, for a host that ends: nothing else leaves it any more.
    pub fn unsubscribe(&mut self, now: Time) {
        self.injects.clear();
        self.outputs.clear();
        if SaClient::can_ask(&self.facts) && !self.is_suspended {
            let held: Vec<_> = self.subscriptions.held().collect();
            self.sa.give_up(now, &self.facts, &held);
            self.withdraw_offer();
            self.send_questions(now);
        }
    }

    /// A MAD for the host.
    pub(super) fn receive(&mut self, now: Time, mad: &AddressedMad) {
        if mad.mad.class() != MgmtClass::SubnAdm {
            return;
        }
        if mad.mad.method() == Method::Report {
            self.counts.reports += 1;
            self.outputs.push_back(Output::Send(report_response(mad)));
            if self.options.notices == Notices::Server && !self.options.is_function {
                self.outputs.push_back(Output::HandOn(*mad));
            }
            return self.heed_report(now, mad);
        }
        match self.sa.bulk.receive(now, mad) {
            Heard::Other => {
                let Some((question, status)) = self.sa.answered(now, mad) else { return };
                self.take_answer(now, question, status, mad);
            }
            Heard::Nothing => {}
            Heard::Whole(records) => self.take_job(now, Job::Table(records)),
            Heard::Refused(status) => {
                self.fail_bulk(now, &format!("SA status {status:#06x} for the paths of this port"));
            }
        }
        self.go_on_where_known(now);
        self.send_questions(now);
        self.note_end(now);
    }

    /// A Report, to this port or to the physical function of its adapter, which has answered it.
    pub(super) fn heed_report(&mut self, now: Time, report: &AddressedMad) {
        if let Some(notice) = notice_in(&report.mad) {
            self.take_job(now, Job::Notice(notice.details()));
            self.note_end(now);
        }
    }

    /// Takes the answer to the question for all paths.
    pub(super) fn take_table(&mut self, now: Time, records: &[PathRecord]) {
        let known: BTreeMap<Guid, _> =
            records.iter().filter_map(|record| Some((record.dgid.guid, path_of(record)?))).collect();
        for place in self.paths.in_bulk().collect::<Vec<u32>>() {
            let Some(path) = self.paths.get(place) else { continue };
            let is_asked = matches!(path.state, State::Asked { .. });
            match known.get(&path.to) {
                Some((address, capacity)) => self.paths.set(place, *address, *capacity),
                None if is_asked => {
                    self.fail_path(now, place, "subnet administration has no path there".to_owned());
                }
                None => continue,
            }
            self.asks_due |= self.paths.get(place).is_some_and(|path| path.state == State::Wanted);
            self.path_changed(now, place);
        }
    }

    /// The question for all paths has no answer: each is asked for again after a while.
    fn fail_bulk(&mut self, now: Time, why: &str) {
        for place in self.paths.in_bulk().collect::<Vec<u32>>() {
            if self.paths.get(place).is_some_and(|path| matches!(path.state, State::Asked { .. })) {
                self.fail_path(now, place, why.to_owned());
            }
        }
    }

    fn take_answer(&mut self, now: Time, question: Question, status: u16, mad: &AddressedMad) {
        if status & status::BUSY != 0 {
            self.retry_within(now, 1);
        }
        let (place, found) = match question {
            Question::Subscribe(at) => {
                self.subscriptions.answered(at, status == 0);
                self.asks_due = true;
                if status != 0 {
                    self.fail(now);
                }
                return;
            }
            Question::Tell(_) => {
                self.told(status == 0);
                return;
            }
            Question::Name(place) => {
                return self.take_name(now, place, guid_in(mad));
            }
            Question::Holder => return self.take_holder(now, mad),
            Question::Offer => return self.offered(now, status == 0),
            Question::Withdraw => return self.take_withdrawn(now, Some(status)),
            Question::Path(place) => (place, path_in(&mad.mad)),
            Question::Lid(place) => (place, lid_in(&mad.mad)),
        };
        match found.filter(|_| status == 0) {
            Some((address, capacity)) => self.paths.set(place, address, capacity),
            None => {
                let why = format!("SA status {status:#06x}; is the port up, and in a partition of this one?");
                self.fail_path(now, place, why);
            }
        }
        self.asks_due |= self.paths.get(place).is_some_and(|path| path.state == State::Wanted);
        self.path_changed(now, place);
        self.repeat_if_moved(now, place);
    }

    pub(super) fn fail_path(&mut self, now: Time, place: u32, problem: String) {
        if let Some(path) = self.paths.get_mut(place) {
            let again = path.state == State::Asked { again: true };
            path.state = if again { State::Wanted } else { State::Failed };
            path.problem = Some(problem);
        }
        self.fail(now);
    }

    /// Something is to be asked for again after a while.
    pub(super) fn fail(&mut self, now: Time) {
        self.counts.questions_failed += 1;
        self.retry_within(now, RETRY_AFTER);
    }

    /// Asks again for what has failed, at the latest after this number of timeouts of a question.
    fn retry_within(&mut self, now: Time, timeouts: u64) {
        let pause = Time::from_nanos(self.options.sa_timeout.as_nanos().saturating_mul(timeouts));
        self.retry_at = Some(self.retry_at.map_or(now + pause, |at| at.min(now + pause)));
    }

    /// Asks for everything that is wanted, as far as somebody can be asked.
    pub(super) fn ask(&mut self, now: Time) {
        self.asks_due = false;
        for place in self.paths.places() {
            self.ask_path(now, place);
        }
        if SaClient::can_ask(&self.facts) {
            let (notices, is_function) = (self.options.notices, self.options.is_function);
            let wants = |number| notices.wants(number, is_function);
            while let Some((at, number)) = self.subscriptions.poll_wanted(wants) {
                self.sa.ask_to_hear(&self.facts, at, number);
            }
            self.ask_to_tell_peers();
            self.ask_to_offer(now);
        }
        self.send_questions(now);
    }

    fn ask_path(&mut self, now: Time, place: u32) {
        let Some(path) = self.paths.get(place).filter(|path| path.state == State::Wanted) else { return };
        let (to, source) = (path.to, path.source);
        if let Some((address, capacity)) = self.paths.taught(to) {
            self.paths.set(place, address, capacity);
            self.path_changed(now, place);
            return;
        }
        if !SaClient::can_ask(&self.facts) {
            return;
        }
        let asked = match (self.ask_name(place), source) {
            (Some(asked), _) => asked,
            (None, PathSource::PathRecord) => self.sa.ask_path(&self.facts, place, to),
            (None, PathSource::Unasked) => self.sa.ask_lid(&self.facts, place, to),
        };
        match self.paths.get_mut(place) {
            Some(path) if asked => path.state = State::Asked { again: false },
            _ => self.fail_path(now, place, "too much is asked for at once".to_owned()),
        }
    }

    fn send_questions(&mut self, now: Time) {
        while let Some(mad) = self.sa.poll_transmit(now, &self.facts) {
            self.outputs.push_back(Output::Send(mad));
        }
    }

    /// Questions that no one answers, and those that it is time to ask again.
    pub(super) fn pass_time(&mut self, now: Time) {
        debug_assert_eq!(self.sa_is_idle, self.sa.is_idle(), "known here too");
        self.end_holds(now);
        let heeds = self.desk.due().is_some_and(|due| due <= now);
        if self.sa_is_idle && self.retry_at.is_none() && !self.asks_due && !heeds {
            return;
        }
        self.work(now);
        while let Some(question) = self.sa.poll_failed(now) {
            let why = || "subnet administration does not answer".to_owned();
            match question {
                Question::Subscribe(at) => {
                    self.subscriptions.answered(at, false);
                    self.fail(now);
                }
                Question::Tell(_) => self.told(false),
                Question::Name(place) => self.take_name(now, place, Err(why())),
                Question::Holder | Question::Offer => self.offered(now, false),
                Question::Withdraw => self.take_withdrawn(now, None),
                Question::Path(place) | Question::Lid(place) => self.fail_path(now, place, why()),
            }
        }
        if self.sa.bulk.expire(now) {
            self.fail_bulk(now, "subnet administration does not answer");
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            let paths = self.paths.retry();
            let offer = self.offer.retry();
            self.asks_due |= self.subscriptions.retry() || paths || offer;
        }
        if self.asks_due {
            self.ask(now);
        }
        self.go_on_where_known(now);
        self.send_questions(now);
        self.sa_changed();
        self.note_end(now);
    }

    /// What the manager reports.
    pub(super) fn heed(&mut self, now: Time, details: &Details) {
        match details {
            Details::Gid(trap::GID_IN_SERVICE | trap::GID_OUT_OF_SERVICE, details)
                if self.is_held_back(now, details.gid.guid) => {}
            Details::Gid(trap::GID_IN_SERVICE, details) => self.paths.renew(Some(details.gid.guid)),
            Details::Gid(trap::GID_OUT_OF_SERVICE, details) => self.paths.lose(details.gid.guid),
            Details::Repath(trap::REPATH, details)
                if self.heeds_repath && details.kind == RepathKind::NEW_LID =>
            {
                self.counts.repaths += 1;
                self.port_relocated(now, &MovedLid::of(details));
            }
            Details::Repath(trap::REPATH, details)
                if self.heeds_repath && details.kind == RepathKind::RATE =>
            {
                self.counts.repaths += 1;
                self.rate_changed(details.guid);
            }
            Details::Repath(trap::REPATH, details)
                if self.heeds_repath && details.kind == RepathKind::HOLD =>
            {
                self.counts.repaths += 1;
                self.hold(now, details);
            }
            Details::Repath(trap::REPATH, details)
                if self.heeds_repath && details.kind == RepathKind::LEVELS =>
            {
                self.counts.repaths += 1;
                self.levels_changed(now, details.guid);
            }
            Details::Repath(number, details) if self.heeds_repath => {
                let begins = *number == trap::REPATH;
                match self.repath(now, begins, details) {
                    Some(changed) => {
                        self.counts.repaths += 1;
                        for place in changed {
                            self.path_changed(now, place);
                        }
                    }
                    None => self.counts.repaths_ignored += 1,
                }
            }
            Details::Repath(..) => self.counts.repaths_ignored += 1,
            _ => {}
        }
    }

    /// Whether a LID is one of its port's.
    pub(super) fn has(&self, lid: Lid) -> bool {
        let own = u32::from(self.facts.lid.0);
        (own..own + (1 << (self.facts.lmc & 7))).contains(&u32::from(lid.0))
    }

    /// The places of the paths that a repath or unpath notice changes at once; none when it means nothing here.
    fn repath(&mut self, now: Time, begins: bool, details: &RepathDetails) -> Option<Vec<u32>> {
        let level = details.service_level;
        match details.kind {
            RepathKind::WILDCARD if !begins => Some(self.paths.forget_hot_spots()),
            RepathKind::WILDCARD => {
                if self.paths.renew_in_bulk() {
                    self.sa.bulk.want(now);
                }
                Some(Vec::new())
            }
            RepathKind::PATH if self.has(details.slid) => Some(match begins {
                true => self.paths.set_level(details.dlid, level),
                false => {
                    self.paths.renew_lid(details.dlid);
                    Vec::new()
                }
            }),
            // Answers go on the level on which packets come.
            RepathKind::PATH if self.has(details.dlid) => Some(Vec::new()),
            RepathKind::HOT_SPOT => {
                Some(self.paths.set_hot_spot(details.dlid, Some(level).filter(|_| begins)))
            }
            _ => None,
        }
    }
}
