//! Starting processes of a laboratory, and ending those that hold its locks.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use weft_bundle::config::run::RunOptions;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::fault::FaultId;
use weft_process::{lock, poll_for};

/// The verb that lets a frozen process go on when the time of the fault is over.
pub(crate) const THAW: &str = "thaw";
/// The verb that becomes the Prometheus of a laboratory.
pub(crate) const PROMETHEUS: &str = "prometheus";
/// The verb that tapes a laboratory from its start, and the name of its lock and log.
pub const TAPER: &str = "taper";
/// The verb that takes a laboratory down when its owner is gone.
pub(crate) const GUARD: &str = "guard";

/// Runs this program again with a hidden verb, its standard error appended to a log file. The process waits for the word to
/// begin.
pub fn spawn(
    lab: &LabFolder,
    run: &RunOptions,
    verb: &str,
    name: &str,
    input: Stdio,
) -> anyhow::Result<Child> {
    let mut arguments = run.arguments(lab, verb, name);
    arguments.push("--wait".into());
    spawn_with(lab, &arguments, &lab.log(name), input)
}

/// Runs the program again as a laboratory's hub.
pub fn spawn_hub(lab: &LabFolder) -> anyhow::Result<Child> {
    let arguments = ["--lab", lab.name(), "hub", "--background"].map(OsString::from);
    spawn_with(lab, &arguments, &lab.log(HUB), Stdio::null())
}

/// Runs this program again, to let a frozen process go on when the time of the fault is over.
pub fn spawn_thaw(lab: &LabFolder, process: &str, id: &FaultId) -> anyhow::Result<Child> {
    let id = id.to_string();
    let arguments = ["--lab", lab.name(), THAW, process, &id].map(OsString::from);
    spawn_with(lab, &arguments, &lab.log(&format!("thaw-{process}")), Stdio::null())
}

/// Runs this program again, to become the Prometheus that answers at this address.
pub(crate) fn spawn_watch(lab: &LabFolder, address: SocketAddr, log: &Path) -> anyhow::Result<Child> {
    let arguments = ["--lab", lab.name(), PROMETHEUS, &address.to_string()].map(OsString::from);
    spawn_with(lab, &arguments, log, Stdio::null())
}

/// Runs this program again, to tape the laboratory.
pub(crate) fn spawn_taper(lab: &LabFolder, path: &Path, bytes_max: u64) -> anyhow::Result<Child> {
    let mut arguments = ["--lab", lab.name(), TAPER, &bytes_max.to_string()].map(OsString::from).to_vec();
    arguments.push(path.into());
    spawn_with(lab, &arguments, &lab.log(TAPER), Stdio::null())
}

fn spawn_with(lab: &LabFolder, arguments: &[OsString], log: &Path, input: Stdio) -> anyhow::Result<Child> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let program = lab.front().program().context("cannot tell which program this is")?;
    let stderr = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    Command::new(&program)
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// A process that holds a lock of the laboratory, pinned so that its number cannot come to mean another.
#[derive(Debug)]
pub struct Holder {
    /// Its number, for display.
    pub pid: Pid,
    /// The lock's file.
    pub lock: PathBuf,
    pub(crate) pidfd: OwnedFd,
}

impl AsFd for Holder {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Holder {
    /// The holder of a lock; `None` when no one holds it.
    ///
    /// The lock is asked again after the process was pinned: had it ended between, the number could be another's.
    pub fn of(lock: &Path) -> anyhow::Result<Option<Self>> {
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
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| {
                format!("cannot signal process {} ({})", self.pid.as_raw_nonzero(), self.lock.display())
            }),
        }
    }
}

/// Waits until all have ended, at most `patience`; returns those that have not.
pub fn wait_for_end(mut holders: Vec<Holder>, patience: Duration) -> anyhow::Result<Vec<Holder>> {
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

/// The end of a log in which last words are looked for.
const LAST_WORDS_BYTES: u64 = 64 * 1024;

/// What a process wrote to its log last: its panic if it ended with one, else the last line.
pub fn last_words(log: &Path) -> String {
    let mut end = Vec::new();
    let mut read = || {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
        file.take(LAST_WORDS_BYTES).read_to_end(&mut end)
    };
    match read() {
        Ok(_) => last_words_in(&String::from_utf8_lossy(&end)),
        Err(error) => format!("its log cannot be read: {error}"),
    }
}

fn last_words_in(log: &str) -> String {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_panic =
        |line: &&str| line.starts_with("thread '") && line.contains("' ") && line.contains(" panicked at ");
    let Some(panic) = lines.iter().rposition(is_panic) else {
        // An error is followed by what to do about it.
        return match lines.as_slice() {
            [.., error, hint] if hint.starts_with("hint: ") => format!("{error} ({hint})"),
            [.., last] => (*last).to_owned(),
            [] => "it said nothing".to_owned(),
        };
    };
    // After the place comes the message, in as many lines as it has, then advice or a backtrace.
    let is_advice = |line: &&str| line.starts_with("note: ") || *line == "stack backtrace:";
    let message = lines[panic + 1..].iter().copied().take_while(|line| !is_advice(line));
    let place = lines[panic].split_once(" panicked at ").map_or("", |(_, place)| place.trim_end_matches(':'));
    format!("panicked: {} ({place})", message.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::{Command, Stdio, last_words, last_words_in};

    #[test]
    fn a_panic_is_told_by_its_message() {
        let before = "2026-01-01T00:00:00Z  INFO weft: attached\n\n";
        let thread = "thread 'main' (4711) panicked at crates/sm/src/lib.rs:9:5:\n";
        for after in [
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
            "stack backtrace:\n   0: __rustc::rust_begin_unwind\n   1: core::panicking::panic_fmt\nnote: Some details are omitted\n",
            "",
        ] {
            let log = format!("{before}{thread}no way back\n{after}");
            assert_eq!(last_words_in(&log), "panicked: no way back (crates/sm/src/lib.rs:9:5)");
        }
        let log = format!(
            "{before}{thread}assertion `left == right` failed\n  left: 1\n right: 2\nnote: run with\n"
        );
        let told = last_words_in(&log);
        assert!(told.starts_with("panicked: assertion `left == right` failed left: 1 right: 2 ("), "{told}");
    }

    /// Panics where the next test asks for it.
    #[test]
    fn panics_if_told() {
        assert!(std::env::var_os(PANIC).is_none(), "no way back");
    }

    const PANIC: &str = "WEFT_TEST_PANIC";

    #[test]
    fn a_process_that_panics_is_told_of_by_its_own_words() {
        for backtrace in ["0", "1"] {
            let log = tempfile::NamedTempFile::new().unwrap();
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "process::tests::panics_if_told", "--nocapture"]);
            child.env(PANIC, "1").env("RUST_BACKTRACE", backtrace).stdout(Stdio::null());
            let status = child.stderr(log.reopen().unwrap()).status().unwrap();
            assert!(!status.success(), "{status}");
            let said = last_words(log.path());
            assert!(said.starts_with("panicked: no way back (") && said.contains("process.rs:"), "{said}");
        }
    }

    #[test]
    fn without_a_panic_the_last_line_counts() {
        assert_eq!(last_words_in("one\n two \n\n"), "two");
        assert_eq!(last_words_in(""), "it said nothing");
        assert_eq!(last_words_in("one\nerror: two\nhint: three\n"), "error: two (hint: three)");
    }
}
