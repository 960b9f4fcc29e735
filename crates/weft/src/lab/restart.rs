//! Starting one process of a laboratory that runs already.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weft_umad::launch::{self, FromLauncher, LineDecoder, ToLauncher};

use super::folder::LabFolder;
use super::names::HUB;
use super::process::{last_words, poll_for, readable, spawn, spawn_hub};
use super::reporters::peer;
use super::run::RunOptions;
use crate::failure::Failure;

/// How long a process has to report.
const PATIENCE: Duration = Duration::from_secs(10);

/// A launcher's socket for one process; it goes when this does.
struct LaunchSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl Drop for LaunchSocket {
    fn drop(&mut self) {
        // If it stays, it goes with the laboratory's folder.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A process that has reported that it is ready.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its line to this process.
    pub(crate) line: UnixStream,
    /// The process. Where this one goes on for long, it must wait for its end.
    pub(crate) child: Child,
}

/// Starts a process and returns when it has reported that it is ready. One that does not is killed.
pub(crate) fn start(lab: &LabFolder, verb: &str, name: &str) -> anyhow::Result<Started> {
    let run = RunOptions::load(lab)?;
    start_by(lab, name, |launch| spawn(lab, &run, (verb, name), launch))
}

/// Starts the laboratory's hub in the same way.
pub(crate) fn start_hub(lab: &LabFolder) -> anyhow::Result<Started> {
    start_by(lab, HUB, |launch| spawn_hub(lab, launch))
}

fn start_by(
    lab: &LabFolder,
    name: &str,
    spawn: impl FnOnce(&Path) -> anyhow::Result<Child>,
) -> anyhow::Result<Started> {
    let path = lab.path().join(format!("launch-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path); // Of an earlier process with the same number.
    let listener =
        UnixListener::bind(&path).with_context(|| format!("cannot listen on {}", path.display()))?;
    let socket = LaunchSocket { path, listener };
    let log = lab.log(name);
    let mut child = spawn(&socket.path)?;
    match await_report(&socket, &mut child, name, &log) {
        Ok(line) => Ok(Started { line, child }),
        Err(error) => {
            // What does not report in time must not go on after its caller was told that it failed.
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// Waits until the process has reported that it is ready, and gives it the word.
fn await_report(
    socket: &LaunchSocket,
    child: &mut Child,
    name: &str,
    log: &Path,
) -> anyhow::Result<UnixStream> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch the process")?;
    let deadline = Instant::now() + PATIENCE;
    let ended = |child: &mut Child| {
        let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let last = last_words(log);
        Failure::new(format!("{name} ended with {status}: {last}"))
    };
    let mut stream = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        {
            let mut fds = [PollFd::new(&socket.listener, PollFlags::IN), PollFd::new(&pidfd, PollFlags::IN)];
            poll_for(&mut fds, Some(left))?;
            if fds[0].revents().is_empty() {
                if !fds[1].revents().is_empty() {
                    return Err(ended(child).into());
                }
                return Err(silent(name, log).into());
            }
        }
        let (stream, _) = socket.listener.accept().context("cannot accept the report")?;
        // A stranger that connects is hung up on.
        if peer(&stream)? == child.id() {
            break stream;
        }
    };
    let mut decoder = LineDecoder::new();
    loop {
        match decoder.next_message::<ToLauncher>()? {
            Some(ToLauncher::Ready { .. }) => break,
            Some(ToLauncher::Failed { reason, .. }) => {
                return Err(Failure::new(format!("{name} failed: {reason}")).into());
            }
            Some(_) => {}
            None => {
                let left = deadline.saturating_duration_since(Instant::now());
                if !readable(&stream, Some(left))? {
                    return Err(silent(name, log).into());
                }
                let mut bytes = [0; 1024];
                match stream.read(&mut bytes).context("cannot read the report")? {
                    0 => return Err(ended(child).into()),
                    count => decoder.feed(bytes.get(..count).unwrap_or_default()),
                }
            }
        }
    }
    stream.write_all(launch::line(&FromLauncher::Go).as_bytes()).context("cannot tell it to go on")?;
    Ok(stream)
}

/// The log itself may go with the laboratory, so the message holds its end.
fn silent(name: &str, log: &Path) -> Failure {
    let (seconds, last) = (PATIENCE.as_secs(), last_words(log));
    Failure::new(format!("{name} does not report within {seconds} s; the last line of its log: {last}"))
}
