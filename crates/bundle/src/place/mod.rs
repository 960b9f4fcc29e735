//! Places: which devices share an agent, which host an agent runs on, and blocks of ports there.

pub mod block;
pub(crate) mod bunches;
pub mod groups;
pub mod hosts;
