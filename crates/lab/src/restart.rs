//! Starting one process of a laboratory that runs already.

use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weft_bundle::config::run::RunOptions;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::{Answer, Request};
use weft_process::{Client, ClientError, readable};

use crate::process::{last_words, spawn, spawn_hub};

/// How long a process has to report.
const PATIENCE: Duration = Duration::from_secs(10);
/// The looks for its socket in between.
const LOOKS: std::ops::Range<Duration> = Duration::from_millis(1)..Duration::from_millis(20);

/// Starts a process and returns when it has begun. One that does not is killed. Where the caller goes on for long, it must
/// wait for the process's end.
pub fn start(lab: &LabFolder, verb: &str, name: &str) -> anyhow::Result<Child> {
    let child = spawn(lab, &RunOptions::load(lab)?, verb, name, Stdio::null())?;
    await_report(lab, child, name, |pid, until| ask(lab, pid, name, &Request::Begin, until))
}

/// Starts a process that ends when `line` does, its standard input, and returns when `serves` says so. It has no control
/// socket.
pub fn start_bound(
    lab: &LabFolder,
    verb: &str,
    name: &str,
    line: OwnedFd,
    serves: impl Fn() -> bool,
) -> anyhow::Result<Child> {
    let child = spawn(lab, &RunOptions::load(lab)?, verb, name, line.into())?;
    await_report(lab, child, name, |_, _| Ok(serves()))
}

/// Starts the laboratory's hub and returns when it serves.
pub fn start_hub(lab: &LabFolder) -> anyhow::Result<Child> {
    await_report(lab, spawn_hub(lab)?, HUB, |pid, until| ask(lab, pid, HUB, &Request::Hello, until))
}

/// Waits until a look at the process, by its number and until a moment at most, finds that it serves.
fn await_report(
    lab: &LabFolder,
    mut child: Child,
    name: &str,
    serves: impl Fn(u32, Instant) -> anyhow::Result<bool>,
) -> anyhow::Result<Child> {
    let reported = report(lab, &mut child, name, serves);
    if reported.is_err() {
        // A process that does not report in time must not go on after its caller got an error.
        let _ = child.kill();
        let _ = child.wait();
    }
    reported.map(|()| child)
}

fn report(
    lab: &LabFolder,
    child: &mut Child,
    name: &str,
    serves: impl Fn(u32, Instant) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch the process")?;
    let deadline = Instant::now() + PATIENCE;
    let mut look = LOOKS.start;
    loop {
        match serves(child.id(), deadline) {
            Ok(true) => return Ok(()),
            // It is on its way, or has ended.
            Ok(false) => {}
            Err(error) => return Err(error.context(format!("{name} does not begin"))),
        }
        if readable(&pidfd, Some(look))? {
            let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            let last = last_words(&lab.log(name));
            return Err(Failure::new(format!("{name} ended with {status}: {last}")).into());
        }
        if Instant::now() > deadline {
            // The log itself may go with the laboratory, so the message holds its end.
            let (seconds, last) = (PATIENCE.as_secs(), last_words(&lab.log(name)));
            let message =
                format!("{name} does not report within {seconds} s; the last line of its log: {last}");
            return Err(Failure::new(message).into());
        }
        look = (look * 2).min(LOOKS.end);
    }
}

/// Asks a process once; false when it does not listen yet, or another does in its place.
fn ask(lab: &LabFolder, pid: u32, name: &str, request: &Request, deadline: Instant) -> anyhow::Result<bool> {
    let Ok(mut client) = Client::connect(&lab.control(name)) else { return Ok(false) };
    let mut ask = |request| match client.ask(request, deadline.saturating_duration_since(Instant::now())) {
        Err(ClientError::Closed | ClientError::Io(_) | ClientError::TimedOut(_)) => Ok(None),
        asked => asked.map(Some),
    };
    match ask(Request::Hello)? {
        Some(Answer::Hello(hello)) if hello.identity.pid == pid => {}
        _ => return Ok(false),
    }
    Ok(ask(request.clone())?.is_some())
}
