//! Relocation of a port to another place of the fabric, with a virtual machine: its peers are woken.
//!
//! A queue pair whose packets were lost at a suspended port repeats them only when its acknowledgement timeout expires, after
//! seconds. The notice makes it repeat at once, and says the port's LID. A stack that has resumed asks subnet administration to
//! send it to those that have sent to it, each by itself, once its port is active; before that the repetition would be lost as well.
//!
//! | the LID | senders | traps 64 and 65 of the GID |
//! |---|---|---|
//! | moves with the port (prepopulated, dynamic) | repeat at once | are ignored for a while: the move itself causes them |
//! | changes (OpenSM assigns another one) | go to the new LID and repeat at once | are heeded: the path's rate and service level may differ |
//!
//! In both cases acknowledgements follow the LID that packets come from.
//!
//! A host of another kind may have a slower or a faster link, or a smaller MTU. Then the subnet manager, which knows both hosts, says
//! so to all subscribers (trap 69, [`RepathKind::RATE`](weft_wire::RepathKind::RATE)) once its own records are right: whoever has the path in its cache asks for it
//! again, and the port that has moved for all of its own. Addresses stay, and no queue pair stops meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{Guid, Lid, RepathDetails};

use super::clock::Rebase;
use super::paths::{Address, PathCache};
use super::sender::{Phase, Target};
use super::{Guids, Stack, lanes};

/// How long traps 64 and 65 of a port that has moved are ignored, in timeouts of subnet administration.
const HOLD_BACK_TIMEOUTS: u64 = 10;
/// The most ports whose traps are ignored at a time.
const HELD_BACK_MAX: usize = 4096;

/// A port has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedLid {
    /// The port.
    pub guid: Guid,
    /// Its base LID before.
    pub from: Lid,
    /// Its base LID now; the same where LIDs move with ports.
    pub to: Lid,
}

impl MovedLid {
    /// What a notice of a new LID says; see [`RepathKind::NEW_LID`](weft_wire::RepathKind::NEW_LID).
    pub(super) fn of(details: &RepathDetails) -> Self {
        Self { guid: details.guid, from: details.slid, to: details.dlid }
    }
}

/// Peers to be notified that this port has moved.
#[derive(Debug, Default)]
pub(super) struct Tells {
    /// The LID that it had before.
    from: Lid,
    peers: BTreeSet<Lid>,
}

/// Ports that have moved lately, each with the moment until which notices about it are ignored.
#[derive(Debug, Default)]
pub(super) struct HoldBacks {
    until: BTreeMap<Guid, Time>,
}

impl HoldBacks {
    fn begin(&mut self, now: Time, guid: Guid, span: Time) {
        if self.until.len() >= HELD_BACK_MAX {
            self.until.retain(|_, until| *until > now);
        }
        // A port that is not remembered costs one question to subnet administration.
        if self.until.len() < HELD_BACK_MAX {
            self.until.insert(guid, now + span);
        }
    }

    fn holds(&self, now: Time, guid: Guid) -> bool {
        self.until.get(&guid).is_some_and(|until| *until > now)
    }

    /// Its moments are those of another clock from now on.
    pub(super) fn rebase(&mut self, rebase: &Rebase) {
        self.until.values_mut().for_each(|until| rebase.shift(until));
    }
}

impl Stack {
    /// A port has moved.
    pub(super) fn port_relocated(&mut self, now: Time, moved: &MovedLid) {
        self.suspension.counts.moves_heard += 1;
        if !moved.to.is_unicast() {
            return;
        }
        if moved.from == moved.to {
            let span = self.options.sa_timeout.as_nanos().saturating_mul(HOLD_BACK_TIMEOUTS);
            self.hold_backs.begin(now, moved.guid, Time::from_nanos(span));
            self.paths.find_again(moved.guid);
        }
        if self.options.path_cache == PathCache::Off {
            // The queue pair goes on, as RDS reconnects; its path is asked for as that of a new connection.
            self.paths.renew(Some(moved.guid));
            self.asks_due = true;
        }
        for path in self.paths.set_lid(moved.guid, moved.to) {
            self.path_changed(now, path);
        }
        for place in self.flows.all() {
            self.wake_for(now, place, moved);
        }
    }

    /// A sender to the port that has moved repeats at once.
    fn wake_for(&mut self, now: Time, place: u32, moved: &MovedLid) {
        let rules = self.rules;
        let Some(sender) = self.flows.sender(place).filter(|sender| sender.phase == Phase::Active) else {
            return;
        };
        if matches!(sender.target, Target::Peer) && sender.address.dlid == moved.from {
            sender.move_to(now, Address { dlid: moved.to, ..sender.address });
        }
        if sender.address.dlid != moved.to || !sender.repeat(now, &rules) {
            return;
        }
        lanes::arm_expiry(sender, place, &mut self.timers);
        self.suspension.counts.senders_woken += 1;
        self.dequeue(place);
        self.wake(now, place);
    }

    /// Ways to a port carry more or less than before, and so do all of its own if it is this one.
    pub(super) fn rate_changed(&mut self, guid: Guid) {
        let of = Some(guid).filter(|guid| *guid != self.facts.guid);
        let counts = &mut self.suspension.counts;
        counts.rates_heard += 1;
        if self.options.path_cache == PathCache::On {
            return;
        }
        counts.paths_renewed += self.paths.renew_capacity(of);
    }

    /// The stack has resumed: peers that have sent to it over reliable connections are notified.
    pub(super) fn begin_to_tell(&mut self) {
        self.tells = Tells { from: self.facts.lid, peers: BTreeSet::new() };
        // Peers know another GUID, and find the machine by its name.
        if !self.options.wakes_peers || self.options.guids == Guids::Dynamic {
            return;
        }
        for place in self.flows.all() {
            let peer = self.flows.receiver(place).map(|receiver| receiver.peer);
            self.tells.peers.extend(peer.filter(|peer| peer.is_unicast() && *peer != self.facts.lid));
        }
    }

    /// Asks subnet administration to notify them. Any other peer finds out by its timeout.
    pub(super) fn ask_to_tell_peers(&mut self) {
        while let Some(peer) = self.tells.peers.pop_first() {
            if !self.sa.ask_to_tell(&self.facts, self.tells.from, peer) {
                self.told(false);
            }
        }
    }

    /// Subnet administration has notified a peer, or will not.
    pub(super) fn told(&mut self, is_told: bool) {
        let counts = &mut self.suspension.counts;
        *if is_told { &mut counts.peers_told } else { &mut counts.peers_not_told } += 1;
    }

    /// Whether a notice that a port comes or goes is ignored, because the port has just moved.
    pub(super) fn is_held_back(&mut self, now: Time, guid: Guid) -> bool {
        let held = self.hold_backs.holds(now, guid);
        self.suspension.counts.notices_held_back += u64::from(held);
        held
    }
}
