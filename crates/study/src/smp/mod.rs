//! Cost of an SMP: measurements on live agents, fitted to the equations of the vSwitch paper of 2015 (section VI), and
//! figure 7 of the one of 2017 beside it.
//!
//! ```text
//!   Measured (by weft bench smp --lft) ──▶ Costs: k and r ──▶ report
//! ```
//!
//! The equations: a full reconfiguration takes `PCt + n·m·(k + r)` (1 to 3), one by a vSwitch's method `n'·m'·(k + r)` (4), and by
//! LIDs `n'·m'·k` (5). `k` is the time of an SMP to a switch and back, `r` what a directed route adds; nothing is pipelined.

mod costs;
mod measured;
mod report;

pub use costs::Costs;
pub use measured::{Burst, Kind, Measured, PAPER_CHIP_US, Route, SWITCHES, Series};
pub use report::Report;
