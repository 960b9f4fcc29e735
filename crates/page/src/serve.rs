//! The page's server and the recorder of tapes, each until its process has enough.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::Registry;
use tokio::runtime::{Builder, LocalOptions};
use weft_metrics::{Counts, Guard, serve_site};

use crate::http::Pages;
use crate::ring::Mark;
use crate::stage::{Counts as StageCounts, Line, Reader, Stage};
use crate::state::State;
use crate::tape::{Recorder, TapeError};

/// How soon a recorder sees that it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// What is written is given to the system at least this often.
const FLUSH: Duration = Duration::from_secs(2);

/// Serves the page at a socket of the loopback, for ever.
///
/// # Errors
/// When the system refuses a runtime or the socket.
pub fn serve(listener: TcpListener, pages: Pages) -> io::Result<()> {
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    listener.set_nonblocking(true)?;
    let counts = Counts::new(pages.registry());
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        serve_site(listener, Guard::loopback(), counts, pages).await;
        Ok(())
    })
}

/// Writes what a stage shows onto a tape, until `has_enough` says so. Returns whether the tape has reached its bound before.
///
/// # Errors
/// When it cannot be written.
pub fn record<W: Write>(
    stage: &Arc<Stage>,
    tape: &mut Recorder<W>,
    has_enough: impl Fn() -> bool,
) -> Result<bool, TapeError> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let mut reader = stage.recorder();
    let (mut flushed, mut marks) = (Instant::now(), 0);
    while !has_enough() {
        let line = runtime.block_on(async { tokio::time::timeout(LOOK, reader.next()).await.ok() });
        match line.map_or(Ok(()), |line| push(stage, tape, &mut marks, &line)) {
            Err(TapeError::Full(_)) => {
                tape.flush()?;
                return Ok(true);
            }
            pushed => pushed?,
        }
        if flushed.elapsed() >= FLUSH {
            tape.flush()?;
            flushed = Instant::now();
        }
    }
    end(stage, tape, marks)
}

/// Writes a line; before a key, what has happened since the one before. `marks`: how many of them are on the tape.
fn push<W: Write>(
    stage: &Stage,
    tape: &mut Recorder<W>,
    marks: &mut u64,
    line: &Line,
) -> Result<(), TapeError> {
    if line.is_key {
        let (new, all) = stage.marks_behind(*marks);
        *marks = all;
        tape.mark(new);
    }
    tape.push(line)
}

/// Ends a tape with a key, where something has happened since the last one. Returns whether there was no room for it.
fn end<W: Write>(stage: &Stage, tape: &mut Recorder<W>, marks: u64) -> Result<bool, TapeError> {
    let (new, all) = stage.marks_behind(marks);
    let mut is_full = false;
    if let Some(key) = stage.key_line().filter(|_| !new.is_empty()) {
        let mut marks = all;
        tape.mark(new);
        match push(stage, tape, &mut marks, &key) {
            Err(TapeError::Full(_)) => is_full = true,
            pushed => pushed?,
        }
    }
    tape.flush()?;
    Ok(is_full)
}

/// Writes states onto a tape as they are shown, by the thread that shows them: of a clock that waits for the tape.
#[derive(Debug)]
pub struct Film<W: Write> {
    stage: Arc<Stage>,
    reader: Reader,
    tape: Recorder<W>,
    marks: u64,
}

impl<W: Write> Film<W> {
    /// Begins on a new tape.
    pub fn new(tape: Recorder<W>) -> Self {
        let stage = Stage::new(StageCounts::new(&Registry::new()));
        Self { reader: stage.recorder(), stage, tape, marks: 0 }
    }

    /// The state is this one now, and that has happened.
    ///
    /// # Errors
    /// When it cannot be written, or the tape has reached its bound.
    pub fn show(&mut self, state: State, marks: Vec<Mark>) -> Result<(), TapeError> {
        self.stage.show(state, marks);
        while let Some(line) = self.reader.take() {
            push(&self.stage, &mut self.tape, &mut self.marks, &line)?;
        }
        Ok(())
    }

    /// Ends the tape; how many bytes it has.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self) -> Result<u64, TapeError> {
        end(&self.stage, &mut self.tape, self.marks)?;
        Ok(self.tape.written())
    }
}
