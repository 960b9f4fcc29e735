//! Captures that run, and what tshark makes of them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::{Done, Home, signal, text};

/// A capture that runs until it is asked to end.
pub(crate) struct Capturing {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Capturing {
    /// Starts it and returns when it captures.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&[&["capture"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("capturing at") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "the capture ended: {said}");
        }
        Self { child, stderr }
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Done {
        signal(self.child.id(), Signal::INT);
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Done {
        let mut stderr = String::new();
        let (mut stdout, mut child) = (String::new(), self.child);
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        let code = child.wait().unwrap().code().unwrap_or(-1);
        Done { code, stdout, stderr }
    }
}

/// What tshark prints: for each packet these fields.
pub(crate) fn dissected(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", text(file), "-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output =
        command.stderr(Stdio::null()).output().expect("tshark must be installed: apt-get install tshark");
    assert!(output.status.success(), "tshark: {}", output.status);
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect()
}
