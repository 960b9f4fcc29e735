//! One running fabric on this machine: its folder, its processes, its start and its end.

mod admission;
pub(crate) mod agents;
pub(crate) mod folder;
pub(crate) mod launch;
pub(crate) mod managers;
pub(crate) mod names;
pub(crate) mod plan;
mod ports;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod record;
mod reporters;
pub(crate) mod restart;
pub(crate) mod scrape;
pub(crate) mod signals;
mod silence;
pub(crate) mod start;
pub(crate) mod teardown;

pub(crate) use folder::{Base, LabFolder, Place};
pub(crate) use record::LabRecord;
