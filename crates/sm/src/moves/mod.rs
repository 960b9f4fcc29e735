//! Moves of virtual machines' LIDs: the manager is asked (`VmMove`), plans, proves, and writes blocks in rounds.
//!
//! ```text
//!  VmMove ─▶ desk: epoch, turn ─▶ wish: whose LID, from where to where ─▶ plan, proved ─▶ carry: rounds of LFT blocks ─▶ answer
//!                                     └─▶ refused in words                                   └─▶ plug: is it there? ─▶ ports Active
//! ```
//!
//! A move waits for heavy sweeps and goes before light ones. Several go together where [`weft_routing::moves`] can prove them
//! together. `docs/decisions/0019-moves.md` has the reasons.

mod answer;
mod carry;
mod desk;
mod late;
mod place;
mod plug;
mod turns;
mod wish;

pub(crate) use answer::{Waits, done, held_for, how_of, micros, not_at, planned, silent, writes};
pub(crate) use carry::Carry;
pub(crate) use desk::{Asked, Desk, Want};
pub(crate) use late::{Due, Late};
pub(crate) use plug::Plug;
pub(crate) use turns::{AGAIN, Turn};
pub(crate) use wish::{Places, Wish, physical};
