//! The steps of sweeps, heavy and light. Each owns what it works on and hands it on; the manager goes from one to the next.

mod activate;
mod audit;
mod congestion;
mod discover;
mod functions;
mod history;
mod light;
mod partitions;
mod program;
mod read_tables;
mod reading;
mod route;
mod settings;

pub use history::{Computation, Past, Planned};
pub use route::NoEngine;

pub(crate) use activate::{Activate, route_to};
pub(crate) use audit::Audit;
pub(crate) use congestion::Regulate;
pub(crate) use discover::{Cabling, Discover, Settings};
pub(crate) use functions::Functions;
pub(crate) use history::History;
pub(crate) use light::Check;
pub(crate) use partitions::{
    blocks, changes as key_changes, enforce_otherwise, host_behind, is_end_at, is_unread, left_over,
    ports as key_ports, room, table,
};
pub(crate) use program::Program;
pub(crate) use read_tables::ReadTables;
pub(crate) use route::{Standing, adopt_late_lids, adopt_lids, give_lids, management_lane, route};
