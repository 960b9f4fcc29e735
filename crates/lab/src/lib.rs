//! A running laboratory as a library: started, watched, recabled, and taken down. Values come back, and a front end
//! ([`weft_bundle::folder::front`]) hears of progress; nothing here prints, and nothing knows a command line.
//!
//! ```text
//!   start ──▶ launch ──▶ hub ──▶ processes (weft-managers)
//!   spread: the same on several hosts, by ssh        deploy: files for Compose and Kubernetes
//!   events, agents, managers, survey ◀── what runs ──▶ recabling, restart, teardown
//!   gateway: a laboratory that runs elsewhere, by its hub's door
//! ```

pub mod agents;
pub mod check;
pub mod deploy;
pub mod events;
pub mod faults;
pub mod frozen;
pub mod gateway;
pub mod hub;
pub mod hub_status;
pub mod launch;
pub mod looks;
pub mod managers;
pub mod orphans;
pub mod pieces;
pub mod process;
pub mod progress;
pub mod recabling;
pub mod remote;
pub mod restart;
pub mod scrape;
pub mod seats;
pub mod signals;
pub mod slots;
pub mod spread;
pub mod start;
pub mod survey;
pub mod teardown;
pub mod view;
pub mod vms;
