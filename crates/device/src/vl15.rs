//! The buffer of the management lane and the time that one SMP takes.

use std::collections::VecDeque;

use weft_machine::Time;
use weft_wire::{Lid, Mad, PortNum};

use crate::moment::NEVER;
use crate::smi::Arrival;

/// An SMP on its way through the node's management.
#[derive(Clone, Debug)]
pub(crate) struct Smp {
    pub(crate) arrival: Arrival,
    /// The port of arrival, or the port that the program is attached to.
    pub(crate) port: PortNum,
    pub(crate) slid: Lid,
    pub(crate) dlid: Lid,
    pub(crate) mad: Mad,
}

/// SMPs that wait for the node's management. One is processed at a time, each for the same time.
#[derive(Debug)]
pub(crate) struct Vl15 {
    /// The one in process is the first.
    waiting: VecDeque<Smp>,
    /// When the first is done.
    done_at: Time,
    capacity: usize,
    processing: Time,
}

/// There is no room left.
pub(crate) struct Full;

impl Vl15 {
    pub(crate) fn new(capacity: u16, processing: Time) -> Self {
        Self { waiting: VecDeque::new(), done_at: Time::ZERO, capacity: usize::from(capacity), processing }
    }

    /// Whether SMPs take no time, so that nothing ever waits.
    pub(crate) fn is_instant(&self) -> bool {
        self.processing == Time::ZERO
    }

    pub(crate) fn push(&mut self, now: Time, smp: Smp) -> Result<(), Full> {
        if self.waiting.is_empty() {
            self.done_at = now + self.processing;
        } else if self.waiting.len() > self.capacity {
            return Err(Full);
        }
        self.waiting.push_back(smp);
        Ok(())
    }

    /// The next SMP whose processing has ended by `now`. The one behind it began at that moment, however late
    /// the call comes.
    pub(crate) fn pop_done(&mut self, now: Time) -> Option<Smp> {
        if self.done_at > now {
            return None;
        }
        let smp = self.waiting.pop_front()?;
        self.done_at += self.processing;
        Some(smp)
    }

    /// When the first is done; at the end of time when there is none.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        if self.waiting.is_empty() { NEVER } else { self.done_at }
    }
}

#[cfg(test)]
mod tests;
