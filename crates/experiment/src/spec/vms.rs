//! Virtual machines and their migrations.

use serde::Serialize;
use weft_host::stack::Guids;
use weft_machine::Time;
use weft_vm::{Hypervisor, Route};

/// How the ends of flows name virtual machines.
pub(crate) const VM_PREFIX: &str = "vm:";

/// Virtualised adapters, and the virtual machines on them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VmsSpec {
    /// Virtual functions of each host.
    pub vfs: u16,
    /// Whether a virtual function has a LID only while a machine is in it (dynamic), or always (prepopulated).
    pub is_dynamic: bool,
    /// Whether the LID is the function's and stays there, so that a machine that moves has another one.
    pub lids_stay: bool,
    /// Whether a machine keeps its GUID.
    pub guids: Guids,
    /// Whether the subnet manager notifies subscribers of such a LID.
    pub signal_moves: bool,
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
    /// What its hypervisor copies while it runs; none where that is no traffic.
    pub memory: Option<Memory>,
}

/// The memory of a virtual machine, as traffic between physical functions during pre-copy (paper 004, line 2336).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Its size, in units of 2^20 bytes.
    pub mib: u32,
    /// What the machine writes meanwhile, in Mb/s, and is copied again.
    pub dirty_mbps: u32,
}

impl Memory {
    /// The rate of a copy that ends with pre-copy, in Gb/s of memory: all of it once, and once more what has been written.
    pub fn rate_gbps(&self, pre_copy: Time) -> f64 {
        let (all, seconds) = (f64::from(self.mib) * f64::from(1 << 20) * 8.0 / 1e9, pre_copy.as_secs_f64());
        all / seconds + f64::from(self.dirty_mbps) / 1000.0
    }
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
