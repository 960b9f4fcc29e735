//! Times that the messages of a stream take: from the first packet to the acknowledgement of the last one.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_machine::Time;

use crate::stack::clock::Rebase;
use crate::stack::numbers::ensure;
use crate::stack::times::Times;
use crate::traffic::Latency;

/// Messages under way whose beginnings are kept; of further ones no time is taken.
const KEPT_MAX: usize = 64;

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    /// The number of the packet behind its last one.
    end: u64,
    at: Time,
}

/// The messages of one sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Messages {
    begun: VecDeque<Begun>,
    times: Times,
}

impl Messages {
    /// The first packet of a message is sent; its last one is the packet before `end`.
    pub(super) fn begin(&mut self, now: Time, end: u64) {
        if self.begun.len() < KEPT_MAX {
            self.begun.push_back(Begun { end, at: now });
        }
    }

    /// All packets before this one are acknowledged.
    pub(super) fn acknowledged(&mut self, now: Time, until: u64) {
        while let Some(message) = self.begun.front().filter(|message| message.end <= until) {
            self.times.record(now.saturating_sub(message.at));
            self.begun.pop_front();
        }
    }

    pub(super) fn report(&self) -> Latency {
        self.times.report()
    }

    pub(super) fn rebase(&mut self, rebase: &Rebase) {
        self.begun.iter_mut().for_each(|message| rebase.shift(&mut message.at));
    }

    pub(super) fn verify(&self) -> Result<(), &'static str> {
        ensure(self.begun.len() <= KEPT_MAX, "too many messages are under way")?;
        self.times.verify()
    }
}
