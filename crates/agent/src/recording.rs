//! The file in which everything is that the agent's node was fed.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weft_machine::Time;
use weft_node::recording::Recorder;
use weft_node::{Input, NodeOptions, Output};

/// What is gathered before it is written.
const GATHERED_BYTES: usize = 64 * 1024;

/// Recordings of one agent in one folder.
const RECORDINGS_MAX: u32 = 1000;

/// A recording under way. It never holds the agent up for longer than a write to a file takes, and it ends when the file has
/// grown to its bound or cannot be written.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    /// None once the recording has ended.
    file: Option<File>,
    bytes_left: u64,
}

impl Recording {
    /// Begins a recording in a file of its own, for its owner's eyes only: the laboratory's M_Keys cross the node. What an
    /// earlier process recorded is kept: `a0003.rec`, then `a0003-2.rec`.
    pub(crate) fn begin(path: &Path, bytes_max: u64, name: &str, options: NodeOptions) -> io::Result<Self> {
        let open = |path: &Path| File::options().create_new(true).write(true).mode(0o600).open(path);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let further = (2..RECORDINGS_MAX).map(|number| path.with_file_name(format!("{stem}-{number}.rec")));
        let mut tried = std::iter::once(path.to_owned()).chain(further).map(|path| open(&path));
        let is_taken = |opened: &io::Result<File>| matches!(opened, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
        let file = tried.find(|opened| !is_taken(opened)).unwrap_or_else(|| open(path))?;
        Ok(Self { recorder: Recorder::new(name, options), file: Some(file), bytes_left: bytes_max })
    }

    pub(crate) fn fed(&mut self, now: Time, input: &Input) {
        self.write_if_much();
        if self.file.is_some() {
            self.recorder.fed(now, input);
        }
    }

    pub(crate) fn woken(&mut self, now: Time) {
        self.write_if_much();
        if self.file.is_some() {
            self.recorder.woken(now);
        }
    }

    pub(crate) fn said(&mut self, output: &Output) {
        if self.file.is_some() {
            self.recorder.said(output);
        }
    }

    /// Writes what was gathered, and the end mark.
    pub(crate) fn end(&mut self) {
        if self.file.is_some() {
            self.recorder.end();
            self.write();
            self.file = None;
        }
    }

    /// Whether anything waits to be written.
    pub(crate) fn has_gathered(&self) -> bool {
        self.file.is_some() && self.recorder.waiting() > 0
    }

    fn write_if_much(&mut self) {
        if self.recorder.waiting() > GATHERED_BYTES {
            self.write();
        }
    }

    /// Writes what was gathered: a killed agent's recording lacks at most what the last gathering would have written.
    pub(crate) fn write(&mut self) {
        let bytes = self.recorder.take();
        let Some(file) = &mut self.file else { return };
        let length = bytes.len() as u64;
        if let Err(error) = file.write_all(&bytes) {
            tracing::warn!(%error, "the recording ends: its file cannot be written");
            self.file = None;
        } else if self.bytes_left < length {
            tracing::warn!("the recording ends: its file has grown to its bound");
            self.bytes_left = 0;
            self.recorder.end();
            let _ = file.write_all(&self.recorder.take());
            self.file = None;
        } else {
            self.bytes_left -= length;
        }
    }
}
