//! Starting processes of a laboratory, and ending those that hold its locks.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
};
use weft_umad::lock;

/// Runs this program again with a hidden verb, its standard error appended to a log file.
pub(crate) fn spawn(verb: &str, config: &Path, launch: &Path, log: &Path) -> anyhow::Result<Child> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let stderr = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let arguments: [&OsStr; 6] = [
        verb.as_ref(),
        "--detached".as_ref(),
        "--launch".as_ref(),
        launch.as_ref(),
        "--config".as_ref(),
        config.as_ref(),
    ];
    Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Lets this process open as many files as it may: a large laboratory needs a descriptor or two per agent.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Best effort: where it fails, opening a file fails later with the system's own words.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A process that holds a lock of the laboratory, pinned so that its number cannot come to mean another.
#[derive(Debug)]
pub(crate) struct Holder {
    /// Its number, for display.
    pub(crate) pid: Pid,
    lock: PathBuf,
    pidfd: OwnedFd,
}

impl Holder {
    /// The holder of a lock; `None` when nobody holds it.
    ///
    /// The lock is asked again after the process was pinned: had it ended between, the number could be another's.
    pub(crate) fn of(lock: &Path) -> anyhow::Result<Option<Self>> {
        let ask = || lock::holder(lock).with_context(|| format!("cannot ask who locks {}", lock.display()));
        let Some(pid) = ask()? else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            opened => opened.with_context(|| format!("cannot watch process {}", pid.as_raw_nonzero()))?,
        };
        let same = ask()? == Some(pid);
        Ok(same.then(|| Self { pid, lock: lock.to_owned(), pidfd }))
    }

    /// Sends a signal; to a process that has ended already it is no error.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| {
                format!("cannot signal process {} ({})", self.pid.as_raw_nonzero(), self.lock.display())
            }),
        }
    }
}

/// Waits until all have ended, at most `patience`; returns those that have not.
pub(crate) fn wait_for_end(mut holders: Vec<Holder>, patience: Duration) -> anyhow::Result<Vec<Holder>> {
    let deadline = Instant::now() + patience;
    while !holders.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let ended: Vec<bool> = {
            let mut fds: Vec<PollFd<'_>> =
                holders.iter().map(|holder| PollFd::new(&holder.pidfd, PollFlags::IN)).collect();
            poll_for(&mut fds, Some(left))?;
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let mut ended = ended.into_iter();
        holders.retain(|_| !ended.next().unwrap_or(false));
        if left.is_zero() {
            break;
        }
    }
    Ok(holders)
}

/// poll(2); an interruption counts as nothing being ready.
pub(crate) fn poll_for(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> anyhow::Result<()> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for events"),
    }
}

/// Waits until a descriptor is readable; false when `timeout` passed first.
pub(crate) fn readable(fd: impl AsFd, timeout: Option<Duration>) -> anyhow::Result<bool> {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll_for(&mut fds, timeout)?;
    Ok(!fds[0].revents().is_empty())
}
