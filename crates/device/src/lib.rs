//! A switch and an HCA as state machines.

mod config;
mod counters;
mod device;
mod event;
mod input;
mod output;
mod snapshot;

pub use config::{DeviceConfig, DeviceOptions, PortConfig};
pub use counters::Counters;
pub use device::Device;
pub use event::{DropReason, Event, RefusalReason};
pub use input::{ClientId, Input};
pub use output::Output;
pub use snapshot::{PortSnapshot, Snapshot, Statistics};
