//! One running fabric on this machine: its folder, its processes, its start and its end.

pub(crate) mod agents;
pub(crate) mod events;
pub(crate) mod frozen;
pub(crate) mod gateway;
pub(crate) mod hub_status;
pub(crate) mod launch;
pub(crate) mod looks;
pub(crate) mod managers;
pub(crate) mod orphans;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod recabling;
pub(crate) mod remote;
pub(crate) mod restart;
pub(crate) mod scrape;
pub(crate) mod signals;
pub(crate) mod slots;
pub(crate) mod spread;
pub(crate) mod start;
pub(crate) mod teardown;
