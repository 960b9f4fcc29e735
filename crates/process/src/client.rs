//! The blocking client of verbs.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_control::{
    Answer, Error, Event, LineDecoder, LineError, REPLY_BYTES_MAX, ReplyBody, ReplyLine, Request, RequestLine,
};

/// Events kept while an answer is awaited; a client that asks much while it listens reads them first.
const EVENTS_KEPT_MAX: usize = 65_536;

/// Why a process gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No process listens there.
    #[error("cannot connect to {}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection to the process broke")]
    Io(#[from] std::io::Error),
    /// The process closed the connection.
    #[error("the process closed the connection")]
    Closed,
    /// No answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The process will not do it.
    #[error(transparent)]
    Refused(#[from] Error),
    /// A line is too long.
    #[error("an answer makes no sense")]
    Line(#[from] LineError),
    /// A line is no reply.
    #[error("an answer makes no sense")]
    Reply(#[from] serde_json::Error),
    /// An answer fits another request.
    #[error("the answer is not one to `{0}`")]
    Unexpected(&'static str),
    /// More events came than are kept while an answer is awaited.
    #[error("too many events wait to be read")]
    TooManyEvents,
}

/// A connection to a process's control socket.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    decoder: LineDecoder,
    events: VecDeque<Event>,
    next_id: u64,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Client {
    /// Connects to a process.
    ///
    /// # Errors
    /// [`ClientError::Connect`] when no process listens there.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(path)
            .map_err(|source| ClientError::Connect { path: path.to_owned(), source })?;
        Ok(Self { stream, decoder: LineDecoder::new(REPLY_BYTES_MAX), events: VecDeque::new(), next_id: 1 })
    }

    /// Asks, and waits for the answer. Events that arrive meanwhile are kept for [`Client::next_event`].
    ///
    /// # Errors
    /// The process's own error as [`ClientError::Refused`], or what broke.
    pub fn ask(&mut self, request: Request, patience: Duration) -> Result<Answer, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let deadline = Instant::now() + patience;
        self.stream.set_write_timeout(Some(patience))?;
        let line = RequestLine { id, request }.to_line();
        self.stream.write_all(line.as_bytes()).map_err(|error| late(error, patience))?;
        loop {
            let reply = self.reply(deadline)?.ok_or(ClientError::TimedOut(patience))?;
            match reply.body {
                ReplyBody::Answer(answer) if reply.id == Some(id) => return Ok(*answer),
                ReplyBody::Error(error) if reply.id.is_none_or(|own| own == id) => return Err(error.into()),
                ReplyBody::Event(event) => self.events.push_back(*event),
                // Of a request that was given up.
                _ => {}
            }
            if self.events.len() > EVENTS_KEPT_MAX {
                return Err(ClientError::TooManyEvents);
            }
        }
    }

    /// The next event, `None` when none came within `patience`.
    ///
    /// # Errors
    /// What broke.
    pub fn next_event(&mut self, patience: Duration) -> Result<Option<Event>, ClientError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            match self.reply(deadline)? {
                None => return Ok(None),
                Some(ReplyLine { body: ReplyBody::Event(event), .. }) => return Ok(Some(*event)),
                Some(_) => {}
            }
        }
    }

    /// The next line, `None` when none came before the deadline. What is there already is taken in any case.
    fn reply(&mut self, deadline: Instant) -> Result<Option<ReplyLine>, ClientError> {
        let mut piece = [0; 64 * 1024];
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Ok(Some(ReplyLine::parse(&line?)?));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // A time of zero would wait for ever.
            self.stream.set_nonblocking(left.is_zero())?;
            self.stream.set_read_timeout((!left.is_zero()).then_some(left))?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(count) => self.decoder.feed(piece.get(..count).unwrap_or_default()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    self.stream.set_nonblocking(false)?;
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            self.stream.set_nonblocking(false)?;
        }
    }
}

fn late(error: std::io::Error, patience: Duration) -> ClientError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::TimedOut(patience),
        ErrorKind::BrokenPipe => ClientError::Closed,
        _ => error.into(),
    }
}
