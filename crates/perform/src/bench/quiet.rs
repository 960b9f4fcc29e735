//! Quiet of the machine during a measurement.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;

use super::placement::processes;

/// The share of one core that others may use while a number is taken.
const OTHERS_MAX: f64 = 0.05;

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
        Ok(share_of_others(all, own + gone, took))
    }
}

/// What the launcher, which has ended by then, may have used beyond the clock ticks that the kernel tells of it.
const ROUNDING: Duration = Duration::from_millis(30);

/// The same where this process starts others, and perhaps the laboratory itself.
pub(super) struct Household {
    began: Instant,
    all: Duration,
    own: Duration,
    lab: BTreeMap<i32, Duration>,
}

impl Household {
    /// From now on. `lab`: the laboratory that runs already.
    pub(super) fn watch(lab: Option<&LabFolder>) -> anyhow::Result<Self> {
        let lab = lab.map(lab_used).transpose()?.unwrap_or_default();
        Ok(Self { began: Instant::now(), all: all_used()?, own: own_and_children_used(), lab })
    }

    /// How much of one core all but this process, the children that it has seen end and the laboratory used.
    pub(super) fn others_used(&self, lab: &LabFolder) -> anyhow::Result<f64> {
        Ok(self.used(lab)?.others(ROUNDING))
    }

    /// What was used since then.
    pub(super) fn used(&self, lab: &LabFolder) -> anyhow::Result<Used> {
        let took = self.began.elapsed();
        let before = |pid: i32| self.lab.get(&pid).copied().unwrap_or_default();
        let lab: Duration =
            lab_used(lab)?.into_iter().map(|(pid, used)| used.saturating_sub(before(pid))).sum();
        let all = all_used()?.saturating_sub(self.all);
        let own = own_and_children_used().saturating_sub(self.own);
        Ok(Used { took, all, own, lab })
    }
}

/// Processor time since a household is watched.
pub(super) struct Used {
    pub(super) took: Duration,
    all: Duration,
    own: Duration,
    pub(super) lab: Duration,
}

impl Used {
    /// The share of a core that others used, if `rounding` more was the household's.
    pub(super) fn others(&self, rounding: Duration) -> f64 {
        share_of_others(self.all, self.lab + self.own + rounding, self.took)
    }
}

/// What is left of `all` without `own`, as a share of the time that it took.
fn share_of_others(all: Duration, own: Duration, took: Duration) -> f64 {
    // The kernel counts in ticks: it may report more of its own use than of all use.
    let others = all.saturating_sub(own).as_secs_f64();
    if took.is_zero() { 0.0 } else { others / took.as_secs_f64() }
}

/// Whether a number taken while others used this share of a core may be quoted.
pub(super) fn judge(others_used: f64, allow_busy: bool) -> anyhow::Result<()> {
    if allow_busy || others_used <= OTHERS_MAX {
        return Ok(());
    }
    Err(Failure::new(format!(
        "something else used {:.0} % of a core meanwhile, more than {:.0} %: no number is quoted",
        others_used * 100.0,
        OTHERS_MAX * 100.0
    ))
    .hint("stop other programs, or wait until the laboratory is idle, and measure again"))
}

/// What all processes and other machines used of all cores since boot. Interrupts are left out: the kernel counts
/// those of the measured packets there too.
fn all_used() -> anyhow::Result<Duration> {
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
    // With the threads that have ended, as those of clients have by now.
    used.insert(own, fields_of(own, &[11, 12]).unwrap_or_default());
    Ok(used)
}

/// The laboratory's processes, and those that they have started: OpenSM holds no lock of its own.
fn lab_used(lab: &LabFolder) -> anyhow::Result<BTreeMap<i32, Duration>> {
    let pids = processes(lab)?.into_iter().map(|pid| pid.as_raw_nonzero().get());
    // The hub has started most of the others: each counts once.
    let all: BTreeSet<i32> = pids.flat_map(|pid| children(pid).into_iter().chain([pid])).collect();
    Ok(all.into_iter().map(|pid| (pid, process_used(pid).unwrap_or_default())).collect())
}

/// The processes that one has started, and that run.
fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// This process and the children that it has seen end.
fn own_and_children_used() -> Duration {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    fields_of(own, &[11, 12, 13, 14]).unwrap_or_default()
}

/// What a process and its threads used. `None` when it is gone.
///
/// In nanoseconds from the scheduler: in clock ticks, which are what `stat` has, hundreds of agents that each ran for
/// less than one would together seem to have used nothing.
pub(super) fn process_used(pid: i32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let used = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(used.sum()))
}

/// The sum of some of the clock-tick fields of a process, counted from behind its name.
fn fields_of(pid: i32, fields: &[usize]) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, even spaces and parentheses.
    let rest: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |at: &usize| rest.get(*at)?.parse::<u64>().ok();
    fields.iter().map(field).sum::<Option<u64>>().map(ticks)
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
    fn a_process_that_works_has_used_something() {
        let before = own_and_children_used();
        while own_and_children_used() == before {
            std::hint::spin_loop();
        }
        assert_eq!(process_used(-1), None);
    }

    #[test]
    fn a_process_has_its_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let pid = i32::try_from(child.id()).expect("a process id");
        let own = i32::try_from(std::process::id()).expect("a process id");
        let found = children(own);
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(found.contains(&pid), "{found:?}");
        assert!(!children(own).contains(&pid));
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn only_what_others_used_disturbs() {
        for (all, own, took, share) in [
            (1000, 1000, 1000, 0.0),
            (1500, 1000, 1000, 0.5),
            (3000, 1000, 1000, 2.0), // Two more cores were busy.
            (990, 1000, 1000, 0.0),  // The ticks of one were counted later.
            (0, 0, 0, 0.0),
        ] {
            let found = share_of_others(ms(all), ms(own), ms(took));
            assert!((found - share).abs() < 1e-9, "{all} {own} {took}: {found}");
        }
    }

    #[test]
    fn a_busy_machine_quotes_no_number() {
        assert!(judge(0.0, false).is_ok());
        assert!(judge(OTHERS_MAX, false).is_ok());
        let refused = judge(0.4, false).unwrap_err().to_string();
        assert_eq!(
            refused,
            "something else used 40 % of a core meanwhile, more than 5 %: no number is quoted"
        );
    }

    #[test]
    fn the_kernel_tells_what_is_used() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all_used().unwrap() > Duration::ZERO);
        assert!(process_used(own).is_some());
        assert_eq!(process_used(i32::MAX), None);
    }
}
