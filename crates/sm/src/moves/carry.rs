//! Carries out a plan: blocks of forwarding tables, round by round, and a second look at those that were sent twice.
//!
//! ```text
//! round 1: Set, Set, … ─▶ all acknowledged ─▶ round 2 ─▶ … ─▶ Get of blocks of which an attempt may still be under way ─▶ done
//!                                 └── one is not, or says otherwise: the plan ends, and a heavy sweep heals
//! ```

use weft_mgmt::DirectedPath;
use weft_routing::moves::{Plan, Proof, Write};
use weft_wire::{AttributeId, Guid, LinearForwardingTable, Mad, PortNum, status};

use super::desk::Asked;
use super::wish::Wish;
use crate::knowledge::{Key, PortAt, Subnet};
use crate::requests::{Ask, Step};
use crate::requests::{Get, Set, SmpRequest};
use crate::sweep::route_to;
use crate::{Event, Options, SmpRouting};

/// A plan under way, up to its late rounds.
#[derive(Debug, Default)]
pub(crate) struct Carry {
    pub(crate) subnet: Subnet,
    /// The requests that it carries out, with what each came to; none where it writes late rows.
    pub(crate) batch: Vec<(Asked, Wish)>,
    pub(crate) plan: Plan,
    pub(crate) proof: Proof,
    /// Whether hosts have yet to confirm that they hold queue pairs.
    pub(crate) awaits_holds: bool,
    smp_routing: SmpRouting,
    /// The round that is on, from 0.
    round: usize,
    next: usize,
    /// Writes of this round that have been acknowledged.
    acknowledged: Vec<usize>,
    /// Blocks to be read back once all rounds are over.
    doubtful: Option<Vec<Write>>,
    /// The switch that went wrong first, and how.
    broken: Option<(Guid, String)>,
    pub(crate) events: Vec<Event>,
}

impl Carry {
    pub(crate) fn new(
        subnet: Subnet,
        batch: Vec<(Asked, Wish)>,
        plan: Plan,
        proof: Proof,
        options: &Options,
    ) -> Self {
        Self { subnet, batch, plan, proof, smp_routing: options.smps.smp_routing, ..Self::default() }
    }

    /// The block that a switch is written, and whose turn it is.
    fn turn(&self) -> &[Write] {
        match &self.doubtful {
            Some(doubtful) => doubtful,
            None => self.plan.rounds.get(self.round).map_or(&[], |round| &round.writes),
        }
    }

    /// What has been acknowledged since this was asked last.
    pub(crate) fn take_acknowledged(&mut self) -> Vec<Write> {
        let places = std::mem::take(&mut self.acknowledged);
        let turn = self.turn();
        places.into_iter().filter_map(|at| turn.get(at).copied()).collect()
    }

    /// Goes on to the next round; false after the last one.
    pub(crate) fn next_round(&mut self) -> bool {
        self.next = 0;
        self.round += 1;
        self.round < self.plan.prompt()
    }

    /// Whether packets of earlier rounds must have arrived or be dropped before this one begins.
    pub(crate) fn must_drain(&self) -> bool {
        self.plan.rounds.get(self.round).is_some_and(|round| round.after_drain)
    }

    /// How many switches hold such a packet one after the other at most.
    pub(crate) fn drain(&self) -> u32 {
        self.plan.rounds.get(self.round).map_or(0, |round| round.drain)
    }

    /// Whether any row of it has been sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.round > 0 || self.next > 0
    }

    /// Whether anything may have been written. Late rows are those of a move that was.
    pub(crate) fn has_begun(&self) -> bool {
        self.round > 0 || self.batch.is_empty()
    }

    /// The round that is on, from 1.
    pub(crate) fn round(&self) -> usize {
        self.round + 1
    }

    /// Reads blocks back. False: there are none, or they have been read.
    pub(crate) fn read_back(&mut self, is_doubtful: impl Fn(Guid, Key) -> bool) -> bool {
        if self.doubtful.is_some() {
            return false;
        }
        let doubts = |write: &&Write| {
            is_doubtful(
                self.subnet.guid(write.switch.0),
                Key::Lft { node: write.switch.0, block: write.block },
            )
        };
        // A block that was written twice holds what was written last.
        let mut blocks: Vec<Write> = self.plan.prompt_writes().filter(doubts).copied().collect();
        blocks.reverse();
        blocks.sort_by_key(|write| (write.switch, write.block));
        blocks.dedup_by_key(|write| (write.switch, write.block));
        self.next = 0;
        let any = !blocks.is_empty();
        self.doubtful = Some(blocks);
        any
    }

    /// Why the plan has ended before its time.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_ref().map(|(_, why)| why.as_str())
    }

    /// Switches that may hold the old block or the new one, the one that broke the plan first.
    pub(crate) fn in_doubt(&self) -> Vec<Guid> {
        let all = self.turn().iter().map(|write| self.subnet.guid(write.switch.0));
        self.broken.iter().map(|(guid, _)| *guid).chain(all).collect()
    }

    fn breaks(&mut self, write: &Write, what: &str) {
        let guid = self.subnet.guid(write.switch.0);
        let round = self.round();
        let text = || format!("switch {guid} {what} block {} in round {round}", write.block);
        self.broken.get_or_insert_with(|| (guid, text()));
    }
}

impl Step for Carry {
    fn next(&mut self) -> Option<Ask> {
        let reads = self.doubtful.is_some();
        while let Some(write) = self.turn().get(self.next).copied() {
            let place = self.next as u32;
            self.next += 1;
            let at = PortAt { node: write.switch.0, port: PortNum::ZERO };
            let modifier = u32::from(write.block);
            let request = match reads {
                true => SmpRequest::get(Get::Lft, modifier),
                false => {
                    let table = LinearForwardingTable { ports: write.ports };
                    SmpRequest::set(Set::Lft, modifier, &table.encode())
                }
            };
            match route_to(&self.subnet, at, self.smp_routing) {
                Some(route) => return Some(Ask { key: Key::Write(place), route, request }),
                None => self.breaks(&write, "cannot be reached to write"),
            }
        }
        None
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        let Key::Write(place) = key else { return };
        let Some(write) = self.turn().get(place as usize).copied() else { return };
        let held = LinearForwardingTable::decode(answer.smp_attribute());
        if answer.status() == status::OK && held.ports == write.ports {
            self.acknowledged.push(place as usize);
            return;
        }
        let (guid, modifier, status) =
            (self.subnet.guid(write.switch.0), u32::from(write.block), answer.status());
        let attribute = AttributeId::LinearForwardingTable;
        self.events.push(Event::refused(guid, attribute, modifier, status));
        self.breaks(&write, "does not hold");
    }

    fn failed(&mut self, key: Key) {
        let Key::Write(place) = key else { return };
        let Some(write) = self.turn().get(place as usize).copied() else { return };
        let (guid, modifier) = (self.subnet.guid(write.switch.0), u32::from(write.block));
        self.events.push(Event::unanswered(guid, AttributeId::LinearForwardingTable, modifier));
        self.breaks(&write, "does not acknowledge");
    }

    fn is_over(&self) -> bool {
        self.broken.is_some()
    }

    fn written(&self, key: Key) -> Vec<(Guid, Key)> {
        let Key::Write(place) = key else { return Vec::new() };
        let write = self.turn().get(place as usize).filter(|_| self.doubtful.is_none());
        let key = |write: &Write| Key::Lft { node: write.switch.0, block: write.block };
        write.map(|write| (self.subnet.guid(write.switch.0), key(write))).into_iter().collect()
    }

    fn fallback(&mut self, key: Key) -> Option<DirectedPath> {
        self.smp_routing = SmpRouting::Directed;
        let Key::Write(place) = key else { return None };
        let write = self.turn().get(place as usize)?;
        self.subnet.node(write.switch.0).map(|node| node.path)
    }
}
