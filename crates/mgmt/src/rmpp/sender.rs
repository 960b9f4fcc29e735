//! One message on its way out.

use weft_machine::Time;
use weft_wire::{MAD_SIZE, Mad, Method, RMPP_END, RMPP_VERSION, RmppHeader, RmppType, rmpp_status};

use super::{Failure, RESP_TIME_UNKNOWN, Timing, control, ending};
use crate::timers::TransferTimer;

/// Segments handed out without a pause: the other end may grant a window of four thousand million.
const BURST: u32 = 256;
/// The pause after that many.
const PAUSE: Time = Time::from_millis(1);

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Segments are to be sent or acknowledged.
    Sending,
    /// Everything is acknowledged.
    Done,
    /// It is given up.
    Failed(Failure),
}

/// The sender's half of one transfer.
#[derive(Debug)]
pub(super) struct Sender {
    /// The headers and all data.
    message: Vec<u8>,
    /// Where the data begins in the message and in each segment.
    offset: usize,
    segments: u32,
    /// The last segment handed out since the last time-out.
    sent: u32,
    /// The last segment ever handed out.
    sent_max: u32,
    acked: u32,
    window_last: u32,
    timing: Timing,
    resp_time: u8,
    /// What the receiver said of itself.
    peer_resp_time: u8,
    retries_left: u32,
    /// Segments that may be handed out before the next pause.
    burst_left: u32,
    /// Waits for the end of a pause, not for an acknowledgement.
    paused: bool,
    due: Time,
    ends: Time,
    state: State,
    /// What tells the receiver that it is over.
    farewell: Option<Mad>,
}

impl Sender {
    /// `message` reaches at least to where its class's data begins. `window` is the first window, from 1.
    pub(super) fn new(now: Time, message: Vec<u8>, window: u32, timing: &Timing, resp_time: u8) -> Self {
        let offset = class_of(&message).data_offset();
        let data = message.len().saturating_sub(offset);
        let segments = data.div_ceil(MAD_SIZE - offset).max(1) as u32;
        Self {
            message,
            offset,
            segments,
            sent: 0,
            sent_max: 0,
            acked: 0,
            window_last: window.max(1),
            timing: *timing,
            resp_time,
            peer_resp_time: RESP_TIME_UNKNOWN,
            retries_left: timing.retries,
            burst_left: BURST,
            paused: false,
            due: now + timing.ack_timeout,
            ends: now + timing.total,
            state: State::Sending,
            farewell: None,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.message.len()
    }

    pub(super) fn due(&self) -> Time {
        self.due.min(self.ends)
    }

    /// What [`Self::due`] is for, as [`Self::handle_timeout`] does it.
    pub(super) fn awaits(&self) -> TransferTimer {
        if self.ends <= self.due {
            TransferTimer::TotalTime
        } else if self.paused {
            TransferTimer::Pause
        } else {
            TransferTimer::Acknowledgement
        }
    }

    fn segment(&self, number: u32) -> Mad {
        let mut mad = self.headers();
        let chunk = MAD_SIZE - self.offset;
        let start = self.offset + (number as usize - 1) * chunk;
        let data = &self.message[start.min(self.message.len())..(start + chunk).min(self.message.len())];
        mad.0[self.offset..self.offset + data.len()].copy_from_slice(data);
        let (first, last) = (number == 1, number == self.segments);
        let repeated = self.offset - RMPP_END;
        let length = if first {
            self.message.len() - self.offset + self.segments as usize * repeated
        } else if last {
            data.len() + repeated
        } else {
            0
        };
        mad.set_rmpp(&RmppHeader {
            version: RMPP_VERSION,
            kind: RmppType::Data,
            resp_time: self.resp_time,
            last,
            first,
            active: true,
            status: rmpp_status::NORMAL,
            segment: number,
            length: length as u32,
        });
        mad
    }

    fn headers(&self) -> Mad {
        let mut mad = Mad::default();
        mad.0[..self.offset].copy_from_slice(&self.message[..self.offset]);
        mad
    }

    /// The next packet, and whether it was sent before.
    pub(super) fn poll(&mut self, now: Time) -> Option<(Mad, bool)> {
        if let Some(farewell) = self.farewell.take() {
            return Some((farewell, false));
        }
        if self.state != State::Sending || self.sent >= self.window_last.min(self.segments) {
            return None;
        }
        if self.burst_left == 0 {
            if !self.paused {
                self.paused = true;
                self.due = now + PAUSE;
            }
            return None;
        }
        self.burst_left -= 1;
        self.sent += 1;
        let again = self.sent <= self.sent_max;
        self.sent_max = self.sent_max.max(self.sent);
        self.due = now + self.wait();
        Some((self.segment(self.sent), again))
    }

    fn wait(&self) -> Time {
        if self.peer_resp_time >= RESP_TIME_UNKNOWN {
            return self.timing.ack_timeout;
        }
        self.timing.transit + Time::from_nanos(4096 << self.peer_resp_time)
    }

    fn fail(&mut self, failure: Failure, told: Option<u8>) {
        self.state = State::Failed(failure);
        let headers = self.headers();
        self.farewell = told.map(|status| ending(&headers, headers.method(), status));
    }

    fn break_off(&mut self, status: u8) {
        self.fail(Failure::Protocol(status), Some(status));
    }

    /// An Ack, Stop or Abort of this transfer. Says whether it was of any use.
    pub(super) fn handle(&mut self, now: Time, header: &RmppHeader) -> bool {
        if self.state != State::Sending {
            return false;
        }
        match header.kind {
            _ if header.version != RMPP_VERSION => self.break_off(rmpp_status::BAD_VERSION),
            RmppType::Ack => return self.acknowledged(now, header),
            RmppType::Stop | RmppType::Abort => match Failure::told(header) {
                Some(failure) => self.fail(failure, None),
                None => self.break_off(rmpp_status::BAD_STATUS),
            },
            _ => self.break_off(rmpp_status::BAD_TYPE),
        }
        true
    }

    fn acknowledged(&mut self, now: Time, header: &RmppHeader) -> bool {
        let (segment, window_last) = (header.segment, header.length);
        if header.status != rmpp_status::NORMAL {
            self.break_off(rmpp_status::BAD_STATUS);
        } else if window_last < segment {
            self.break_off(rmpp_status::WINDOW_TOO_SMALL);
        } else if segment > self.sent_max {
            self.break_off(rmpp_status::SEGMENT_TOO_BIG);
        } else if segment < self.acked || window_last < self.window_last.min(self.segments) {
            return false;
        } else {
            let news = segment > self.acked || window_last > self.window_last;
            if news {
                (self.burst_left, self.paused) = (BURST, false);
            }
            if segment > self.acked {
                self.retries_left = self.timing.retries;
            }
            self.acked = segment;
            self.sent = self.sent.max(segment);
            self.window_last = window_last;
            self.peer_resp_time = header.resp_time;
            if self.acked == self.segments {
                self.state = State::Done;
            } else if news {
                self.due = now + self.wait();
            }
            return news;
        }
        true
    }

    /// Lets time pass.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.state != State::Sending {
            return;
        }
        if self.ends <= now {
            self.fail(Failure::TimedOut, Some(rmpp_status::TOTAL_TIME));
        } else if self.due <= now {
            self.burst_left = BURST;
            if std::mem::take(&mut self.paused) {
                self.due = now + self.wait();
                return;
            }
            if self.retries_left == 0 {
                return self.fail(Failure::TimedOut, Some(rmpp_status::RETRIES));
            }
            self.retries_left -= 1;
            self.sent = self.acked;
            self.due = now + self.wait();
        }
    }
}

/// The class of a message; of one that is too short to have any, none.
pub(super) fn class_of(message: &[u8]) -> weft_wire::MgmtClass {
    weft_wire::MgmtClass::from_code(message.get(1).copied().unwrap_or_default())
}

/// An Ack of everything up to `segment`. `of` is a segment, or for the turn-around of a double-sided transfer the
/// request, whose method is the one that the Ack is to have.
pub(super) fn ack(of: &Mad, method: Method, segment: u32, window_last: u32, resp_time: u8) -> Mad {
    let (kind, length) = (RmppType::Ack, window_last);
    control(of, method, RmppHeader { kind, segment, length, resp_time, ..RmppHeader::default() })
}
