//! The used part of the window: all of it, until an answer stays away.

use weft_machine::Time;

use crate::window::{Answer, Auto, Window, WindowReason, WindowState};

/// How many answers let one more request into the network after the pace was slowed.
const ANSWERS_PER_STEP: u32 = 32;

/// The part of the time-out after which an attempt counts as not being in the network any more.
const SETTLES_AFTER: u64 = 16;

/// How many attempts may be in the network at once.
///
/// Lane 15 has no flow control: what finds a management buffer full is lost, and when the time-out comes, all that
/// was lost together would be sent together and be lost again. So a time-out closes the window to one attempt, and
/// every [`ANSWERS_PER_STEP`] answers open it by one more, up to what the operator allows. An attempt that has had
/// no answer for a small part of the time-out is in no one's buffer any more, whatever became of it, and makes room
/// for another; so nodes that are dead hold no one up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    window: u32,
    open: u32,
    /// What sets the window, where it adapts.
    auto: Option<Auto>,
    /// Answers since it was opened or closed last.
    answers: u32,
    /// How long an attempt counts.
    pub(crate) settle: Time,
}

impl Pace {
    pub(crate) fn new(window: Window, timeout: Time) -> Self {
        let settle = Time::from_nanos(timeout.as_nanos() / SETTLES_AFTER);
        let auto = matches!(window, Window::Auto(_)).then(|| Auto::new(window.most(), timeout));
        let window = auto.as_ref().map_or(window.most(), |auto| auto.window);
        Self { window, open: window, auto, answers: 0, settle }
    }

    /// How wide the window is.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// The same, and why.
    pub(crate) fn state(&self) -> WindowState {
        let reason = self.auto.as_ref().map_or(WindowReason::Fixed, |auto| auto.reason);
        WindowState::new(self.window, reason)
    }

    /// Nothing was in flight for a while.
    pub(crate) fn rest(&mut self) {
        if let Some(auto) = &mut self.auto {
            auto.rest();
        }
    }

    /// How many attempts may be in the network.
    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    /// Whether time alone can make room: attempts settle, and the window has places for others.
    pub(crate) fn is_slowed(&self) -> bool {
        self.open < self.window
    }

    pub(crate) fn timed_out(&mut self) {
        (self.open, self.answers) = (1, 0);
    }

    pub(crate) fn answered(&mut self, now: Time, answer: Answer) {
        if let Some(auto) = &mut self.auto
            && auto.answered(now, answer)
        {
            // What was open all the way stays so.
            let is_open = self.open >= self.window;
            self.window = auto.window;
            self.open = if is_open { self.window } else { self.open.min(self.window) };
        }
        if self.open < self.window {
            self.answers += 1;
            if self.answers >= ANSWERS_PER_STEP {
                self.open += 1;
                self.answers = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        Answer { rtt: Time::ZERO, work: 1, attempts: 1, is_limited: true, oldest: None }
    }

    #[test]
    fn a_time_out_closes_the_window_and_answers_open_it_again() {
        let mut pace = Pace::new(Window::Fixed(3), Time::from_millis(200));
        assert_eq!((pace.open(), pace.is_slowed(), pace.settle), (3, false, Time::from_micros(12_500)));
        pace.timed_out();
        assert_eq!((pace.open(), pace.is_slowed()), (1, true));
        let opened: Vec<u32> = (0..100)
            .map(|_| {
                pace.answered(Time::ZERO, answer());
                pace.open()
            })
            .collect();
        assert_eq!((opened[30], opened[31], opened[62], opened[63], opened[99]), (1, 2, 2, 3, 3));
        assert!(!pace.is_slowed());
    }

    #[test]
    fn one_at_a_time_is_always_possible() {
        let mut pace = Pace::new(Window::Fixed(1), Time::ZERO);
        pace.timed_out();
        pace.answered(Time::ZERO, answer());
        assert_eq!((pace.open(), pace.is_slowed()), (1, false));
    }
}
