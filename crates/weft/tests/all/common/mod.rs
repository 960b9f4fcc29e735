//! Running `weft` as a user does, in a home of its own.

#![allow(dead_code, reason = "not every test file needs all of it")]

pub(crate) mod capturing;
pub(crate) mod machines;
#[path = "../../../../../tests/src/ports.rs"]
pub(crate) mod ports;
pub(crate) mod terminal;
pub(crate) mod two_into_one;
pub(crate) mod words;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No command of a test takes longer, or it hangs.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);

/// A home for laboratories that takes them down when the test ends, however it ends.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// What a command came to.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// The folder that holds the laboratories.
    pub(crate) fn base(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    /// A folder beside the laboratories, in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of a laboratory.
    pub(crate) fn lab(&self, name: &str) -> PathBuf {
        self.base().join(name)
    }

    /// Gives a process of the default laboratory the identity of a stranger: of another authority, which it trusts.
    pub(crate) fn make_stranger(&self, process: &str) {
        let lab = self.lab("default");
        let part = std::fs::read(lab.join(format!("agents/{process}.json"))).unwrap();
        let part: Value = serde_json::from_slice(&part).unwrap();
        let guid = weft_wire::Guid(part["devices"][0]["guid"].as_u64().unwrap());
        let authority = weft_link::Authority::new("default").unwrap();
        let identity = authority.issue(&[guid]).unwrap();
        std::fs::write(lab.join(format!("identities/{process}.pem")), identity.pem()).unwrap();
        std::fs::write(lab.join("ca.pem"), authority.certificate_pem()).unwrap();
    }

    /// Writes a file beside the laboratories.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A tree of 4 switches and 4 hosts, which are described by their names alone.
    pub(crate) fn small_tree(&self) -> PathBuf {
        let path = self.folder.path().join("tree.topo");
        let shape = ["topo", "gen", "xgft", "--children", "2,2", "--parents", "1,2", "--describe", "plain"];
        self.weft(&[&shape[..], &["-o", text(&path)]].concat()).succeeds();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(arguments).env("WEFT_HOME", self.base()).env("NO_COLOR", "1").stdin(Stdio::null());
        command.current_dir(self.folder.path());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn weft(&self, arguments: &[&str]) -> Done {
        let child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        let Ok(output) = receive.recv_timeout(COMMAND_TIME_MAX) else {
            signal(pid, rustix::process::Signal::KILL);
            panic!("`weft {}` takes longer than {COMMAND_TIME_MAX:?}", arguments.join(" "));
        };
        Done::of(output.unwrap())
    }

    /// Runs a command whose standard output is JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = self.weft(arguments);
        done.succeeds();
        serde_json::from_str(&done.stdout).unwrap()
    }

    /// The processes of the only laboratory: name and pid, 0 for the dead.
    pub(crate) fn processes(&self) -> Vec<(String, u32)> {
        let listed = self.json(&["ps", "--json"]);
        let pid = |process: &Value| u32::try_from(process["pid"].as_u64().unwrap_or(0)).unwrap();
        let name = |process: &Value| process["process"].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(|process| (name(process), pid(process))).collect()
    }

    /// Nothing of any laboratory is left in the home.
    pub(crate) fn is_empty(&self) -> bool {
        std::fs::read_dir(self.base()).into_iter().flatten().next().is_none()
    }

    /// What happens in a laboratory from now on, and what has happened.
    pub(crate) fn events(&self) -> Events {
        self.events_since("start")
    }

    /// What happens in a laboratory from now on, and what has happened since a moment.
    pub(crate) fn events_since(&self, since: &str) -> Events {
        let arguments = ["events", "--follow", "--json", "--since", since];
        let mut child = self.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        Events { child, receive, seen: Vec::new() }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--all"]).stderr(Stdio::null()).status();
    }
}

impl Done {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The command did what it should.
    #[track_caller]
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The command failed with this exit code and says this on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, says: &str) -> &Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(self.stderr.contains(says), "`{says}` is not in: {}", self.stderr);
        self
    }
}

/// A followed stream of events.
pub(crate) struct Events {
    child: Child,
    receive: mpsc::Receiver<Value>,
    pub(crate) seen: Vec<Value>,
}

impl Events {
    /// Waits for an event, among those to come and those already seen since the last call.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.receive.recv_timeout(COMMAND_TIME_MAX) {
                Ok(event) => {
                    self.seen.push(event.clone());
                    if wanted(&event) {
                        return event;
                    }
                }
                Err(_) => panic!("no event: {what}; seen: {:#?}", self.seen),
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `weft` command that goes on until it is asked to stop.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Its standard error, for the report of a failure. A file is never too full to be written to.
    stderr: std::fs::File,
}

impl Running {
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_command(&mut home.command(arguments))
    }

    pub(crate) fn start_command(command: &mut Command) -> Self {
        let stderr = tempfile::tempfile().unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr.try_clone().unwrap()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Reads standard output up to a line that contains this.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            if self.stdout.read_line(&mut line).unwrap() == 0 {
                let code = self.child.wait().unwrap();
                panic!("the output ended without `{wanted}`, {code}; standard error: {}", self.said());
            }
        }
    }

    /// Its next line on standard output.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "standard error: {}", self.said());
        line.trim_end().to_owned()
    }

    /// What it wrote to standard error.
    pub(crate) fn said(&self) -> String {
        let (mut text, mut from) = (vec![0; 64 << 10], 0);
        while let Ok(read @ 1..) = self.stderr.read_at(&mut text[from..], from as u64) {
            from += read;
        }
        String::from_utf8_lossy(&text[..from]).into_owned()
    }

    pub(crate) fn signal(&self, which: rustix::process::Signal) {
        signal(self.child.id(), which);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, and gives all that it has said since it was last listened to.
    pub(crate) fn done(mut self) -> Done {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Done { code, stdout, stderr: self.said() }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> std::process::ExitStatus {
        let mut rest = Vec::new();
        let _ = self.stdout.read_to_end(&mut rest);
        self.child.wait().unwrap()
    }
}

/// The first of many UDP ports in a row, below those that `up` takes: where `plan` claims none, another laboratory could have them
/// before long.
pub(crate) fn planned_port() -> String {
    ports::free_ports(64).to_string()
}

pub(crate) fn signal(pid: u32, which: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, which).unwrap();
}

/// Whether a process runs; one that has ended but that no one has waited for does not.
pub(crate) fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").unwrap().1;
    !state.starts_with('Z') && !state.starts_with('X')
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Waits for what no descriptor tells, at most as long as a command may take.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + COMMAND_TIME_MAX;
    while !done() {
        assert!(Instant::now() < deadline, "it never happened: {what}");
        std::thread::yield_now();
    }
}
