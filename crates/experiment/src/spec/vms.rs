//! Virtual machines and their migrations.

use serde::Serialize;
use weft_machine::Time;
use weft_vm::{Hypervisor, Route};

/// Virtualised adapters, and the virtual machines on them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VmsSpec {
    /// Virtual functions of each host.
    pub vfs: u16,
    /// Whether a virtual function has a LID only while a machine is in it (dynamic), or always (prepopulated).
    pub is_dynamic: bool,
    /// How migrations choose the switches that are written, and their order.
    pub route: Route,
    /// The machines, in the order of the file.
    pub vms: Vec<VmSpec>,
    /// Their migrations, in order of time.
    pub migrations: Vec<MigrateSpec>,
}

/// A virtual machine, which is there before the clock begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VmSpec {
    /// What it is called.
    pub name: String,
    /// Its first host, by name.
    pub host: String,
    /// What its flows offer together at most, in Gb/s of fabric time; each has an equal part. None is as much as they can.
    pub rate_gbps: Option<f64>,
    /// The times that its hypervisor takes.
    pub hypervisor: Hypervisor,
}

/// A migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrateSpec {
    /// When it is asked for.
    pub at: Time,
    /// The virtual machine.
    pub vm: String,
    /// The host that it goes to, by name.
    pub to: String,
    /// Whether it is shut down and booted there.
    pub cold: bool,
    /// Whether it keeps its virtual function while its memory is copied.
    pub late_detach: bool,
}

impl MigrateSpec {
    /// What tells it from all others of its file.
    pub(crate) fn name(&self) -> String {
        format!("{} at {} s", self.vm, self.at.as_secs_f64())
    }
}
