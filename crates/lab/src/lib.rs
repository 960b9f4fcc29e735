//! A running laboratory as a library: started, watched, recabled, and taken down. Values come back, and a front end
//! ([`weft_bundle::folder::front`]) hears of progress; nothing here prints, and nothing knows a command line.
//!
//! ```text
//!   start ──▶ launch ──▶ hub ──▶ processes (weft-managers)
//!   site: where these run — this machine, hosts by ssh, a hub's door
//!   events, agents, managers, survey ◀── what runs ──▶ faults, recabling, restart, teardown
//! ```

pub mod agents;
pub mod check;
pub mod child;
pub mod events;
pub mod faults;
pub mod flows;
pub mod hub;
pub mod launch;
pub mod loads;
pub mod looks;
pub mod managers;
pub mod orphans;
pub mod owned;
pub mod paints;
pub mod partitions;
pub mod pieces;
pub mod process;
pub mod progress;
pub mod recabling;
pub mod restart;
pub mod scene;
pub mod signals;
pub mod site;
pub mod start;
pub mod survey;
pub mod teardown;
pub mod trace;
pub mod view;
pub mod vms;
pub mod watch;
