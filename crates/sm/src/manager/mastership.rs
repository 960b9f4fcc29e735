//! Consequences of the election for the sweeps: who may write, when to begin, when to stop.

use weft_machine::{Machine, Time};
use weft_topology::Fabric;
use weft_wire::{AddressedMad, Guid, Mad, Method, SmInfo, status};

use super::SubnetManager;
use super::patience::interval;
use crate::election::{
    Action, Control, Election, Found, Handed, Outcome, Peer, Signal, State, answer_to, next,
};
use crate::sweep::Discover;
use crate::{
    ElectionCounts, Event, Instructed, Instruction, ManagerStatus, Options, Output, Reason, WindowState,
};

/// How soon a sweep shows where a command has led another manager.
const LOOK_AT_COMMANDED: Time = Time::from_secs(1);

impl SubnetManager {
    /// Counts what this manager has sent, for others to see that it works (IBA 14.2.5.13).
    fn act_count(&self) -> u32 {
        (self.requests.stats().sent as u32).wrapping_add(self.election.acts)
    }

    /// How many SMPs may be outstanding now, and the reason.
    pub fn window(&self) -> WindowState {
        self.requests.window()
    }

    /// SMPs that are under way: sent, and neither answered nor given up.
    pub fn in_flight(&self) -> u32 {
        self.requests.in_flight()
    }

    /// Whether it is MASTER (IBA 14.4.1).
    pub fn is_in_charge(&self) -> bool {
        self.election.state.is_in_charge()
    }

    /// What the election has taken.
    pub fn election_counts(&self) -> ElectionCounts {
        self.election.counts
    }

    /// The options, with the partitions as they are now.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The cabling as the last sweep left it; `None` while a sweep works on it.
    pub fn fabric(&self) -> Option<&Fabric> {
        self.known.subnet.as_ref().map(|subnet| &subnet.fabric)
    }

    /// How this manager is among others, and who they are.
    pub fn managers(&self) -> Vec<ManagerStatus> {
        let Some(own) = self.own_port.at else { return Vec::new() };
        let state = self.election.state.shown();
        let (guid, priority) = (own.guid, self.options.election.priority & 0xf);
        let lid = self.own_port.lid;
        let own = ManagerStatus { guid, lid, priority, state: state.into(), is_self: true, is_trusted: true };
        let others = self.election.peers.iter().map(|peer| ManagerStatus {
            guid: peer.guid,
            lid: peer.lid,
            priority: peer.priority,
            state: peer.state.into(),
            is_self: false,
            is_trusted: peer.is_trusted(&self.options),
        });
        std::iter::once(own).chain(others).collect()
    }

    /// What a discovery says of other managers. True: this one configures the subnet now.
    pub(super) fn contend(&mut self, now: Time, discover: &mut Discover) -> bool {
        let peers = std::mem::take(&mut discover.managers);
        let before = self.election.peers.clone();
        let meets_others = !self.election.state.is_in_charge() && !peers.is_empty();
        self.note_changes(&before, &peers);
        let (found, target) = self.election.judge(now, peers, &self.options);
        self.election.target = target;
        let configures = self.signal(now, Signal::Found(found)) == Some(Action::Configure);
        if configures && discover.has_left_changes {
            // It has left the changes of switches to whoever was in charge: now they are its own to take note of.
            self.agenda.heavy(now, Reason::Managers);
            return false;
        }
        if configures && meets_others {
            // Another one that was discovering, too, may have cleared changes of switches that had been read before. Of switches
            // that are configured it leaves them: what those hold then is all there is to know.
            self.agenda.owe(Reason::Managers);
        }
        if configures && (found == Found::HigherDiscovering || self.election.is_unsettled()) {
            self.election.look_again = true;
        }
        configures
    }

    /// Says which managers have come or changed.
    fn note_changes(&mut self, before: &[Peer], after: &[Peer]) {
        let said = |peer: &Peer| (peer.guid, peer.priority, peer.state, peer.sm_key);
        for peer in after.iter().filter(|peer| before.iter().all(|known| said(known) != said(peer))) {
            let is_trusted = peer.is_trusted(&self.options);
            let (guid, priority, state) = (peer.guid, peer.priority, peer.state);
            self.say(Event::OtherSm { guid: guid.into(), priority, state: state.into(), is_trusted });
        }
    }

    /// Something has happened to the state. Does what is to be done, and reports it.
    pub(super) fn signal(&mut self, now: Time, signal: Signal) -> Option<Action> {
        let before = self.election.state;
        let (state, action) = next(before, signal)?;
        self.election.state = state;
        match action {
            Action::Nothing | Action::FallSilent => {}
            Action::Configure => self.election.stop(),
            Action::Sweep => {
                self.election.stop();
                self.agenda.heavy(now, Reason::Managers);
            }
            Action::TakeOver => {
                self.election.stop();
                self.take_over(now);
            }
            Action::Poll => {
                self.election.begin_polls(now);
                if state == State::Awaiting {
                    // It may not know of this one.
                    let polls = u64::from(self.options.election.polling_retries) + 1;
                    let long = Time::from_millis(self.options.election.polling_ms.saturating_mul(polls));
                    self.agenda.heavy(now + long, Reason::Managers);
                }
            }
            Action::HandOver => {
                let request = self.election.hand_over(now, &self.options, self.act_count());
                self.send_all(request);
            }
            Action::Resign => {
                self.resign(now);
                self.election.begin_polls(now);
            }
        }
        if matches!(state, State::Standby | State::NotActive) {
            self.succession.yield_lids();
            self.known.is_up = false;
            self.election.look_again = false;
            self.agenda.clear();
        }
        if state == State::NotActive {
            self.election.stop();
        }
        if state.shown() != before.shown() {
            let master = self.election.target.map_or(Guid(0), |peer| peer.guid);
            let master = if state.is_in_charge() { self.own_port.guid() } else { master };
            self.say(Event::SmState { state: state.shown().into(), master: master.into() });
            self.election.counts.takeovers += u64::from(state.is_in_charge() && self.succession.adopts);
        }
        Some(action)
    }

    /// Time has passed. A manager whose process was stopped for longer than others wait for it may not be alone in charge any more: what it
    /// knows of devices is old, and what it wrote by that could undo the other's writes. So it begins again.
    pub(super) fn wake(&mut self, now: Time) {
        let last = self.now;
        let polls = u64::from(self.options.election.polling_retries) + 1;
        let long = Time::from_millis(self.options.election.polling_ms.saturating_mul(polls));
        let may_have_slept = self.election.has_met && now > last + long && self.election.state.is_in_charge();
        let has_slept =
            may_have_slept && self.next_timer().is_some_and(|timer| now > timer.at.max(last) + long);
        self.now = now;
        if has_slept {
            self.give_up(now);
            self.requests.unconfirmed.note_everything(now);
            self.agenda.heavy(now, Reason::Managers);
        }
    }

    /// Somebody else was in charge until now, and may have written anything.
    fn take_over(&mut self, now: Time) {
        self.succession.yield_lids();
        self.tenants.forget();
        // What it wrote last may still be on its way, and no one here knows of its subscriptions.
        self.requests.unconfirmed.note_everything(now);
        self.succession.reregistered.clear();
        self.succession.relevelled.clear();
        self.agenda.heavy(now, Reason::Managers);
    }

    /// Somebody else is in charge now, and may write anything.
    fn resign(&mut self, now: Time) {
        self.give_up(now);
        self.known.withdraw_routing();
        self.traps.clear();
        self.succession.reregistered.clear();
        self.succession.relevelled.clear();
        (self.learning, self.unreleased) = Default::default();
        self.sa.resign(now);
    }

    pub(super) fn send_all(&mut self, mads: impl IntoIterator<Item = AddressedMad>) {
        for mad in mads {
            self.election.acts = self.election.acts.wrapping_add(1);
            self.outputs.push_back(Output::Send(mad));
        }
    }

    /// Asks what is due, and sees to what no one answered.
    pub(super) fn elect(&mut self, now: Time) {
        let (request, outcome) = self.election.expire_instruction(now, &self.options);
        self.send_all(request);
        self.note_instructed(now, outcome);
        while self.election.next_timer().is_some_and(|timer| timer.at <= now) {
            let (request, signal) = self.election.expire(now, &self.options, self.act_count());
            self.send_all(request);
            if let Some(signal) = signal {
                self.signal(now, signal);
            }
        }
    }

    /// An answer to a question of the election.
    pub(super) fn elected(&mut self, now: Time, answer: &Mad) {
        let outcome = self.election.instructed(answer);
        if outcome.is_some() {
            return self.note_instructed(now, outcome);
        }
        let before = self.election.peers.clone();
        let signal = self.election.answered(now, answer, &self.options);
        let after = self.election.peers.clone();
        self.note_changes(&before, &after);
        match signal {
            Some(signal) => {
                if let (Signal::Handed(Handed::Refused), Some(peer)) = (signal, self.election.target) {
                    self.say(Event::HandoverRefused { guid: peer.guid.into() });
                }
                self.signal(now, signal);
            }
            // The answer to an ACKNOWLEDGE, or one that came late.
            None if answer.method() != Method::GetResp => self.tally.ignored += 1,
            None => {}
        }
    }

    /// The operator wants another manager instructed.
    pub(super) fn instruct(&mut self, now: Time, guid: Guid, instruction: Instruction) {
        let act_count = self.act_count();
        match self.election.instruct(now, guid, instruction, &self.options, act_count) {
            Ok(request) => self.send_all([request]),
            Err(outcome) => self.note_instructed(now, Some((guid, instruction, outcome))),
        }
    }

    fn note_instructed(&mut self, now: Time, outcome: Option<Outcome>) {
        let Some((guid, instruction, outcome)) = outcome else { return };
        self.say(Event::Instructed { guid: guid.into(), instruction, outcome });
        if outcome == Instructed::Accepted {
            // Where that has led, a sweep will show.
            self.agenda.heavy(now + LOOK_AT_COMMANDED, Reason::Managers);
        }
    }

    /// Another manager asks who this is.
    pub(super) fn introduce(&mut self, now: Time, asked: &AddressedMad) {
        if self.own_port.at.is_none() {
            return;
        }
        self.election.counts.answered += 1;
        let shown = SmInfo::decode(asked.mad.smp_attribute());
        let key = Election::key_for(&asked.mad, &shown, &self.options);
        let info = self.election.info(&self.options, self.act_count(), key);
        self.send_all([answer_to(asked, &info, status::OK)]);
        let waits = self.election.heeds(now, &shown, &self.options);
        // One that came meanwhile may have cleared a change of a switch before it knew who is in charge.
        let is_new = self.election.meets(shown.guid);
        if !(waits || is_new) || self.election.state != State::Master {
            return;
        }
        if self.task.is_writing() && self.election.breaks_off(&shown, &self.options) {
            self.give_up(now);
            self.agenda.heavy(now, Reason::Managers);
        } else if self.task.will_verify() {
            self.election.look_again = true;
        } else {
            self.agenda.heavy(now, Reason::Managers);
        }
    }

    /// Another manager commands: Set(SMInfo).
    pub(super) fn commanded(&mut self, now: Time, asked: &AddressedMad) {
        if self.own_port.at.is_none() {
            return;
        }
        self.election.counts.answered += 1;
        let shown = SmInfo::decode(asked.mad.smp_attribute());
        let control = Control::from_modifier(asked.mad.attribute_modifier());
        let control = control.filter(|control| control.may_come_from(shown.sm_state));
        let trusted =
            control.is_some_and(|control| self.election.trusts(control, &asked.mad, &shown, &self.options));
        if control.is_some() && !trusted {
            self.election.counts.key_mismatches += 1;
            self.say(Event::SmKeyMismatch { guid: shown.guid.into() });
        }
        let meant = |control: Control| {
            // Only who was asked to take over can accept.
            let asked = self.election.target.is_some_and(|peer| peer.guid == shown.guid);
            control != Control::Acknowledge || self.election.state != State::Yielding || asked
        };
        let control = control.filter(|control| trusted && meant(*control));
        let before = self.election.state;
        let legal = control.filter(|control| next(before, Signal::Control(*control)).is_some());
        let code = if legal.is_some() { status::OK } else { status::BAD_VALUE };
        let key = Election::key_for(&asked.mad, &shown, &self.options);
        let info = self.election.info(&self.options, self.act_count(), key);
        self.send_all([answer_to(asked, &info, code)]);
        let Some(control) = legal else { return };
        if control == Control::Handover {
            self.election.counts.handovers_received += 1;
            let acknowledgement = self.election.acknowledge(shown.guid, &self.options, self.act_count());
            self.send_all(acknowledgement);
        }
        if control == Control::Standby {
            self.election.follow(shown.guid);
        }
        self.signal(now, Signal::Control(control));
    }

    /// Another heavy sweep soon, where a manager was found that was still looking around.
    pub(super) fn look_again_at_managers(&mut self, now: Time) {
        self.election.has_broken_off = false;
        if let Some(delay) = self.election.look_delay(interval(&self.options)) {
            self.agenda.heavy(now + delay, Reason::Managers);
        }
    }

    /// Whether an SMInfo answer is the election's.
    pub(super) fn is_for_election(answer: &Mad) -> bool {
        answer.is_smp() && Election::is_for_election(answer)
    }
}
