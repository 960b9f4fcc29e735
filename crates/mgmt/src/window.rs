//! The limit of requests in flight: a number, or as many as make answers come faster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weft_machine::Time;
pub use weft_vocabulary::sm::{WindowReason, WindowState};

/// The widest window: 2 to the 16.
pub const WINDOW_MAX: u32 = 1 << 16;

/// What a window that adapts begins with, as subnet managers have always used.
const BEGIN: u32 = 4;

/// The widest that adapts, unless something narrower is asked for.
const AUTO_MAX: u32 = 1024;

/// A window of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// This number; brought into 1 to [`WINDOW_MAX`].
    Fixed(u32),
    /// It adapts, up to this number.
    Auto(u32),
}

impl Window {
    /// It adapts, as far as is sensible.
    pub const AUTO: Self = Self::Auto(AUTO_MAX);

    /// The most requests in flight that it ever allows.
    pub fn most(self) -> u32 {
        let (Self::Fixed(most) | Self::Auto(most)) = self;
        most.clamp(1, WINDOW_MAX)
    }

    /// The same, no wider than `most`.
    #[must_use]
    pub fn narrowed(self, most: u32) -> Self {
        match self {
            Self::Fixed(window) => Self::Fixed(window.min(most)),
            Self::Auto(window) => Self::Auto(window.min(most)),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(window) => window.fmt(f),
            Self::Auto(_) => f.write_str("auto"),
        }
    }
}

/// Text that names no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadWindow;

weft_wire::displayed!(BadWindow => "a window is `auto` or 1 to {WINDOW_MAX}");

impl std::error::Error for BadWindow {}

impl FromStr for Window {
    type Err = BadWindow;

    fn from_str(text: &str) -> Result<Self, BadWindow> {
        if text == "auto" {
            return Ok(Self::AUTO);
        }
        let window = text.parse().map_err(|_| BadWindow)?;
        if (1..=WINDOW_MAX).contains(&window) { Ok(Self::Fixed(window)) } else { Err(BadWindow) }
    }
}

/// The least answers by which a rate is judged.
const EPOCH_MIN: u32 = 32;

/// Windows of answers by which a rate is judged.
const EPOCH_WINDOWS: u32 = 4;

/// The least gain that a window half as wide again must bring: 8 %. What depends on nothing but the round trip brings 50 %.
const FASTER_PERCENT: u64 = 108;

/// The part of the time-out after which an answer is late.
const LATE: u64 = 8;

/// Epochs that pass after a failed attempt at a wider window: `first`, then twice as many each time up to `last`.
#[derive(Clone, Copy)]
struct Hold {
    first: u32,
    last: u32,
}

/// After a wider window that was no faster, or late answers.
const HOLD: Hold = Hold { first: 4, last: 64 };

/// After a loss.
const HOLD_LOSS: Hold = Hold { first: 64, last: 4096 };

/// A request that has waited for this multiple of the longest round trip is taken for lost, long before the time-out.
const SUSPECT: u64 = 4;

/// One answer, as a window that adapts sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// From the attempt to the answer.
    pub(crate) rtt: Time,
    /// What it took: hops and the node itself.
    pub(crate) work: u32,
    /// How many attempts.
    pub(crate) attempts: u32,
    /// Whether more would have been sent, had the window been wider.
    pub(crate) is_limited: bool,
    /// When the oldest attempt was made that is still taken to be in the network.
    pub(crate) oldest: Option<Time>,
}

/// A window that adapts. It grows by a half while work is done faster for it; it returns to what it was where that was in
/// vain, where answers come late, and where requests are lost; and tries again after ever longer times.
///
/// What counts is work done per time and not the round trip itself: a round trip depends on the way, and where many
/// datagrams share a packet or a wake-up it grows with the window long before anything is full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Auto {
    most: u32,
    late: Time,
    pub(crate) window: u32,
    pub(crate) reason: WindowReason,
    /// The window before the last step and the work per second that it did.
    before: Option<(u32, u64)>,
    /// Epochs until the next step, and how many there were to be after the last one that failed.
    hold: u32,
    held: u32,
    epoch: Epoch,
}

#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    began: Option<Time>,
    answers: u32,
    limited: u32,
    work: u64,
    slowest: Time,
    /// The longest round trip of the epoch before.
    slowest_before: Time,
}

impl Auto {
    pub(crate) fn new(most: u32, timeout: Time) -> Self {
        Self {
            most,
            late: Time::from_nanos(timeout.as_nanos() / LATE),
            window: BEGIN.min(most),
            reason: WindowReason::Growing,
            before: None,
            hold: 0,
            held: 0,
            epoch: Epoch::default(),
        }
    }

    /// Takes note of an answer; whether the window is another now.
    pub(crate) fn answered(&mut self, now: Time, answer: Answer) -> bool {
        let window = self.window;
        let longest = self.epoch.slowest.max(self.epoch.slowest_before);
        let suspect = Time::from_nanos(longest.as_nanos().saturating_mul(SUSPECT));
        let is_lost = |sent: Time| longest > Time::ZERO && now.saturating_sub(sent) > suspect;
        if answer.attempts > 1 {
            self.lost();
        } else {
            if answer.oldest.is_some_and(is_lost) && self.before.is_some() {
                self.lost();
            }
            self.count(now, answer);
        }
        self.window != window
    }

    fn count(&mut self, now: Time, answer: Answer) {
        let epoch = &mut self.epoch;
        let Some(began) = epoch.began else {
            // The first answer only says that time begins.
            epoch.began = Some(now);
            return;
        };
        epoch.answers += 1;
        epoch.limited += u32::from(answer.is_limited);
        epoch.work += u64::from(answer.work);
        epoch.slowest = epoch.slowest.max(answer.rtt);
        if epoch.answers < EPOCH_MIN.max(self.window.saturating_mul(EPOCH_WINDOWS)) {
            return;
        }
        let (was_limited, slowest) = (epoch.limited >= epoch.answers / 4 * 3, epoch.slowest);
        let elapsed = now.saturating_sub(began).as_nanos().max(1);
        let rate = epoch.work.saturating_mul(1_000_000_000) / elapsed;
        self.begin_epoch(Some(now), slowest);
        if slowest > self.late {
            self.give_way(self.window / 2, WindowReason::Delay, HOLD);
        } else if was_limited {
            self.judge(rate);
        }
    }

    fn judge(&mut self, rate: u64) {
        if let Some((window, before)) = self.before {
            if rate.saturating_mul(100) < before.saturating_mul(FASTER_PERCENT) {
                return self.give_way(window, WindowReason::NoFaster, HOLD);
            }
            self.held = 0;
        } else if self.hold > 0 {
            self.hold -= 1;
            return;
        }
        let wider = (self.window + self.window.div_ceil(2)).min(self.most);
        (self.before, self.reason) = if wider > self.window {
            (Some((self.window, rate)), WindowReason::Growing)
        } else {
            (None, WindowReason::Most)
        };
        self.window = wider;
    }

    /// A request was lost: the window was too wide for some buffer.
    fn lost(&mut self) {
        // One loss shows in many answers, and more than one request is lost at once.
        if self.reason == WindowReason::Loss && self.epoch.answers < self.window && self.before.is_none() {
            return;
        }
        let narrower = self.before.map_or(self.window - self.window.div_ceil(4), |(window, _)| window);
        self.give_way(narrower, WindowReason::Loss, HOLD_LOSS);
        self.begin_epoch(None, Time::ZERO);
    }

    fn give_way(&mut self, window: u32, reason: WindowReason, hold: Hold) {
        self.window = window.max(1);
        (self.reason, self.before) = (reason, None);
        self.held = self.held.saturating_mul(2).clamp(hold.first, hold.last);
        self.hold = self.held;
    }

    fn begin_epoch(&mut self, began: Option<Time>, slowest_before: Time) {
        self.epoch = Epoch { began, slowest_before, ..Epoch::default() };
    }

    /// Nothing waits any more: time that passes now says nothing.
    pub(crate) fn rest(&mut self) {
        let slowest = self.epoch.slowest.max(self.epoch.slowest_before);
        self.begin_epoch(None, slowest);
    }
}

#[cfg(test)]
mod tests;
