//! The page's server and the recorder of tapes, each until its process has enough.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions};
use weft_metrics::{Counts, Guard, serve_site};

use crate::http::Pages;
use crate::stage::Stage;
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
    let (mut flushed, mut marked_ms) = (Instant::now(), 0);
    while !has_enough() {
        let line = runtime.block_on(async { tokio::time::timeout(LOOK, reader.next()).await.ok() });
        if let Some(line) = line {
            if line.is_key {
                let marks = stage.span().marks.into_iter().filter(|mark| mark.at_ms > marked_ms);
                let marks: Vec<_> = marks.collect();
                marked_ms = marks.iter().map(|mark| mark.at_ms).max().unwrap_or(marked_ms);
                tape.mark(marks);
            }
            match tape.push(&line) {
                Err(TapeError::Full(_)) => {
                    tape.flush()?;
                    return Ok(true);
                }
                pushed => pushed?,
            }
        }
        if flushed.elapsed() >= FLUSH {
            tape.flush()?;
            flushed = Instant::now();
        }
    }
    tape.flush()?;
    Ok(false)
}
