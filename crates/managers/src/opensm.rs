//! The process of unmodified OpenSM: it starts the program under weft's stand-in for libibumad, is ready when the subnet is up or
//! another one manages it, and ends with it.
//!
//! ```text
//!   clients ─control─▶ this process ──starts──▶ opensm ─umad socket─▶ agent
//!   its log ◀──lines──      ▲ ◀──────lines────────┘
//! ```

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process};
use weft_bundle::config::managers::SeatPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::names::OPENSM;
use weft_control::event::ProcessEvent;
use weft_control::process::ProcessKind;
use weft_control::{Answer, Error, EventKind, Request};
use weft_metrics::Page;
use weft_process::lock::{LockFolder, ProcessLock};
use weft_process::{Clock, Desk, DeskOptions, DoorCounts, EventLog, Manned, open_desk, poll_for};

use crate::door::serve::{self, Door};
use crate::preload;
use crate::start::Start;

/// What OpenSM writes when the subnet is up.
const SUBNET_UP: &str = "SUBNET UP";
/// What OpenSM writes when another one manages the subnet, and it stands by.
const STANDS_BY: &str = "Entering STANDBY state";
/// What OpenSM writes again and again when its agent has ended; it does not attach a second time.
const LOST: &str = "ERR 5404";
/// How long it has to end in order.
const GRACE: Duration = Duration::from_secs(1);
/// A longer line is taken as several.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Where Debian has it, which is not in everyone's path.
const SYSTEM: &str = "/usr/sbin";

/// An error where OpenSM cannot be started on this machine by that program.
pub fn check(program: &Path) -> anyhow::Result<()> {
    preload::beside(program)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain([SYSTEM.into()]);
    if folders.any(|folder| folder.join("opensm").is_file()) {
        return Ok(());
    }
    Err(Failure::new("OpenSM is not installed").hint("Debian has it in the package opensm").into())
}

/// Runs until a signal or a client asks it to end, or OpenSM ends. `program`: the one that runs it, beside which its library is looked for.
pub fn run(args: &Start, program: &Path) -> anyhow::Result<()> {
    let part: SeatPart = bundle::load(&args.bundle.manager(&args.name))?;
    let run = args.run_folder(&part.lab)?;
    let lock_file = run.locks().join(&args.name);
    let lock = ProcessLock::take(&lock_file)?;
    weft_process::log::log_to_stderr();
    let clock = Clock::start();
    let identity = weft_process::identity(&part.lab, &args.name, ProcessKind::Opensm, clock);
    let events = EventLog::new(&args.name, clock);
    events.publish(EventKind::Process(weft_process::started(&identity)));
    let control = Some(run.control(&args.name));
    // On other hosts than the hub of the whole it answers over the network.
    let papers = args.door.map(|_| args.papers(None)).transpose()?;
    let door = args.door.zip(papers.as_ref()).map(|(address, papers)| {
        let (credentials, folder) = (papers.credentials().clone(), run.clone());
        Door {
            address,
            credentials,
            folder,
            name: args.name.clone(),
            relays: false,
            counts: DoorCounts::default(),
        }
    });
    let counts = door.as_ref().map(|door| door.counts.clone());
    let papers = papers.map(|papers| Arc::new(papers) as Arc<dyn weft_process::Papers>);
    let folder = Some(LockFolder::of(&lock_file).context("cannot open the folder of the lock")?);
    let options = DeskOptions {
        identity,
        clock,
        events: events.clone(),
        control,
        metrics: None,
        papers,
        door: counts,
        folder,
    };
    let desk = open_desk::<Shown>(options).context("cannot serve the control socket")?;
    if door.is_some() {
        serve::open(door, None)?;
    }
    let mut command = command(args, program, (&part, &run))?;
    let process = command.spawn().context("cannot start setpriv of util-linux, which starts OpenSM")?;
    let ended = Opensm {
        process,
        line: Vec::new(),
        last: String::new(),
        events: events.clone(),
        is_up: false,
        is_lost: false,
    }
    .tend(desk);
    if ended.is_ok() {
        lock.note_stop();
        events.publish(EventKind::Process(ProcessEvent::Stopping));
    }
    ended
}

/// OpenSM at its node. The kernel kills it when this process dies, whatever kills that.
fn command(args: &Start, program: &Path, (part, run): (&SeatPart, &LabFolder)) -> anyhow::Result<Command> {
    let Start { name, bundle, .. } = args;
    let scratch = run.path().join(name);
    std::fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(SYSTEM);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "opensm", "-f", "stdout", "-F"]).arg(bundle.opensm_options(name));
    command.env("PATH", path).env("OSM_TMP_DIR", &scratch).env("OSM_CACHE_DIR", &scratch);
    command.env("LD_PRELOAD", preload::beside(program)?).env("WEFT_UMAD_NODE", part.node.to_string());
    command.env("WEFT_UMAD_SOCKET", run.umad_socket(&part.agent));
    command.current_dir(&scratch).stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

/// OpenSM while it runs.
struct Opensm {
    process: Child,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    events: EventLog,
    /// The last line that says something.
    last: String,
    is_up: bool,
    is_lost: bool,
}

impl Opensm {
    fn tend(mut self, mut desk: Desk<()>) -> anyhow::Result<()> {
        let mut output = self.process.stdout.take().context("OpenSM has no output")?;
        loop {
            let [called, said] = wait(&desk, &output)?;
            if called && !desk.attend(|| ())? {
                return self.stop();
            }
            if said && !self.read(&mut output)? {
                let status = self.process.wait().context("cannot wait for OpenSM")?;
                self.take_line();
                let last = &self.last;
                return Err(Failure::new(format!(
                    "OpenSM ended with {status}; the last that it wrote: {last}"
                ))
                .hint("`weft shell -- opensm` shows all that it writes")
                .into());
            }
            if self.is_lost {
                self.stop()?;
                return Err(Failure::new("OpenSM has lost its agent")
                    .hint("`weft fault restart sm` starts it again when the agent runs")
                    .into());
            }
        }
    }

    /// Takes what OpenSM has written; false at its end.
    fn read(&mut self, output: &mut ChildStdout) -> anyhow::Result<bool> {
        let mut bytes = [0; 4096];
        let count = output.read(&mut bytes).context("cannot read what OpenSM writes")?;
        let read = bytes.get(..count).unwrap_or_default();
        for byte in read {
            if *byte == b'\n' || self.line.len() >= LINE_BYTES_MAX {
                self.take_line();
            }
            if *byte != b'\n' {
                self.line.push(*byte);
            }
        }
        Ok(count > 0)
    }

    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        // OpenSM tells its options, and one of them is a secret.
        if !line.contains("m_key") {
            // The log has it; where that cannot be written, OpenSM goes on all the same.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        if !line.trim().is_empty() {
            line.trim().clone_into(&mut self.last);
        }
        self.is_lost |= line.contains(LOST);
        if !self.is_up && (line.contains(SUBNET_UP) || line.contains(STANDS_BY)) {
            self.is_up = true;
            self.events.publish(EventKind::Process(ProcessEvent::Ready));
        }
    }

    /// Ends OpenSM in order, or else kills it.
    fn stop(&mut self) -> anyhow::Result<()> {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let until = Instant::now() + GRACE;
        let pidfd =
            rustix::process::pidfd_open(Pid::from_child(&self.process), rustix::process::PidfdFlags::empty());
        if let Ok(pidfd) = pidfd {
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            poll_for(&mut fds, Some(until.saturating_duration_since(Instant::now())))?;
        }
        // One that has ended is not there to be killed.
        let _ = self.process.kill();
        self.process.wait().map(drop).context("cannot wait for OpenSM")
    }
}

/// Waits until somebody calls, or OpenSM has written something.
fn wait(desk: &Desk<()>, output: &ChildStdout) -> anyhow::Result<[bool; 2]> {
    let (desk, output) = (desk.as_fd(), output.as_fd());
    let mut fds = [PollFd::new(&desk, PollFlags::IN), PollFd::new(&output, PollFlags::IN)];
    poll_for(&mut fds, None)?;
    Ok(fds.map(|fd| !fd.revents().is_empty()))
}

/// What the process shows at its control socket: that it lives.
struct Shown;

impl Manned for Shown {
    type Figures = ();

    fn render((): &()) -> Page {
        Page::of(OPENSM, env!("CARGO_PKG_VERSION"))
    }

    fn show((): &(), _age: Duration, _request: &Request) -> Option<Result<Answer, Error>> {
        None
    }

    fn takes(_request: &Request) -> bool {
        false
    }
}
