//! What the processes of a laboratory hold: descriptors and memory, from /proc, and processes that are no one's.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::lab::LabFile;
use crate::lab::names::HUB;
use crate::lab::process::Holder;
use crate::verbs::Lab;

/// Descriptors that a process may have more than at first: connections that come and go.
const DESCRIPTORS_MORE: usize = 32;
/// Memory that a process may have more than at first, in KiB: 32 MiB, and half of what it had.
const MEMORY_MORE_KIB: u64 = 32 * 1024;

/// What one process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    pid: i32,
    descriptors: usize,
    memory_kib: u64,
}

/// What all processes hold, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Holdings(BTreeMap<String, Held>);

impl Holdings {
    /// What the processes hold now. One that does not run holds nothing.
    pub(super) fn of(lab: &Lab) -> anyhow::Result<Self> {
        let mut all = BTreeMap::new();
        for (name, lock) in locks(lab) {
            if let Some(holder) = Holder::of(&lock)? {
                let pid = holder.pid.as_raw_nonzero().get();
                let (descriptors, memory_kib) = (descriptors(pid), memory_kib(pid));
                all.insert(name, Held { pid, descriptors, memory_kib });
            }
        }
        Ok(Self(all))
    }

    /// A process that was there at first and is not now.
    pub(super) fn missing(&self, first: &Self) -> Option<String> {
        first.0.keys().find(|name| !self.0.contains_key(*name)).cloned()
    }

    /// What is too much, compared with the beginning. A process that began since is compared too: it had no less to do before.
    pub(super) fn leak(&self, first: &Self) -> Option<String> {
        self.0.iter().find_map(|(name, now)| {
            let before = first.0.get(name)?;
            if now.descriptors > before.descriptors + DESCRIPTORS_MORE {
                let (first, now) = (before.descriptors, now.descriptors);
                return Some(format!("process {name} has {now} descriptors open, {first} at first"));
            }
            let most = before.memory_kib + before.memory_kib / 2 + MEMORY_MORE_KIB;
            (now.memory_kib > most).then(|| {
                let (first, now) = (before.memory_kib, now.memory_kib);
                format!("process {name} has {now} KiB of memory, {first} at first")
            })
        })
    }

    /// A process that was started for this laboratory and holds none of its locks.
    pub(super) fn stray(&self, lab: &Lab) -> Option<String> {
        let folder = lab.folder.path().as_os_str().as_encoded_bytes().to_owned();
        let own = fs::read_link("/proc/self/exe").ok()?;
        let mut others = fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let known = self.0.values().any(|held| held.pid == pid);
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let is_ours = line.split(|byte| *byte == 0).any(|argument| argument == folder)
                && fs::read_link(format!("/proc/{pid}/exe")).ok()?.parent() == own.parent();
            (is_ours && !known && i64::from(pid) != i64::from(std::process::id())).then_some((pid, line))
        });
        let (pid, line) = others.next()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        Some(format!("process {pid} holds no lock of the laboratory: {}", weft_wire::Printable(line.trim())))
    }
}

/// The locks of all processes that a laboratory has, and of its hub.
fn locks(lab: &Lab) -> Vec<(String, PathBuf)> {
    let locks = lab.folder.locks();
    let hub = (HUB.to_owned(), lab.folder.place(LabFile::HubLock));
    lab.record.processes().map(|name| (name.clone(), locks.join(name))).chain([hub]).collect()
}

fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn memory_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
