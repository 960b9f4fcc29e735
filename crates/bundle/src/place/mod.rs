//! Places: which devices share an agent, which host an agent runs on, and which ports it gets there.

pub mod block;
pub(crate) mod bunches;
pub mod groups;
pub mod hosts;
pub mod ports;
