//! The blocking client of verbs.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weft_control::{
    Answer, Error, Event, LineDecoder, LineError, REPLY_BYTES_MAX, ReplyBody, ReplyLine, Request, RequestLine,
};

use crate::utc_now;

/// Lines kept while an answer is awaited; a client that asks much while it listens reads them first.
const SET_ASIDE_MAX: usize = 65_536;
/// A process that takes no byte for this long is taken for stuck.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

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

/// The error of an answer that does not fit the request.
///
/// # Errors
/// Always.
pub fn unexpected<T, E: From<ClientError>>(request: &'static str) -> Result<T, E> {
    Err(ClientError::Unexpected(request).into())
}

/// A whole list, page by page. `ask` asks for what is behind an item, and tells whether more follows.
///
/// # Errors
/// When `ask` fails.
pub fn all_pages<T, E>(mut ask: impl FnMut(Option<&T>) -> Result<(Vec<T>, bool), E>) -> Result<Vec<T>, E> {
    let mut all = Vec::new();
    loop {
        let (page, more) = ask(all.last())?;
        let is_last = !more || page.is_empty();
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

/// A connection to a process's control socket.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    decoder: LineDecoder,
    /// What came while an answer was awaited.
    set_aside: VecDeque<ReplyLine>,
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
        let stream = UnixStream::connect(path);
        let connect = |source| ClientError::Connect { path: path.to_owned(), source };
        Self::over(stream.map_err(connect)?)
    }

    /// Talks over a stream that leads to a process.
    ///
    /// # Errors
    /// When the stream cannot be made non-blocking.
    pub fn over(stream: UnixStream) -> Result<Self, ClientError> {
        stream.set_nonblocking(true)?;
        let (decoder, set_aside) = (LineDecoder::new(REPLY_BYTES_MAX), VecDeque::new());
        Ok(Self { stream, decoder, set_aside, next_id: 1 })
    }

    /// Asks, and waits for the answer. What else arrives meanwhile is kept for [`Client::next_event`] and
    /// [`Client::next_line`].
    ///
    /// # Errors
    /// The process's own error as [`ClientError::Refused`], or what broke.
    pub fn ask(&mut self, request: Request, patience: Duration) -> Result<Answer, ClientError> {
        self.ask_with(request, patience, Some)
    }

    /// The same, but of what arrives meanwhile only what `keep` gives back is kept.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn ask_with(
        &mut self,
        request: Request,
        patience: Duration,
        mut keep: impl FnMut(ReplyLine) -> Option<ReplyLine>,
    ) -> Result<Answer, ClientError> {
        let deadline = Instant::now() + patience;
        let id = self.post(request)?;
        loop {
            let reply = self.read_line(deadline)?.ok_or(ClientError::TimedOut(patience))?;
            match reply.body {
                ReplyBody::Answer(answer) if reply.id == Some(id) => return Ok(*answer),
                ReplyBody::Error(error) if reply.id.is_none_or(|own| own == id) => return Err(error.into()),
                ReplyBody::Event(_) | ReplyBody::Captured(_) => self.set_aside.extend(keep(reply)),
                // Of a request that was given up.
                ReplyBody::Answer(_) | ReplyBody::Error(_) => {}
            }
            if self.set_aside.len() > SET_ASIDE_MAX {
                return Err(ClientError::TooManyEvents);
            }
        }
    }

    /// How many nanoseconds the process's wall clock is ahead of this process's, negative where it is behind; 0 where the
    /// two may agree.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn ahead_ns(&mut self, patience: Duration) -> Result<i64, ClientError> {
        let asked = utc_now();
        match self.ask(Request::Hello, patience)? {
            Answer::Hello(hello) => Ok(hello.time.ahead_of(asked, utc_now())),
            _ => Err(ClientError::Unexpected("hello")),
        }
    }

    /// Sends a request, and gives its number; [`Client::next_line`] brings the answer.
    ///
    /// # Errors
    /// What broke.
    pub fn post(&mut self, request: Request) -> Result<u64, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let line = RequestLine { id, request }.to_line();
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.wait_for(PollFlags::OUT, WRITE_TIMEOUT)? {
                        return Err(ClientError::TimedOut(WRITE_TIMEOUT));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(ClientError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(id)
    }

    /// The next event, `None` when none came within `patience`. Other lines are left out.
    ///
    /// # Errors
    /// What broke.
    pub fn next_event(&mut self, patience: Duration) -> Result<Option<Event>, ClientError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.line_until(deadline)? {
                None => return Ok(None),
                Some(ReplyLine { body: ReplyBody::Event(event), .. }) => return Ok(Some(*event)),
                Some(_) => {}
            }
        }
    }

    /// The next line of any kind, `None` when none came within `patience`.
    ///
    /// # Errors
    /// What broke.
    pub fn next_line(&mut self, patience: Duration) -> Result<Option<ReplyLine>, ClientError> {
        self.line_until(Instant::now() + patience)
    }

    fn line_until(&mut self, deadline: Instant) -> Result<Option<ReplyLine>, ClientError> {
        match self.set_aside.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.read_line(deadline),
        }
    }

    fn read_line(&mut self, deadline: Instant) -> Result<Option<ReplyLine>, ClientError> {
        Ok(self.next_raw(deadline)?.map(|line| ReplyLine::parse(&line)).transpose()?)
    }

    /// The next line as it came, without its end; `None` when none came before the deadline. What is there already is taken in
    /// any case. For a client that passes events on which it need not know; lines that [`Client::ask`] has set aside are not
    /// among them.
    ///
    /// # Errors
    /// What broke.
    pub fn next_raw(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>, ClientError> {
        let mut piece = [0; 64 * 1024];
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Ok(Some(line?));
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(count) => self.decoder.feed(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() || !self.wait_for(PollFlags::IN, left)? {
                        return Ok(None);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(ClientError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until the stream is ready; false when `patience` passed first.
    fn wait_for(&self, flags: PollFlags, patience: Duration) -> std::io::Result<bool> {
        let timeout = Timespec::try_from(patience).ok();
        match poll(&mut [PollFd::new(&self.stream, flags)], timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            // The caller looks again, and at its clock.
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
