//! OpenSM as the running subnet manager of a fabric.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long it may have nothing to say while something is expected of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running OpenSM, ended when dropped.
pub struct OpenSm {
    process: Child,
    said: Receiver<String>,
}

impl OpenSm {
    /// Starts OpenSM with `command`, which knows where the fabric is, and waits until it says SUBNET UP. It writes
    /// its tables (`guid2lid`, `opensm.fdbs`) into `folder`.
    ///
    /// # Panics
    /// When it ends before; what it said is in the message.
    pub fn start(command: Command, folder: &Path) -> Self {
        Self::start_with(command, folder, "")
    }

    /// The same with options as lines of its file.
    ///
    /// # Panics
    /// When it ends before; what it said is in the message.
    pub fn start_with(command: Command, folder: &Path, lines: &str) -> Self {
        Self::start_until(command, folder, lines, "SUBNET UP")
    }

    /// The same, waiting for a line that contains `until`.
    ///
    /// # Panics
    /// When it ends before; what it said is in the message.
    pub fn start_until(mut command: Command, folder: &Path, lines: &str, until: &str) -> Self {
        let options = folder.join("opensm.conf");
        // Without the flush, lines wait in its buffer until there are many.
        let text = format!("force_log_flush TRUE\n{lines}");
        std::fs::write(&options, text).expect("the folder can be written");
        // Log flag 0x40 makes it write its tables.
        command.args(["-D", "0x43", "-f", "stdout", "-F"]).arg(&options);
        command.env("OSM_TMP_DIR", folder).env("OSM_CACHE_DIR", folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("OpenSM must be installed: apt-get install opensm");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let (send, said) = mpsc::channel();
        // It must be read to the end, or it waits for room in the pipe.
        std::thread::spawn(move || lines.for_each(|line| drop(send.send(line))));
        let mut manager = Self { process, said };
        manager.wait_for(until);
        manager
    }

    /// Reads what it says until a line contains `text`.
    ///
    /// # Panics
    /// When it ends before, or says nothing new for long; what it said is in the message.
    pub fn wait_for(&mut self, text: &str) {
        let mut said = Vec::new();
        let end = loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Timeout) => break "is silent",
                Err(RecvTimeoutError::Disconnected) => break "ends",
            }
        };
        panic!("OpenSM {end} without {text:?}:\n{}", said.join("\n"));
    }
}

impl Drop for OpenSm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
