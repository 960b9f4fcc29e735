//! The writer of a tape.

use std::io::Write;

use super::{Frame, FrameLine, Head, LINE_BYTES_MAX, MARKS_MAX, TapeError, VERSION};
use crate::ring::Mark;
use crate::stage::Line;

/// What a tape may take unless something else is wanted.
pub const TAPE_BYTES_MAX: u64 = 4 << 30;

/// Writes a tape. Whatever it has written whole can be read, wherever it ends.
#[derive(Debug)]
pub struct Recorder<W> {
    to: W,
    written: u64,
    bytes_max: u64,
    before: u64,
    has_key: bool,
    marks: Vec<Mark>,
}

impl<W: Write> Recorder<W> {
    /// Begins a tape of a laboratory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(to: W, lab: &str, began_ms: u64, bytes_max: u64) -> Result<Self, TapeError> {
        let head = Head { tape: u64::from(VERSION), lab: lab.to_owned(), began_ms };
        let (written, before, has_key, marks) = (0, 0, false, Vec::new());
        let mut recorder = Self { to, written, bytes_max, before, has_key, marks };
        recorder.write(&serde_json::to_string(&head).map_err(std::io::Error::from)?)?;
        Ok(recorder)
    }

    /// Notes what a time bar is to show.
    pub fn mark(&mut self, marks: impl IntoIterator<Item = Mark>) {
        self.marks.extend(marks);
        // The newest of too many: each says what led to it.
        let extra = self.marks.len().saturating_sub(MARKS_MAX);
        self.marks.drain(..extra);
    }

    /// Appends a line of the stage.
    ///
    /// # Errors
    /// When it cannot be written, or the tape would be longer than it may be: then it ends with the line before.
    pub fn push(&mut self, line: &Line) -> Result<(), TapeError> {
        // Nothing can be made of changes before the first state.
        if !line.is_key && !self.has_key {
            return Ok(());
        }
        if line.json.len() >= LINE_BYTES_MAX {
            return Err(TapeError::TooLong(self.written));
        }
        if line.is_key {
            if !self.has_key {
                // What has happened before the tape is not shown.
                self.marks.retain(|mark| mark.at_ms >= line.at_ms);
            }
            let at = self.written;
            let frame = Frame { before: self.before, marks: std::mem::take(&mut self.marks) };
            let text = serde_json::to_string(&FrameLine { at_ms: line.at_ms, frame });
            let text = text.map_err(std::io::Error::from)?;
            self.fits(text.len() + line.json.len() + 2)?;
            self.write(&text)?;
            (self.before, self.has_key) = (at, true);
        }
        self.write(&line.json)
    }

    /// How many bytes it has.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Has the system take all of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), TapeError> {
        Ok(self.to.flush()?)
    }

    fn fits(&self, more: usize) -> Result<(), TapeError> {
        let fits = self.written + more as u64 <= self.bytes_max;
        if fits { Ok(()) } else { Err(TapeError::Full(self.bytes_max)) }
    }

    fn write(&mut self, line: &str) -> Result<(), TapeError> {
        self.fits(line.len() + 1)?;
        self.to.write_all(line.as_bytes())?;
        self.to.write_all(b"\n")?;
        self.written += line.len() as u64 + 1;
        Ok(())
    }
}
