//! Processes that a program leaves behind: those of its process group, and those that inherited its environment.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// The variable by which descendants are known that left the group.
pub(crate) const RUN: &str = "WEFT_ENGINE_RUN";

/// A process that still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) pid: Pid,
    pub(crate) name: String,
}

/// All that still run, but for zombies. Nothing where there is no /proc.
pub(crate) fn left(group: Pid, run: &str) -> Vec<Left> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| belongs(Pid::from_raw(pid)?, group, run)).collect()
}

fn belongs(pid: Pid, group: Pid, run: &str) -> Option<Left> {
    let folder = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    let stat = std::fs::read(folder.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name may have brackets and spaces; after it come state, parent and group.
    let (begin, rest) = stat.rsplit_once(')')?;
    let name = begin.split_once('(')?.1.to_owned();
    let mut fields = rest.split_whitespace();
    let (state, found) = (fields.next()?, fields.nth(1)?.parse::<i32>().ok()?);
    if matches!(state, "Z" | "X") {
        return None;
    }
    let is_of_run = || {
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == run.as_bytes())
    };
    (Pid::from_raw(found) == Some(group) || is_of_run()).then_some(Left { pid, name })
}

/// Kills them; one that has ended meanwhile is gone all the same.
pub(crate) fn kill(left: &[Left]) {
    for Left { pid, .. } in left {
        let _ = kill_process(*pid, Signal::KILL);
    }
}

/// `1 process behind, which was killed: sleep (4711)`
pub(crate) fn in_words(left: &[Left]) -> String {
    const SHOWN_MAX: usize = 4;
    let shown =
        left.iter().take(SHOWN_MAX).map(|left| format!("{} ({})", left.name, left.pid.as_raw_nonzero()));
    let more = if left.len() > SHOWN_MAX { ", …" } else { "" };
    let names = shown.collect::<Vec<_>>().join(", ");
    let count = weft_wire::count_of(left.len(), "process");
    let were = if left.len() == 1 { "was" } else { "were" };
    format!("{count} behind, which {were} killed: {names}{more}")
}
