//! A switch and an HCA as state machines.

mod attach;
mod config;
mod counters;
mod device;
mod event;
mod gmp;
mod input;
mod link_state;
mod output;
mod pma;
mod port;
mod sma;
mod smi;
mod smp;
mod snapshot;
mod switch;
#[cfg(test)]
mod testing;
mod trap;
mod vl15;

pub use config::{DeviceConfig, DeviceOptions, PortConfig};
pub use counters::Counters;
pub use device::Device;
pub use event::{DropReason, Event, RefusalReason};
pub use input::{ClientId, Input};
pub use output::Output;
pub use snapshot::{PortSnapshot, Snapshot, Statistics};
