//! Agents of the same machine as the kernel knows them: one that ends is known at once, and without asking (a pidfd), one
//! that runs is known by its own clock. A peer may be watched so where it shares this process's boot, PID namespace
//! and network namespace; in other places its pid means another process, or a path to it may break while it lives.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::rc::{Rc, Weak};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getcpuclockid};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::{AbortHandle, spawn_local};

use crate::watch::watch;

/// Where a pid means the same process to all, and an address the same socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Space {
    /// The kernel's boot id.
    boot: String,
    pid_namespace: u64,
    network_namespace: u64,
}

/// A process that no other has been or will be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    space: Space,
    pid: u32,
    /// In the kernel's ticks since boot: pids are given again.
    started: u64,
}

impl ProcessId {
    /// This process; none where the kernel does not tell.
    pub(crate) fn own() -> Option<Self> {
        let namespace = |name: &str| fs::metadata(format!("/proc/self/ns/{name}")).map(|found| found.ino());
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let space = Space {
            boot: boot.trim().to_owned(),
            pid_namespace: namespace("pid").ok()?,
            network_namespace: namespace("net").ok()?,
        };
        let pid = std::process::id();
        Some(Self { space, pid, started: started(pid)? })
    }

    /// The clock that tells how long it has run.
    fn clock(&self) -> io::Result<ClockId> {
        let pid = i32::try_from(self.pid).map_err(io::Error::other)?;
        Ok(clock_getcpuclockid(nix::unistd::Pid::from_raw(pid))?)
    }
}

/// A field of what the kernel tells of a process, counted as proc_pid_stat(5) does, from 3 on. The name, field 2, may hold
/// anything.
fn stat(pid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(field - 3).map(str::to_owned)
}

/// When a process began.
fn started(pid: u32) -> Option<u64> {
    stat(pid, 22)?.parse().ok()
}

/// Whether the first thread of a process, which is an agent's own, would run if it had a core: it is not stopped, and waits
/// for nothing.
fn waits_for_a_core(pid: u32) -> bool {
    stat(pid, 3).as_deref() == Some("R")
}

/// Another process of this machine, for as long as a link leads to it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    clock: ClockId,
    /// How long it had run at the last look.
    ran: Cell<Option<TimeSpec>>,
    /// Looks in a row at which it had not run.
    stood: Cell<u32>,
    end: AbortHandle,
}

impl Process {
    /// Looks whether it has run since the last look. One that has not, `patience` times in a row, is forgiven if it waits
    /// for a core; gives whether it was.
    fn look(&self, patience: u32) -> bool {
        let ran = self.clock.now().ok();
        let same = self.ran.replace(ran) == ran;
        self.stood.set(if same { self.stood.get() + 1 } else { 0 });
        let forgiven = self.stood.get() >= patience && waits_for_a_core(self.id.pid);
        if forgiven {
            self.stood.set(0);
        }
        forgiven
    }

    /// Looks in a row at which it had not run.
    pub(crate) fn stood(&self) -> u32 {
        self.stood.get()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end.abort();
    }
}

/// The processes that an agent's links lead to.
#[derive(Debug)]
pub(crate) struct Processes {
    own: Option<ProcessId>,
    watched: RefCell<BTreeMap<ProcessId, Weak<Process>>>,
    /// Times one was found to wait for a core for the whole link timeout.
    starved: Cell<u64>,
}

impl Processes {
    pub(crate) fn new() -> Self {
        Self { own: ProcessId::own(), watched: RefCell::default(), starved: Cell::new(0) }
    }

    /// What a hello says of this process.
    pub(crate) fn own(&self) -> Option<&ProcessId> {
        self.own.as_ref()
    }

    /// How many are watched.
    pub(crate) fn count(&self) -> usize {
        self.watched.borrow().values().filter(|process| process.strong_count() > 0).count()
    }

    /// Watches the process that a peer says it is, and says when it has ended; none where the kernel cannot tell of it.
    pub(crate) fn watch(
        &self,
        id: Option<&ProcessId>,
        ended: impl FnOnce(&ProcessId) + 'static,
    ) -> Option<Rc<Process>> {
        let (own, id) = (self.own.as_ref()?, id?);
        // Two agents in one process would end together.
        if own.space != id.space || own.pid == id.pid {
            return None;
        }
        if let Some(process) = self.watched.borrow().get(id).and_then(Weak::upgrade) {
            return Some(process);
        }
        let pidfd = open(id).ok()?;
        let clock = id.clock().ok()?;
        let ran = Cell::new(Some(clock.now().ok()?));
        let task = spawn_local(tell_end(id.clone(), pidfd, ended));
        let process =
            Rc::new(Process { id: id.clone(), clock, ran, stood: Cell::new(0), end: task.abort_handle() });
        self.watched.borrow_mut().insert(id.clone(), Rc::downgrade(&process));
        Some(process)
    }

    /// Times a process had not run for the whole link timeout because it waited for a core.
    pub(crate) fn starved(&self) -> u64 {
        self.starved.get()
    }

    /// Looks whether each has run since the last look, and forgets those to which no link leads any more. One that has not
    /// run at `patience` looks is to be taken for dead, unless it waits for a core: on a machine so busy, taking its links
    /// down and shaking hands again would make it busier.
    pub(crate) fn look(&self, patience: u32) {
        self.watched.borrow_mut().retain(|_, process| {
            process.upgrade().is_some_and(|process| {
                self.starved.set(self.starved.get() + u64::from(process.look(patience)));
                true
            })
        });
    }
}

/// The descriptor first, then the proof that its pid is still the peer's: so it was when the descriptor was made.
fn open(id: &ProcessId) -> io::Result<AsyncFd<OwnedFd>> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let pid = i32::try_from(id.pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    if started(id.pid) != Some(id.started) {
        return Err(gone());
    }
    watch(pidfd, Interest::READABLE)
}

/// Says that a process has ended.
async fn tell_end(id: ProcessId, pidfd: AsyncFd<OwnedFd>, ended: impl FnOnce(&ProcessId)) {
    if pidfd.readable().await.is_err() {
        return;
    }
    // An agent that ended in order has said so, and its words lie in the socket: they are read first.
    for _ in 0..TURNS_FOR_LAST_WORDS {
        tokio::task::yield_now().await;
    }
    ended(&id);
}

/// Turns of the runtime's queue in which what lies in the socket reaches its connection's task.
const TURNS_FOR_LAST_WORDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let own = ProcessId::own().unwrap();
        assert_eq!(Some(own.clone()), ProcessId::own());
        assert!(own.clock().unwrap().now().is_ok() && own.started > 0);
        assert_eq!(started(u32::MAX), None);
    }

    #[test]
    fn one_that_waits_for_a_core_is_told_from_one_that_is_stopped() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let await_state = |wanted: &str| {
            let deadline = std::time::Instant::now() + PATIENCE;
            while stat(busy.id(), 3).as_deref() != Some(wanted) {
                assert!(std::time::Instant::now() < deadline, "it is never {wanted}");
                std::thread::yield_now();
            }
        };
        await_state("R");
        assert!(waits_for_a_core(busy.id()), "it waits for nothing else");
        let pid = Pid::from_raw(busy.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        await_state("T");
        assert!(!waits_for_a_core(busy.id()));
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(!waits_for_a_core(busy.id()), "it is no more");
    }

    #[tokio::test]
    async fn a_pid_that_is_anothers_by_now_is_not_watched() {
        let own = ProcessId::own().unwrap();
        assert!(open(&own).is_ok());
        let error = open(&ProcessId { started: own.started + 1, ..own.clone() }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(open(&ProcessId { pid: u32::MAX, ..own }).is_err());
    }
}
