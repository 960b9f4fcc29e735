//! The contract between machines and drivers.
//!
//! A **machine** is a state machine without I/O, clock, threads or randomness of its own: what it leaves to chance
//! comes from a seed ([`Random`]). A **driver** owns machines and gives them all of that: `weft-agent` in wall-clock time
//! over QUIC, `weft-sim` in virtual time.
//!
//! **The contract: feed one input, then drain outputs until `None`, then look at the timeout.**
//!
//! ```text
//!             handle_input(now, input)
//!   driver ─────────────────────────────▶ machine
//!          ◀───────────────────────────── poll_output() until None
//!          ◀───────────────────────────── poll_timeout(): when to call handle_timeout next
//!                                         next_timer(): the same, and what for
//! ```
//!
//! [`Machine::next_timer`] is for people and for records of what happened: drivers wake machines by
//! [`Machine::poll_timeout`], which costs less where there are packets.
//!
//! ```
//! use weft_machine::{Machine, Time, Timer};
//!
//! /// Says "tick" one second after it was last poked.
//! #[derive(Default)]
//! struct Echo { due: Option<Time>, said: Option<&'static str> }
//!
//! impl Machine for Echo {
//!     type Input = ();
//!     type Output = &'static str;
//!     type Reason = &'static str;
//!     fn handle_input(&mut self, now: Time, (): ()) { self.due = Some(now + Time::from_secs(1)); }
//!     fn handle_timeout(&mut self, now: Time) {
//!         if self.due.is_some_and(|due| due <= now) { self.due = None; self.said = Some("tick"); }
//!     }
//!     fn poll_output(&mut self) -> Option<&'static str> { self.said.take() }
//!     fn next_timer(&self) -> Option<Timer<&'static str>> { Timer::new(self.due, "tick") }
//! }
//!
//! let mut echo = Echo::default();
//! echo.handle_input(Time::ZERO, ());
//! assert_eq!(echo.next_timer(), Some(Timer { at: Time::from_secs(1), reason: "tick" }));
//! echo.handle_timeout(Time::from_millis(10)); // early calls are harmless
//! assert_eq!(echo.poll_output(), None);
//! echo.handle_timeout(Time::from_secs(1));
//! assert_eq!(echo.poll_output(), Some("tick"));
//! ```

use std::fmt;

mod random;
mod time;
mod timer;

pub use random::Random;
pub use time::Time;
pub use timer::Timer;

/// A state machine that a driver feeds, drains and wakes.
pub trait Machine {
    /// What happens to the machine.
    type Input;
    /// What the machine wants done.
    type Output;
    /// What the machine waits for; shown, it says so in a few words.
    type Reason: Copy + PartialEq + fmt::Debug + fmt::Display;

    /// Takes one input. Never blocks, never fails: what is wrong with an input becomes an output.
    fn handle_input(&mut self, now: Time, input: Self::Input);

    /// Lets time pass. Calls before [`Machine::poll_timeout`]'s moment are harmless.
    fn handle_timeout(&mut self, now: Time);

    /// The oldest output not yet taken.
    fn poll_output(&mut self) -> Option<Self::Output>;

    /// What the machine next wants [`Machine::handle_timeout`] for, and when; `None` while it waits for inputs alone. Looked
    /// at when the machine is drained.
    fn next_timer(&self) -> Option<Timer<Self::Reason>>;

    /// The moment of [`Machine::next_timer`]. A machine that is asked after every packet finds it in a cheaper way.
    fn poll_timeout(&self) -> Option<Time> {
        self.next_timer().map(|timer| timer.at)
    }
}
