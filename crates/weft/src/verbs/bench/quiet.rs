//! Whether the machine was quiet while something was measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_umad::lock;

use crate::failure::Failure;
use crate::lab::LabFolder;

/// The share of one core that others may use while a number is taken.
pub(super) const OTHERS_MAX: f64 = 0.05;

/// What was used when the measurement began.
pub(super) struct Watch<'a> {
    lab: &'a LabFolder,
    began: Instant,
    all: Duration,
    own: BTreeMap<i32, Duration>,
}

impl<'a> Watch<'a> {
    /// From now on.
    pub(super) fn start(lab: &'a LabFolder) -> anyhow::Result<Self> {
        Ok(Self { lab, began: Instant::now(), all: all_used()?, own: own_used(lab)? })
    }

    /// How much of one core all processes but this one, the laboratory's and those that used `gone` used.
    pub(super) fn others_used(&self, gone: Duration) -> anyhow::Result<f64> {
        let took = self.began.elapsed();
        let all = all_used()?.saturating_sub(self.all);
        let own: Duration = own_used(self.lab)?
            .into_iter()
            .map(|(pid, used)| used.saturating_sub(self.own.get(&pid).copied().unwrap_or_default()))
            .sum();
        Ok(all.saturating_sub(own + gone).as_secs_f64() / took.as_secs_f64())
    }
}

/// What all processes and other machines used of all cores since boot. Interrupts are left out: the kernel counts
/// those of the measured packets there too.
pub(super) fn all_used() -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let line = text.lines().next().context("/proc/stat is empty")?;
    let fields: Vec<u64> = line.split_whitespace().skip(1).map(|word| word.parse().unwrap_or(0)).collect();
    // user, nice and system; steal is what a hypervisor gave to others. Guests are counted in user already.
    let used = [0, 1, 2, 7].iter().map(|at| fields.get(*at).copied().unwrap_or(0)).sum();
    Ok(ticks(used))
}

/// This process and the laboratory's.
fn own_used(lab: &LabFolder) -> anyhow::Result<BTreeMap<i32, Duration>> {
    let mut used = lab_used(lab)?;
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    used.insert(own, process_used(own).unwrap_or_default());
    Ok(used)
}

/// The laboratory's processes.
pub(super) fn lab_used(lab: &LabFolder) -> anyhow::Result<BTreeMap<i32, Duration>> {
    let mut used = BTreeMap::new();
    let locks = std::fs::read_dir(lab.locks()).context("cannot list the laboratory's processes")?;
    for entry in locks.flatten() {
        let holder = lock::holder(&entry.path()).ok().flatten();
        if let Some(pid) = holder.map(|pid| pid.as_raw_nonzero().get()) {
            used.insert(pid, process_used(pid).unwrap_or_default());
        }
    }
    Ok(used)
}

/// This process and the children that it has seen end.
pub(super) fn own_and_children_used() -> Duration {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    fields_of(own, &[11, 12, 13, 14]).unwrap_or_default()
}

/// What a process and its threads used. `None` when it is gone.
pub(super) fn process_used(pid: i32) -> Option<Duration> {
    fields_of(pid, &[11, 12])
}

/// The sum of some of the clock-tick fields of a process, counted from behind its name.
fn fields_of(pid: i32, fields: &[usize]) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, even spaces and parentheses.
    let rest: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |at: &usize| rest.get(*at)?.parse::<u64>().ok();
    fields.iter().map(field).sum::<Option<u64>>().map(ticks)
}

/// Refuses to quote numbers that were taken beside something else.
pub(super) fn judge(others_used: f64) -> Result<(), Failure> {
    if others_used <= OTHERS_MAX {
        return Ok(());
    }
    Err(Failure::new(format!(
        "something else used {:.0} % of a core meanwhile, more than {:.0} %: no number is quoted",
        others_used * 100.0,
        OTHERS_MAX * 100.0
    ))
    .hint("stop other programs, or wait until the laboratory is idle, and measure again"))
}

fn ticks(count: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / per_second.max(1)))
}

/// The machine in one line.
pub(super) fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{}, {cores} cores, Linux {}", model.unwrap_or("unknown processor"), kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_quoted_on_a_quiet_machine_alone() {
        assert!(judge(0.0).is_ok() && judge(OTHERS_MAX).is_ok());
        let refused = judge(0.44).unwrap_err().to_string();
        assert!(refused.contains("44 % of a core"), "{refused}");
    }

    #[test]
    fn a_process_that_works_has_used_something() {
        let before = own_and_children_used();
        while own_and_children_used() == before {
            std::hint::spin_loop();
        }
        assert_eq!(process_used(-1), None);
    }
}
