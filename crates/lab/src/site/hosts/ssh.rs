//! Running weft on another host by ssh.
//!
//! ssh finds the host, checks its key and proves who asks, as its own configuration says; it asks no one (`BatchMode`). What is
//! given to the host's shell is quoted, whatever it consists of.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use anyhow::Context;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use weft_bundle::failure::Failure;

/// Options of every ssh: ask no one, notice a host that is gone, and leave no connection behind.
const OPTIONS: [&str; 5] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ControlMaster=no",
];
/// What is kept of the end of what a host says.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// How ssh ends when it has failed itself.
const SSH_FAILED: i32 = 255;
/// How a shell ends that does not find the program, or may not run it.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// How hosts are reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// The file that ssh reads in place of the user's.
    pub config: Option<PathBuf>,
    /// weft on the hosts.
    pub weft: String,
}

impl Ssh {
    /// Starts weft on a host. Its standard input is a pipe.
    pub fn start(&self, host: &str, arguments: &[&str]) -> anyhow::Result<Running> {
        let mut child = Command::new("ssh")
            .args(self.arguments(host, arguments)?)
            // An interrupt at the terminal is for us, who end it in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Failure::new(format!("cannot start ssh: {error}")).hint("install OpenSSH's client")
            })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("ssh without a number")?;
        let end = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch ssh")?;
        let out = child.stdout.take().map(keep_end);
        let err = child.stderr.take().map(keep_end);
        Ok(Running { host: host.to_owned(), weft: self.weft.clone(), child, end, out, err })
    }

    fn arguments(&self, host: &str, arguments: &[&str]) -> anyhow::Result<Vec<OsString>> {
        if host.starts_with('-') {
            return Err(Failure::bad_input(format!("`{host}` cannot name a host"))
                .hint("ssh would take it for an option"));
        }
        let mut all: Vec<OsString> = Vec::new();
        if let Some(config) = &self.config {
            all.extend(["-F".into(), config.into()]);
        }
        OPTIONS.iter().for_each(|option| all.extend(["-o".into(), OsString::from(option)]));
        all.extend(["-T", "--", host].map(OsString::from));
        let words: Vec<String> =
            [self.weft.as_str()].iter().chain(arguments).map(|word| quoted(word)).collect();
        all.push(words.join(" ").into());
        Ok(all)
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// weft on a host, as ssh runs it. Dropped, ssh is killed.
#[derive(Debug)]
pub struct Running {
    /// The host.
    pub host: String,
    weft: String,
    child: Child,
    /// Readable when ssh has ended.
    pub end: OwnedFd,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

impl Running {
    /// Its standard input, once.
    pub fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// What it said on standard output, when it has succeeded. Waits for the end.
    pub fn finish(mut self) -> Result<String, Failed> {
        let status = self.child.wait();
        let said = |end: &mut Option<JoinHandle<String>>| {
            end.take().and_then(|end| end.join().ok()).unwrap_or_default()
        };
        let (out, err) = (said(&mut self.out), said(&mut self.err));
        match status {
            Ok(status) if status.success() => Ok(out),
            Ok(status) => Err(explain(&self.host, &self.weft, status, &err)),
            Err(error) => {
                let failure = Failure::new(format!("cannot wait for ssh to {}: {error}", self.host));
                Err(Failed { failure: failure.into(), untouched: false })
            }
        }
    }
}

/// Why weft did not do its work on a host.
#[derive(Debug)]
pub struct Failed {
    pub failure: anyhow::Error,
    /// Nothing of it is left there, if anything was begun.
    pub untouched: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `finish` it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end in a thread, and keeps the last of it.
fn keep_end(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut kept, mut piece) = (Vec::new(), [0; 8192]);
        while let Ok(count @ 1..) = from.read(&mut piece) {
            kept.extend_from_slice(&piece[..count]);
            let over = kept.len().saturating_sub(SAID_BYTES_MAX);
            kept.drain(..over);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// What ssh says where it did not come as far as the host's shell.
const NOT_REACHED: [&str; 6] = [
    "connect to host",
    "Could not resolve hostname",
    "Host key verification failed",
    "Permission denied",
    "kex_exchange_identification",
    "banner exchange",
];

/// What went wrong on a host, and what to do about it.
fn explain(host: &str, weft: &str, status: ExitStatus, err: &str) -> Failed {
    let failure = failure(host, weft, status, err);
    let untouched = match status.code() {
        Some(SSH_FAILED) => NOT_REACHED.iter().any(|words| err.contains(words)),
        // weft has cleared up what it began before it said that it failed. A shell says 128 and more of a program that a signal ended.
        code => code.is_some_and(|code| code < 128),
    };
    Failed { failure, untouched }
}

fn failure(host: &str, weft: &str, status: ExitStatus, err: &str) -> anyhow::Error {
    let lines: Vec<&str> = err.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.last().copied().unwrap_or("it said nothing");
    let own = env!("CARGO_PKG_VERSION");
    match status.code() {
        Some(SSH_FAILED) => {
            let changed = lines.iter().any(|line| line.contains("HOST IDENTIFICATION HAS CHANGED"));
            let why = if changed { "its host key is another than the one in known_hosts" } else { last };
            let hint = if changed {
                format!(
                    "find out why; if it is right, `ssh-keygen -R {host}` and log in once with `ssh {host}`"
                )
            } else if last.contains("Host key verification failed") {
                format!("log in once with `ssh {host}`, and compare the key that it shows")
            } else if last.contains("Permission denied") {
                format!(
                    "`ssh {host}` must log in without a question: give your key to ssh-agent, or name it in ~/.ssh/config"
                )
            } else {
                format!(
                    "`ssh {host}` must log in without a question; addresses, ports and users are named in ~/.ssh/config"
                )
            };
            Failure::new(format!("cannot reach {host}: {}", weft_wire::Printable(why))).hint(hint)
        }
        Some(NOT_FOUND | NOT_EXECUTABLE) => {
            Failure::new(format!("{host} cannot run `{weft}`: {}", weft_wire::Printable(last)))
                .hint(format!("install weft {own} there, or name the program with --remote-weft PATH"))
        }
        _ => {
            let after =
                |label: &str| lines.iter().rev().find_map(|line| line.strip_prefix(label)).map(str::trim);
            let what = after("error:").unwrap_or(last);
            let failure = Failure::new(format!("{host}: {}", weft_wire::Printable(what)));
            let hint = match after("hint:") {
                // A weft that does not know what it is asked for.
                _ if what.starts_with("unexpected argument") => Some(format!("install weft {own} on {host}")),
                hint => hint.map(|hint| weft_wire::Printable(hint).to_string()),
            };
            failure.hint_if_any(hint)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn ssh() -> Ssh {
        Ssh { config: None, weft: "weft".to_owned() }
    }

    #[test]
    fn ssh_hosts_are_never_options_and_words_are_quoted() {
        assert!(ssh().arguments("-oProxyCommand=x", &["up"]).is_err());
        let words = ["up", "$(reboot)", "a b", "it's", "`x`", ";&|"];
        let arguments = ssh().arguments("a", &words).unwrap();
        let [.., dashes, host, line] = arguments.as_slice() else { panic!("{arguments:?}") };
        assert_eq!((dashes.to_str(), host.to_str()), (Some("--"), Some("a")));
        let printed = format!("printf '%s\\n' {}", line.to_str().unwrap());
        let shown = Command::new("sh").args(["-c", &printed]).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown.lines().collect::<Vec<_>>(), [&["weft"][..], &words].concat());
        let checked =
            arguments.iter().any(|argument| argument.to_str().unwrap().contains("StrictHostKeyChecking"));
        assert!(!checked, "the user's own configuration decides");
    }

    #[test]
    fn ssh_failures_have_one_line_and_a_hint() {
        for (code, err, what, hint) in [
            (255, "Host key verification failed.\n", "cannot reach a: Host key", "log in once"),
            (
                255,
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
                "another than",
                "ssh-keygen -R a",
            ),
            (255, "u@a: Permission denied (publickey).\n", "Permission denied", "ssh-agent"),
            (
                255,
                "ssh: connect to host a port 22: No route to host\n",
                "No route to host",
                "without a question",
            ),
            (127, "sh: 1: weft: not found\n", "a cannot run `weft`", "--remote-weft"),
            (
                2,
                "error: unexpected argument '--part' found\n\nUsage: weft\n",
                "a: unexpected argument",
                "install weft",
            ),
            (1, "noise\nerror: it is so\nhint: do that\n", "a: it is so", "do that"),
        ] {
            let failure = explain("a", "weft", ExitStatus::from_raw(code << 8), err).failure;
            let said = weft_bundle::failure::in_words(&failure);
            assert!(said.contains(what) && said.contains(hint), "{said}");
        }
    }
}
