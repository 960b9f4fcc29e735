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
use weft_metrics::Page;
use weft_process::{Desk, Manned, poll_for};

use crate::post::{Held, Post};
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
    Err(Failure::new("OpenSM is not installed").hint("Debian has it in the package opensm"))
}

/// Runs until a signal or a client asks it to end, or OpenSM ends. `program`: the one that runs it, beside which its library is looked for.
pub fn run(args: &Start, program: &Path) -> anyhow::Result<()> {
    let part: SeatPart = bundle::load(&args.bundle.manager(&args.name))?;
    let run = args.run_folder(&part.lab)?;
    // On other hosts than the hub of the whole it answers over the network.
    let held = Post::new(&part, args)?.take::<Shown>(&args.name, ProcessKind::Opensm)?;
    let mut command = command(args, program, &part, &run)?;
    let process = command.spawn().context("cannot start setpriv of util-linux, which starts OpenSM")?;
    let mut opensm =
        Opensm { process, line: Vec::new(), last: String::new(), held, is_up: false, is_lost: false };
    opensm.tend()?;
    opensm.held.note_stop();
    opensm.held.publish(ProcessEvent::Stopping);
    Ok(())
}

/// OpenSM at its node. The kernel kills it when this process dies, whatever kills that.
fn command(args: &Start, program: &Path, part: &SeatPart, run: &LabFolder) -> anyhow::Result<Command> {
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
    held: Held<()>,
    /// The last line that says something.
    last: String,
    is_up: bool,
    is_lost: bool,
}

impl Opensm {
    fn tend(&mut self) -> anyhow::Result<()> {
        let mut output = self.process.stdout.take().context("OpenSM has no output")?;
        loop {
            let [called, said] = wait(&self.held.desk, &output)?;
            if called && !self.held.desk.attend(|| ())? {
                return self.stop();
            }
            if said && !self.read(&mut output)? {
                let status = self.process.wait().context("cannot wait for OpenSM")?;
                self.take_line();
                let last = &self.last;
                let message = format!("OpenSM ended with {status}; the last that it wrote: {last}");
                return Err(Failure::new(message).hint("`weft shell -- opensm` shows all that it writes"));
            }
            if self.is_lost {
                self.stop()?;
                return Err(Failure::new("OpenSM has lost its agent")
                    .hint("`weft fault restart sm` starts it again when the agent runs"));
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
            self.held.publish(ProcessEvent::Ready);
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
}
