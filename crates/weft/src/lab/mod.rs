//! One running fabric on this machine: its folder, its processes, its start and its end.

pub(crate) mod folder;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod signals;
pub(crate) mod teardown;

pub(crate) use folder::{Base, LabFolder, Place};
pub(crate) use record::{AgentRecord, DeviceRecord, LabRecord};
