//! Events of a laboratory from its processes: the hub reports for all of them, or each for itself where no hub
//! answers.
//!
//! ```text
//!   control/hub ──all events──▶ remembered, Follower ──▶ verbs
//!   control/*   ──own events──▶      (without a hub)
//! ```

mod follow;
mod past;
mod talk;
mod told;
mod watch;

pub use follow::{Follower, say_silent, say_without_hub};
pub use past::{Teller, remembered};
pub use told::Told;
