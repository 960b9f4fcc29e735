//! weft run on several hosts at the same time.

use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_bundle::failure::Failure;
use weft_process::poll_for;

use crate::signals::Signals;
use crate::site::hosts::Shares;
use crate::site::hosts::ssh::Running;

/// How long a host has to do what takes it seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs weft with these arguments on one host, with this on its standard input; what it says.
pub(super) fn run_on(
    shares: &Shares,
    host: &str,
    arguments: &[&str],
    input: &[u8],
) -> anyhow::Result<String> {
    let mut running = shares.ssh.start(host, arguments)?;
    if let Some(mut to) = running.input() {
        // One that does not take it all says why when it ends.
        let _ = to.write_all(input);
    }
    let mut all = vec![running];
    match wait_for_one(&mut all, Instant::now() + PATIENCE, None)? {
        Some(ended) => ended.finish().map_err(|failed| failed.failure),
        None => Err(silent(host)),
    }
}

/// Takes the shares on these hosts down. Returns the hosts on which that failed, and why.
pub(crate) fn ended_on(
    shares: &Shares,
    lab: &str,
    hosts: &[String],
) -> anyhow::Result<Vec<(String, anyhow::Error)>> {
    let mut failed = Vec::new();
    let mut running = Vec::new();
    for host in hosts {
        let mut down = shares.ssh.start(host, &["--lab", lab, "down"])?;
        drop(down.input());
        running.push(down);
    }
    let until = Instant::now() + PATIENCE;
    while !running.is_empty() {
        let Some(ended) = wait_for_one(&mut running, until, None)? else { break };
        let host = ended.host.clone();
        failed.extend(ended.finish().err().map(|failed| (host, failed.failure)));
    }
    failed.extend(running.iter().map(|left| (left.host.clone(), silent(&left.host))));
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(failed)
}

/// The next one that has ended; `None` when none has until a moment, or an interrupt has come.
pub(crate) fn wait_for_one(
    running: &mut Vec<Running>,
    until: Instant,
    interrupt: Option<&Signals>,
) -> anyhow::Result<Option<Running>> {
    loop {
        let mut ends: Vec<PollFd<'_>> =
            running.iter().map(|one| PollFd::new(&one.end, PollFlags::IN)).collect();
        ends.extend(interrupt.map(|signals| PollFd::new(signals, PollFlags::IN)));
        let left = until.saturating_duration_since(Instant::now());
        poll_for(&mut ends, Some(left))?;
        match ends.iter().position(|end| !end.revents().is_empty()) {
            Some(at) if at < running.len() => return Ok(Some(running.swap_remove(at))),
            None if !left.is_zero() => {}
            _ => return Ok(None),
        }
    }
}

/// A host that says nothing.
pub(crate) fn silent(host: &str) -> anyhow::Error {
    Failure::new(format!("{host} does not answer"))
        .hint(format!("`ssh {host}` must log in without a question, and its shell must come to an end"))
}
