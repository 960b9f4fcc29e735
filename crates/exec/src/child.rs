//! A program from start to end: what it reads and writes, and what ends it.
//!
//! ```text
//!   document ──stdin──▶ sh (limits) ──exec──▶ program ──stdout──▶ answer
//!                                                └─────stderr──▶ the last 64 KiB
//! ```

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::left::{self, Left, RUN};

/// The shell sets the limits, which takes `unsafe` otherwise; the kernel kills the program when the thread dies that waits for it.
const SCRIPT: &str = r#"ulimit -c 0; ulimit -v "$1" || exit 126; shift
if command -v setpriv >/dev/null; then exec setpriv --pdeathsig KILL -- "$@"; fi
exec "$@""#;

/// How much of standard error is kept: the end of it.
const SAID_BYTES_MAX: usize = 64 << 10;
/// How long its other processes have to end when the program has ended.
const GRACE: Duration = Duration::from_millis(300);
/// How often it is looked at whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a program may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    /// The address space of each of its processes. An answer is no longer.
    pub(crate) memory_bytes: u64,
}

/// What has come of a program.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its standard output, or a sentence that says how it failed.
    pub(crate) answer: Result<Vec<u8>, String>,
    /// The end of its standard error.
    pub(crate) said: Vec<u8>,
    /// How many bytes of standard error came before.
    pub(crate) left_out: usize,
}

/// Runs a command, whose words are separated by spaces. An error is a sentence: the command cannot be started.
pub(crate) fn run(command: &str, document: &[u8], limits: &Limits) -> Result<Finished, String> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let words = command.split_whitespace();
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "weft-engine"]).arg((limits.memory_bytes >> 10).max(1).to_string()).args(words);
    shell.env(RUN, &run).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().map_err(|error| format!("cannot start sh, which sets its limits: {error}"))?;
    let mut program = Program::new(child, format!("{RUN}={run}"))?;
    let end = program.attend(document, limits).map_err(|error| format!("cannot wait for it: {error}"))?;
    let left = program.end(end == End::Whole)?;
    let answer = program.verdict(end, &left, limits);
    Ok(Finished { answer, said: std::mem::take(&mut program.said), left_out: program.left_out })
}

/// Why a program is no longer attended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It has ended and closed its output, or another process holds it.
    Whole,
    Late,
    TooLong,
}

/// A running program. When it is dropped, whatever is left of it is killed.
struct Program {
    child: Child,
    group: Pid,
    run: String,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    status: Option<ExitStatus>,
    answer: Vec<u8>,
    said: Vec<u8>,
    left_out: usize,
}

impl Program {
    fn new(mut child: Child, run: String) -> Result<Self, String> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("it has no process id")?;
        let program = Self {
            child,
            group,
            run,
            stdin,
            stdout,
            stderr,
            status: None,
            answer: Vec::new(),
            said: Vec::new(),
            left_out: 0,
        };
        let fds = [
            program.stdin.as_ref().map(AsFd::as_fd),
            program.stdout.as_ref().map(AsFd::as_fd),
            program.stderr.as_ref().map(AsFd::as_fd),
        ];
        for fd in fds.into_iter().flatten() {
            fcntl_setfl(fd, OFlags::NONBLOCK).map_err(|error| error.to_string())?;
        }
        Ok(program)
    }

    /// Feeds and reads it until it has ended, or must end.
    fn attend(&mut self, document: &[u8], limits: &Limits) -> std::io::Result<End> {
        // A time that the clock cannot count is none.
        let deadline = Instant::now().checked_add(limits.timeout);
        let most = usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX);
        let (mut rest, mut ended) = (document, None);
        loop {
            let now = Instant::now();
            if self.status.is_none() {
                self.status = self.child.try_wait()?;
            }
            if self.status.is_some() {
                let since = *ended.get_or_insert(now);
                let is_closed = self.stdout.is_none() && self.stderr.is_none();
                if is_closed || now >= since + GRACE {
                    return Ok(End::Whole);
                }
            } else if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(End::Late);
            }
            self.wait()?;
            self.write(&mut rest);
            self.read(most);
            self.hear();
            if self.answer.len() > most {
                return Ok(End::TooLong);
            }
        }
    }

    /// Waits until a pipe is ready, but not for long: the end of a process makes no pipe ready.
    fn wait(&self) -> std::io::Result<()> {
        let out = self.stdin.as_ref().map(|fd| (fd.as_fd(), PollFlags::OUT));
        let read = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let read = read.into_iter().flatten().map(|fd: BorrowedFd<'_>| (fd, PollFlags::IN));
        let fds = out.into_iter().chain(read);
        let mut fds: Vec<PollFd<'_>> = fds.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        rest_for(&mut fds, LOOK)
    }

    /// Writes as much as it takes. A program need not read all.
    fn write(&mut self, rest: &mut &[u8]) {
        while let Some(stdin) = &mut self.stdin {
            match stdin.write(rest) {
                _ if rest.is_empty() => self.stdin = None,
                Ok(count) => *rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.stdin = None,
            }
        }
    }

    fn read(&mut self, most: usize) {
        let mut buffer = vec![0; 64 << 10];
        while let Some(stdout) = &mut self.stdout {
            match read_some(stdout, &mut buffer) {
                Some([]) => return,
                Some(bytes) => self.answer.extend_from_slice(bytes),
                None => self.stdout = None,
            }
            if self.answer.len() > most {
                return;
            }
        }
    }

    /// Takes what it has said, of which the end is kept.
    fn hear(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(stderr) = &mut self.stderr {
            match read_some(stderr, &mut buffer) {
                Some([]) => return,
                Some(bytes) => self.said.extend_from_slice(bytes),
                None => self.stderr = None,
            }
            let over = self.said.len().saturating_sub(SAID_BYTES_MAX);
            self.said.drain(..over);
            self.left_out += over;
        }
    }

    /// Ends all of it, and tells what was left where it had ended by itself.
    fn end(&mut self, has_ended: bool) -> Result<Vec<Left>, String> {
        let begun = Instant::now();
        let mut left = left::left(self.group, &self.run);
        while has_ended && !left.is_empty() && begun.elapsed() < GRACE {
            rest_for(&mut [], LOOK).map_err(|error| error.to_string())?;
            left = left::left(self.group, &self.run);
        }
        let found = left.clone();
        // A process may have made another one while it was looked for.
        let begun = Instant::now();
        loop {
            let _ = kill_process_group(self.group, Signal::KILL);
            left::kill(&left);
            if self.status.is_none() {
                self.status = self.child.wait().ok();
            }
            left = left::left(self.group, &self.run);
            if left.is_empty() || begun.elapsed() > GRACE {
                return Ok(found);
            }
            rest_for(&mut [], LOOK).map_err(|error| error.to_string())?;
        }
    }

    fn verdict(&mut self, end: End, left: &[Left], limits: &Limits) -> Result<Vec<u8>, String> {
        let mebibytes = limits.memory_bytes >> 20;
        match (end, self.status) {
            (End::Late, _) => {
                let seconds = limits.timeout.as_secs_f64();
                Err(format!(
                    "it had not ended after {seconds} s and was killed; --exec-timeout gives it longer"
                ))
            }
            (End::TooLong, _) => Err(format!(
                "it wrote more than {mebibytes} MiB to standard output and was killed; --exec-memory allows more"
            )),
            (End::Whole, Some(status)) if !status.success() => Err(failed(status)),
            (End::Whole, _) if !left.is_empty() => Err(format!("it left {}", left::in_words(left))),
            (End::Whole, None) => Err("it cannot be said how it ended".to_owned()),
            (End::Whole, Some(_)) => Ok(std::mem::take(&mut self.answer)),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A second time does no harm: the group is gone then.
        if self.status.is_none() {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// How a program failed.
fn failed(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(126 | 127), _) => "it cannot be started".to_owned(),
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended in some other way".to_owned(),
    }
}

/// What is there to be read: empty where nothing is there yet, and `None` at the end.
fn read_some<'a>(from: &mut impl Read, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    match from.read(buffer) {
        Ok(0) => None,
        Ok(count) => buffer.get(..count),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Some(&[]),
        Err(_) => None,
    }
}

fn rest_for(fds: &mut [PollFd<'_>], time: Duration) -> std::io::Result<()> {
    match poll(fds, Timespec::try_from(time).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
