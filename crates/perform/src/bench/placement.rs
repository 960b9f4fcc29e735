//! Placement of processes on cores while round trips are compared.
//!
//! Left to itself the scheduler puts the two ends of one ping-pong on one core and those of another on two, and
//! on an idle virtual machine waking the other core costs more than all the rest. So everything that is compared
//! is placed alike: all on one core, then the far end on another.

use anyhow::Context;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_process::lock;

/// Where the far end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// With everything else.
    OneCore,
    /// On a core of its own.
    TwoCores,
}

impl Placement {
    /// What a reader sees.
    pub fn text(self) -> &'static str {
        match self {
            Self::OneCore => "all on one core",
            Self::TwoCores => "the far end on another core",
        }
    }
}

/// Processes held to cores, until dropped.
pub(super) struct Placed {
    before: Vec<(Option<Pid>, CpuSet)>,
}

impl Placed {
    /// Holds this thread and the laboratory's processes to one core, and those of `far` to that or another.
    /// `None` when there is no other core.
    pub(super) fn place(lab: &LabFolder, far: &[Pid], placement: Placement) -> anyhow::Result<Option<Self>> {
        let allowed = sched_getaffinity(None).context("cannot tell which cores there are")?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
        let near_core = *cores.last().context("there is no core")?;
        let far_core = match placement {
            Placement::OneCore => near_core,
            Placement::TwoCores if cores.len() > 1 => cores[0],
            Placement::TwoCores => return Ok(None),
        };
        let mut placed = Self { before: Vec::new() };
        placed.hold(None, near_core)?;
        for pid in processes(lab)?.into_iter().filter(|pid| !far.contains(pid)) {
            placed.hold(Some(pid), near_core)?;
        }
        for pid in far {
            placed.hold(Some(*pid), far_core)?;
        }
        Ok(Some(placed))
    }

    fn hold(&mut self, pid: Option<Pid>, core: usize) -> anyhow::Result<()> {
        let before = sched_getaffinity(pid).context("cannot tell where a process runs")?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(pid, &only).context("cannot hold a process to a core")?;
        self.before.push((pid, before));
        Ok(())
    }
}

/// Lets the laboratory's processes run on all cores that this one may use: a bench that was killed leaves them
/// held to one.
pub(super) fn free(lab: &LabFolder) -> anyhow::Result<()> {
    let allowed = sched_getaffinity(None).context("cannot tell which cores there are")?;
    for pid in processes(lab)? {
        // A process that has ended meanwhile needs no core.
        let _ = sched_setaffinity(Some(pid), &allowed);
    }
    Ok(())
}

/// The laboratory's processes, by the locks they hold.
pub(super) fn processes(lab: &LabFolder) -> anyhow::Result<Vec<Pid>> {
    let locks = std::fs::read_dir(lab.locks()).context("cannot list the laboratory's processes")?;
    Ok(locks.flatten().filter_map(|entry| lock::holder(&entry.path()).ok().flatten()).collect())
}

impl Drop for Placed {
    fn drop(&mut self) {
        for (pid, cores) in &self.before {
            // A process that has ended meanwhile needs no core.
            let _ = sched_setaffinity(*pid, cores);
        }
    }
}
