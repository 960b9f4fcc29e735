//! Schedules of faults, the same for a laboratory that runs and for one in virtual time: what goes wrong, when, and for how long.
//!
//! ```text
//!   fabric, seed ──▶ draw ──▶ Vec<Planned> ──▶ steps ──▶ whoever carries them out and judges what is left
//!                                  ▲                                 │
//!                                  └───────────── shrink ◀── fails ──┘
//! ```
//!
//! Every fault of a drawn schedule has an end, so that in the end the fabric is whole and can be judged as such.
//!
//! ```
//! use weft_chaos::{Scope, draw, shrink, steps};
//! use weft_fault::Word;
//! use weft_topology::generate::{GenerateOptions, ring};
//!
//! let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
//! let schedule = draw(&fabric, 7, &Scope::default());
//! assert_eq!(schedule, draw(&fabric, 7, &Scope::default()));
//! assert_eq!(steps(&schedule).len(), 2 * schedule.len());
//!
//! // A bug that any killed process brings out.
//! let mut fails = |list: &[_]| list.iter().any(|planned: &weft_chaos::Planned<_, _>| planned.fault.word() == Word::Kill);
//! if fails(&schedule) {
//!     assert_eq!(shrink(schedule, 1000, fails).0.len(), 1);
//! }
//! ```

mod draw;
mod names;
mod planned;
mod shrink;

pub use draw::{Laboratory, Scope, draw};
pub use names::{BadName, named, resolved};
pub use planned::{Planned, ends_at, steps};
pub use shrink::shrink;
