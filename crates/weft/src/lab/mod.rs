//! One running fabric on this machine: its folder, its processes, its start and its end.

pub(crate) mod agents;
pub(crate) mod bundle;
pub(crate) mod events;
pub(crate) mod folder;
pub(crate) mod groups;
pub(crate) mod hosts;
pub(crate) mod hub;
pub(crate) mod hub_status;
pub(crate) mod issue;
pub(crate) mod keys;
pub(crate) mod launch;
pub(crate) mod managers;
pub(crate) mod names;
mod papers;
mod parts;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod remote;
pub(crate) mod restart;
pub(crate) mod run;
pub(crate) mod scrape;
pub(crate) mod signals;
mod silence;
pub(crate) mod slots;
pub(crate) mod start;
pub(crate) mod teardown;
pub(crate) mod vfs;
pub(crate) mod wanted;

pub(crate) use bundle::Bundle;
pub(crate) use folder::{Base, LabFile, LabFolder};
pub(crate) use papers::Papers;
pub(crate) use record::LabRecord;
