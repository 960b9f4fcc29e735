//! One message on its way in.

use std::collections::BTreeMap;
use std::ops::Bound;

use weft_machine::Time;
use weft_wire::{MAD_SIZE, Mad, RMPP_END, RMPP_PAYLOAD, RmppHeader, rmpp_status};

/// What a segment was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is kept, and nothing is to be said.
    Kept,
    /// It is of no use, and nothing is to be said.
    Useless,
    /// The sender is to hear how far the message has come.
    Acknowledge,
    /// The message is whole, and the sender is to hear it.
    Complete,
    /// It cannot be part of this message, which ends with this status.
    Wrong(u8),
}

/// The receiver's half of one transfer.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// The headers of the first segment, and the data that has come in order.
    message: Vec<u8>,
    /// Where the data begins in the message and in each segment.
    offset: usize,
    /// The last segment that has come in order.
    in_order: u32,
    window_last: u32,
    /// Later segments inside the window.
    ahead: BTreeMap<u32, Mad>,
    /// The number of the last segment, once it has come.
    last: Option<u32>,
    /// PayloadLength of the first segment; 0 when it does not say.
    announced: u32,
    /// When the sender has had time enough.
    pub(super) ends: Time,
}

impl Receiver {
    /// Waits for the first segment. `window_last` is the last segment that the sender may send unasked.
    pub(super) fn new(ends: Time, window_last: u32) -> Self {
        Self { window_last, ends, ..Self::default() }
    }

    /// The last segment that has come in order, and the last that may be sent.
    pub(super) fn position(&self) -> (u32, u32) {
        (self.in_order, self.window_last)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.message.len() + self.ahead.len() * MAD_SIZE
    }

    /// The message, when it is whole.
    pub(super) fn into_message(self) -> Vec<u8> {
        self.message
    }

    /// Takes a segment whose flags agree with its number.
    pub(super) fn take(&mut self, mad: &Mad, window: u32) -> Step {
        let RmppHeader { segment, last, .. } = mad.rmpp();
        if segment <= self.in_order {
            return Step::Acknowledge;
        }
        let behind = (Bound::Excluded(segment), Bound::Unbounded);
        if self.last.is_some_and(|end| segment > end) || (last && self.ahead.range(behind).next().is_some()) {
            return Step::Wrong(rmpp_status::BAD_SEGMENT);
        }
        if segment > self.window_last || self.ahead.contains_key(&segment) {
            return Step::Useless;
        }
        if last {
            self.last = Some(segment);
        }
        self.ahead.insert(segment, *mad);
        while let Some(next) = self.ahead.remove(&(self.in_order + 1)) {
            if let Err(status) = self.append(&next) {
                return Step::Wrong(status);
            }
        }
        if self.last == Some(self.in_order) {
            Step::Complete
        } else if self.in_order == self.window_last {
            self.window_last = self.in_order.saturating_add(window);
            Step::Acknowledge
        } else {
            // After a gap nothing is said either: what is missing may only be late, and the sender has a time-out.
            Step::Kept
        }
    }

    fn append(&mut self, mad: &Mad) -> Result<(), u8> {
        let header = mad.rmpp();
        if self.in_order == 0 {
            self.offset = mad.class().data_offset();
            self.announced = header.length;
            self.message.extend_from_slice(&mad.0[..self.offset]);
        }
        let repeated = self.offset - RMPP_END;
        let data = if header.last {
            let length = header.length as usize;
            if !(repeated..=RMPP_PAYLOAD).contains(&length) {
                return Err(rmpp_status::BAD_LENGTH);
            }
            &mad.0[self.offset..RMPP_END + length]
        } else {
            &mad.0[self.offset..]
        };
        self.message.extend_from_slice(data);
        self.in_order += 1;
        let data = self.message.len() - self.offset;
        let fits = |repeats: usize| self.announced as usize == data + repeats * repeated;
        if header.last && self.announced != 0 && !fits(1) && !fits(self.in_order as usize) {
            return Err(rmpp_status::BAD_LENGTH);
        }
        Ok(())
    }
}
