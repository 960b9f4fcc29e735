//! Suspension: a virtual machine's stack stops, leaves as an [`Image`], and moves to another host.
//!
//! ```text
//!              suspend                    export               import
//!   running ────────────▶ suspended ───────────────▶ Image ──────────────▶ suspended, on another host
//!      ▲                      │                                                 │
//!      └────── resume ────────┴── the move is undone                            └─ resume ──▶ running
//! ```
//!
//! These are the stages of "Early Experiences with Live Migration of SR-IOV enabled InfiniBand", section 5.4, with the suspend
//! state that its section 7 proposes, so that a queue pair need not drain first. A suspended stack sends nothing and answers
//! nothing, and none of its timers expires. It drops and counts packets and MADs. Its time stands still: what a virtual
//! machine measures does not include its own downtime.
//!
//! A stack that resumes repeats from the oldest unacknowledged packet of each queue pair (go-back-N, IBA 9.7.5.1), because
//! the packets in the adapter were cut off, and sends the acknowledgements that it owed. A notice tells its peers to do the same
//! ([`relocation`](super::relocation)).
//!
//! If the port keeps its GUID, LID, subnet prefix and manager, paths and subscriptions stand, and the stack asks subnet
//! administration only what was still unanswered. If the LID changes, the stack asks for everything again, as always when a
//! port gets another LID. Peers learn the new LID from the notice or from subnet administration.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::PortFacts;

use super::clock::Rebase;
use super::image::{Identity, Image, ImageError, Place, Restored, State};
use super::relocation::HoldBacks;
use super::sa::SaClient;
use super::timers::Timers;
use super::{CommandError, Input, Output, Stack, StackCounts, StackOptions, lanes};

/// What a stack has counted of suspensions since it began. These counts stay with the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionCounts {
    /// Suspensions.
    pub suspended: u64,
    /// Resumptions.
    pub resumed: u64,
    /// Images taken over.
    pub imported: u64,
    /// Images refused.
    pub import_refused: u64,
    /// Packets in the adapter, or on the way there, when the stack was suspended.
    pub packets_cut: u64,
    /// Packets that came for the suspended stack.
    pub packets_dropped: u64,
    /// MADs that came for the suspended stack.
    pub mads_dropped: u64,
    /// Notices that a port has moved.
    pub moves_heard: u64,
    /// Peers that subnet administration has notified of a move, as it has confirmed.
    pub peers_told: u64,
    /// Peers that it would not tell, or did not say so of.
    pub peers_not_told: u64,
    /// Senders that have repeated at once because of such a notice.
    pub senders_woken: u64,
    /// Notices that ways to a port have another rate or MTU.
    pub rates_heard: u64,
    /// Notices that ways to a port are about to have other service levels.
    pub holds_heard: u64,
    /// Notices that they have.
    pub levels_heard: u64,
    /// Paths asked for again because of a notice of rates or levels, or because this port has moved where levels are others.
    pub paths_renewed: u64,
    /// Queue pairs that were held until their level was known.
    pub senders_held: u64,
    /// Ports whose queue pairs were held for as long as may be, since no notice of levels has come.
    pub holds_expired: u64,
    /// Names of machines looked up.
    pub names_asked: u64,
    /// Of these, the ones with another GUID than before.
    pub names_moved: u64,
    /// Offers of its own name that subnet administration has taken.
    pub names_offered: u64,
    /// Notices of ports that come or go, not heeded because the port has just moved.
    pub notices_held_back: u64,
}

/// What a stack remembers of its suspensions.
#[derive(Debug, Default)]
pub(super) struct Suspension {
    /// When it was suspended, by the clock of the host where that was.
    at: Time,
    /// What the adapter has said of its port meanwhile.
    told: Option<PortFacts>,
    /// The port as it was before, until that of the new place is active.
    left: Option<PortFacts>,
    /// Whether the manager has asked the port of the new place to register again.
    pub(super) registers: bool,
    epoch: u64,
    pub(super) counts: SuspensionCounts,
}

impl Stack {
    /// Suspends the stack; no effect on a suspended one. Packets in the adapter are taken for lost, even if they still leave.
    /// `now` is this host's clock.
    pub fn suspend(&mut self, now: Time) {
        if self.is_suspended {
            return;
        }
        self.work_off(now);
        self.is_suspended = true;
        (self.suspension.at, self.suspension.told) = (now, None);
        self.suspension.counts.suspended += 1;
        for packet in self.injects.drain(..) {
            self.lanes[usize::from(packet.service_level.0 & 15)].leave(1);
            self.suspension.counts.packets_cut += 1;
        }
        self.outputs.retain(|output| !matches!(output, Output::Send(_)));
        self.suspension.counts.packets_cut += self.quiet();
        self.forget_questions(now);
        self.subscriptions.forget_questions();
        self.offer.forget_question();
    }

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// The epoch that the last import has begun; 0 before.
    pub fn epoch(&self) -> u64 {
        self.suspension.epoch
    }

    /// Begins an epoch without an import: a virtual machine boots, or its move is undone. An earlier one has no effect.
    pub fn begin_epoch(&mut self, epoch: u64) {
        self.suspension.epoch = self.suspension.epoch.max(epoch);
    }

    /// What has been counted of suspensions.
    pub fn suspension_counts(&self) -> SuspensionCounts {
        self.suspension.counts
    }

    /// The image of the suspended stack. Resume either this stack or one that has imported the image, never both: epochs are
    /// for whoever decides that.
    ///
    /// # Errors
    ///
    /// [`ImageError::Running`], or [`ImageError::TooLarge`].
    pub fn export(&self) -> Result<Image, ImageError> {
        if !self.is_suspended {
            return Err(ImageError::Running);
        }
        let facts = self.suspension.left.as_ref().unwrap_or(&self.facts);
        let state = State {
            window_packets: self.options.window_packets,
            ack_timeout: self.options.ack_timeout,
            retries: self.options.retries,
            heeds_repath: self.heeds_repath,
            retry_at: self.retry_at,
            facts: PortFacts { reregister: false, ..facts.clone() },
            lanes: self.lanes.each_ref().map(lanes::Lane::kept),
            subscriptions: self.subscriptions.clone(),
            offer: self.offer.clone(),
            paths: self.paths.kept(),
            flows: self.flows.in_order().cloned().collect(),
            counts: StackCounts { subscriptions: 0, paths: 0, hot_spots_forgotten: 0, ..self.counts() },
        };
        Image::seal(self.suspension.epoch, self.suspension.at, state)
    }

    /// Replaces this stack's state by the image's, and stays suspended. A stack that runs flows refuses; a suspended one
    /// forgets its own. The count of packets in this host's adapter stays. `now` is this host's clock.
    ///
    /// # Errors
    ///
    /// Any fault of the image, or of the place for it. The stack is then unchanged.
    pub fn import(&mut self, image: Image, now: Time, place: &Place) -> Result<(), ImageError> {
        let flows = if self.is_suspended { 0 } else { self.flows.len() };
        let vacant = if flows == 0 { Ok(()) } else { Err(ImageError::Occupied(flows)) };
        let opened = vacant.and_then(|()| image.open(place, self.suspension.epoch));
        match opened {
            Ok(restored) => {
                self.suspend(now);
                self.take_over(now, restored, place);
                Ok(())
            }
            Err(error) => {
                self.suspension.counts.import_refused += 1;
                Err(error)
            }
        }
    }

    /// Nothing fails here.
    fn take_over(&mut self, now: Time, restored: Restored, place: &Place) {
        let Restored { suspended_at, flows, state } = restored;
        let (window_packets, ack_timeout, retries) = (state.window_packets, state.ack_timeout, state.retries);
        self.options = StackOptions { window_packets, ack_timeout, retries, ..self.options.clone() };
        self.rules = self.options.rules();
        // The adapter may already tell of the port that moves, or still of the one that was there before.
        let told = self.suspension.told.take().unwrap_or_else(|| self.facts.clone());
        let lid = place.lid.unwrap_or(state.facts.lid);
        let waits = PortFacts { active: false, lid, guid: place.guid, ..state.facts.clone() };
        self.suspension.told = Some(Some(told).filter(|told| told.guid == place.guid).unwrap_or(waits));
        self.suspension.left = None;
        (self.suspension.at, self.suspension.epoch) = (suspended_at, place.epoch);
        self.suspension.counts.imported += 1;
        for (lane, kept) in self.lanes.iter_mut().zip(state.lanes) {
            lane.restore(kept);
        }
        (self.flows, self.paths, self.subscriptions) = (flows, state.paths, state.subscriptions);
        self.offer = state.offer;
        // With another GUID the LID is another, and so all is asked for again when the port is there.
        (self.facts, self.counts) = (PortFacts { guid: place.guid, ..state.facts }, state.counts);
        (self.heeds_repath, self.retry_at) = (state.heeds_repath, state.retry_at);
        self.hold_backs = HoldBacks::default();
        self.sa = SaClient::new(&self.options);
        self.quiet();
        self.forget_questions(now);
    }

    /// Resumes the stack; no effect on a running one. Each queue pair first repeats its unacknowledged packets, as soon as the
    /// port is active and has the stack's GUID. `now` is this host's clock.
    pub fn resume(&mut self, now: Time) {
        if !self.is_suspended {
            return;
        }
        self.is_suspended = false;
        self.suspension.counts.resumed += 1;
        self.quiet();
        self.rebase(&Rebase::new(self.suspension.at, now));
        self.forget_questions(now);
        let rules = self.rules;
        for place in self.flows.all() {
            if let Some(sender) = self.flows.sender(place) {
                sender.resume(now, &rules);
                lanes::arm_expiry(sender, place, &mut self.timers);
            }
            if let Some(receiver) = self.flows.receiver(place) {
                receiver.resume();
            }
        }
        self.begin_to_tell();
        let unchanged = PortFacts { reregister: false, ..self.facts.clone() };
        self.suspension.left.get_or_insert_with(|| unchanged.clone());
        let told = self.suspension.told.take().unwrap_or(unchanged);
        self.learn_port(now, told);
        for place in self.flows.all() {
            let owed = self.flows.receiver(place).and_then(|receiver| receiver.acknowledgement);
            if let Some(owed) = owed {
                self.queue_acknowledgement(now, place, owed.service_level);
            }
            self.wake(now, place);
        }
        self.settle(now);
        self.ask(now);
        self.sa_changed();
    }

    /// Whose port it is, as far as the stack knows.
    pub fn identity(&self) -> Identity {
        let facts = self.suspension.told.as_ref().unwrap_or(&self.facts);
        Identity {
            guid: facts.guid,
            gid_prefix: facts.gid_prefix,
            lid: facts.lid,
            lmc: facts.lmc,
            p_keys: self.paths.p_keys(),
        }
    }

    /// Takes an input while suspended.
    pub(super) fn hear_suspended(&mut self, input: Input) {
        let counts = &mut self.suspension.counts;
        match input {
            Input::Accept(_) => counts.packets_dropped += 1,
            Input::Receive(_) => counts.mads_dropped += 1,
            // The adapter is this host's, and goes on.
            Input::Injected { service_level, packets } => {
                self.lanes[usize::from(service_level.0 & 15)].leave(packets);
            }
            Input::Refused { .. } => self.counts.packets_refused += 1,
            Input::Port(facts) => {
                let before = self.suspension.told.as_ref();
                let reregister = facts.reregister || before.is_some_and(|told| told.reregister);
                self.suspension.told = Some(PortFacts { reregister, ..facts });
            }
            Input::Command(_) => {
                self.counts.refused += 1;
                let reason = "the host is suspended; hint: try again when it has resumed".to_owned();
                self.outputs.push_back(Output::Obeyed(Err(CommandError(reason))));
            }
            Input::HandedOn(report) => {
                // It is answered already, and so comes once.
                self.heed_report(self.suspension.at, &report);
                self.quiet();
            }
            Input::Moved(moved) => {
                // A new LID is announced once; the sender goes there when it resumes.
                self.port_relocated(self.suspension.at, &moved);
                self.quiet();
            }
        }
    }

    /// The port to compare the latest facts with. `None` while a resumed stack waits for its port: a LID of 0 or an inactive
    /// link on the way there is no reason to ask subnet administration again.
    pub(super) fn port_before(&mut self, before: PortFacts) -> Option<PortFacts> {
        let Some(left) = &self.suspension.left else { return Some(before) };
        if left.active && (!self.facts.active || self.facts.guid != left.guid) {
            self.facts.active = false;
            return None;
        }
        self.suspension.left.take()
    }

    /// Whether it has resumed and waits for its port.
    pub(super) fn is_arriving(&self) -> bool {
        self.suspension.left.is_some()
    }

    /// Empties all rings and queues and stops all timers. Returns the number of packets cut off.
    fn quiet(&mut self) -> u64 {
        let cut = self.lanes.iter_mut().map(lanes::Lane::quiet).sum();
        for place in self.flows.all() {
            if let Some(sender) = self.flows.sender(place) {
                sender.quiet();
            }
            if let Some(receiver) = self.flows.receiver(place) {
                receiver.quiet();
            }
        }
        self.timers = Timers::default();
        self.pump_later = 0;
        cut
    }

    /// Drops open questions, and begins with other transaction ids, so that late answers match nothing.
    fn forget_questions(&mut self, now: Time) {
        self.sa.abandon(now.as_nanos() ^ self.facts.guid.0 ^ self.suspension.epoch);
        self.paths.abandon();
        self.sa_changed();
    }

    fn rebase(&mut self, rebase: &Rebase) {
        for place in self.flows.all() {
            if let Some(sender) = self.flows.sender(place) {
                sender.rebase(rebase);
            }
            if let Some(receiver) = self.flows.receiver(place) {
                receiver.rebase(rebase);
            }
        }
        for lane in &mut self.lanes {
            lane.rebase(rebase);
        }
        self.retry_at = self.retry_at.map(|at| rebase.moment(at));
        self.paths.rebase(rebase);
        self.hold_backs.rebase(rebase);
    }
}
