//! Sends that are not finished.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_mgmt::rmpp::TransferId;
use weft_wire::{AddressedMad, MAD_SIZE, Mad, MadHeader, Method, MgmtClass, TransactionId};

use super::{Address, AgentId};

/// What tells sends apart (and a second one with the same is refused): requests by class and transaction, answers
/// that go out by RMPP by their receiver as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SendId {
    Request { class: MgmtClass, transaction_id: TransactionId },
    Answer(TransferId),
}

impl SendId {
    /// Of something to be sent.
    pub(super) fn of_sent(mad: &AddressedMad) -> Self {
        if mad.mad.is_answer() {
            Self::Answer(TransferId::of_message(mad))
        } else {
            Self::of_request(&mad.mad)
        }
    }

    /// Of the request that has, or would be answered by something with, this class and transaction.
    pub(super) fn of_request(mad: &Mad) -> Self {
        Self::Request { class: mad.class(), transaction_id: mad.transaction_id() }
    }

    /// Of a message that the RMPP machines name.
    pub(super) fn of_transfer(id: &TransferId) -> Self {
        if id.method.is_response() {
            Self::Answer(*id)
        } else {
            Self::Request { class: id.class, transaction_id: id.transaction_id }
        }
    }
}

/// Where a send stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The message is on its way by RMPP, whose timers count.
    Transfer(TransferId),
    /// The answer is awaited until then.
    Answer(Time),
}

/// A send.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) agent: AgentId,
    pub(super) address: Address,
    /// The MAD, or the first bytes of the message.
    pub(super) mad: Box<AddressedMad>,
    /// How long an answer is awaited; zero when there is none to come.
    pub(super) timeout: Time,
    pub(super) retries_left: u32,
    pub(super) phase: Phase,
}

impl Sent {
    /// What a program gets back of a send that no one answered.
    pub(super) fn header(&self) -> Vec<u8> {
        self.mad.mad.0[..MadHeader::SIZE].to_vec()
    }

    pub(super) fn method(&self) -> Method {
        self.mad.mad.method()
    }
}

/// The first 256 bytes of `data`, filled up with zeros.
pub(super) fn first_mad(data: &[u8]) -> Mad {
    let mut mad = Mad::default();
    let length = data.len().min(MAD_SIZE);
    mad.0[..length].copy_from_slice(&data[..length]);
    mad
}

/// All sends that are not finished.
#[derive(Debug, Default)]
pub(super) struct Sends {
    by_id: BTreeMap<SendId, Sent>,
    /// One entry for each send that awaits an answer.
    timers: BTreeSet<(Time, SendId)>,
}

impl Sends {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn contains(&self, id: &SendId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn insert(&mut self, id: SendId, sent: Sent) {
        self.remove(&id);
        if let Phase::Answer(due) = sent.phase {
            self.timers.insert((due, id));
        }
        self.by_id.insert(id, sent);
    }

    pub(super) fn remove(&mut self, id: &SendId) -> Option<Sent> {
        let sent = self.by_id.remove(id)?;
        if let Phase::Answer(due) = sent.phase {
            self.timers.remove(&(due, *id));
        }
        Some(sent)
    }

    /// Begins to wait, or waits longer, for the answer.
    pub(super) fn await_answer(&mut self, id: SendId, due: Time) {
        if let Some(sent) = self.by_id.get_mut(&id) {
            if let Phase::Answer(before) = sent.phase {
                self.timers.remove(&(before, id));
            }
            sent.phase = Phase::Answer(due);
            self.timers.insert((due, id));
        }
    }

    pub(super) fn get(&self, id: &SendId) -> Option<&Sent> {
        self.by_id.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &SendId) -> Option<&mut Sent> {
        self.by_id.get_mut(id)
    }

    /// The sends of one registration.
    pub(super) fn of_agent(&self, agent: AgentId) -> Vec<SendId> {
        self.by_id.iter().filter(|(_, sent)| sent.agent == agent).map(|(&id, _)| id).collect()
    }

    /// A send whose answer is due.
    pub(super) fn due(&self, now: Time) -> Option<SendId> {
        self.timers.first().filter(|(due, _)| *due <= now).map(|&(_, id)| id)
    }

    pub(super) fn due_at(&self) -> Option<Time> {
        self.timers.first().map(|&(due, _)| due)
    }
}
