//! The blocking side of an attachment.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

use crate::{Attached, ClientMessage, Decoder, FrameError, ServerMessage, VERSION, encode_into};

/// An agent that takes no byte for this long is taken for stuck.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Why talking to an agent failed.
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
    #[error("the connection to the agent broke")]
    Io(#[from] std::io::Error),
    /// The agent closed the connection.
    #[error("the agent closed the connection")]
    Closed,
    /// The agent refused.
    #[error("the agent refused: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// No answer in time.
    #[error("no answer from the agent within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The agent did not answer the attachment.
    #[error("the agent sent something else than an answer")]
    Unexpected,
    /// A frame was no message.
    #[error("the agent's answer makes no sense")]
    Frame(#[from] FrameError),
}

/// A connection to an agent.
///
/// `send` only gathers; `flush` writes. While a flush waits for room it keeps reading, so that an agent and a
/// program with full buffers never wait for each other.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    decoder: Decoder<ServerMessage>,
    outgoing: Vec<u8>,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Client {
    /// Connects to an agent's socket.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let connected = UnixStream::connect(path).and_then(Self::over);
        connected.map_err(|source| ClientError::Connect { path: path.to_owned(), source })
    }

    /// Takes a connection that was made before: the near end of one over QUIC.
    ///
    /// # Errors
    /// When the system does not let the stream be read without waiting.
    pub fn over(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, decoder: Decoder::new(), outgoing: Vec::new() })
    }

    /// Attaches to a port and waits for the agent's word.
    pub fn attach(
        &mut self,
        node: Guid,
        port: PortNum,
        registrations: Vec<Registration>,
        timeout: Duration,
    ) -> Result<Attached, ClientError> {
        self.queue(&ClientMessage::Attach { version: VERSION, node, port, registrations })?;
        self.flush()?;
        match self.recv(timeout)? {
            Some(ServerMessage::Attached(attached)) => Ok(attached),
            Some(ServerMessage::Refused { reason }) => Err(ClientError::Refused { reason }),
            // The agent answers before it sends anything else.
            Some(_) => Err(ClientError::Unexpected),
            None => Err(ClientError::TimedOut(timeout)),
        }
    }

    /// Gathers one MAD for the next [`Client::flush`].
    pub fn send(&mut self, mad: &AddressedMad) -> Result<(), ClientError> {
        self.queue(&ClientMessage::Send(*mad))
    }

    /// Writes all that was gathered.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        let mut written = 0;
        while written < self.outgoing.len() {
            match self.stream.write(&self.outgoing[written..]) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let ready = wait(&self.stream, PollFlags::IN | PollFlags::OUT, FLUSH_TIMEOUT)?;
                    if ready.is_empty() {
                        return Err(ClientError::TimedOut(FLUSH_TIMEOUT));
                    }
                    if ready.contains(PollFlags::IN) {
                        self.read_ready()?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.outgoing.clear();
        Ok(())
    }

    /// The next message that is there already, without waiting.
    pub fn try_recv(&mut self) -> Result<Option<ServerMessage>, ClientError> {
        if let Some(message) = self.buffered()? {
            return Ok(Some(message));
        }
        self.read_ready()?;
        self.buffered()
    }

    /// The next message, `None` when none came within `timeout`.
    pub fn recv(&mut self, timeout: Duration) -> Result<Option<ServerMessage>, ClientError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(message) = self.try_recv()? {
                return Ok(Some(message));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            wait(&self.stream, PollFlags::IN, left)?;
        }
    }

    fn queue(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        Ok(encode_into(message, &mut self.outgoing)?)
    }

    /// The next message that was read already: no system call.
    pub fn buffered(&mut self) -> Result<Option<ServerMessage>, ClientError> {
        Ok(self.decoder.next_message()?)
    }

    /// Reads once without waiting, for whoever polls the descriptor; then take all that is [`Client::buffered`].
    pub fn read_ready(&mut self) -> Result<(), ClientError> {
        let mut bytes = [0; 32 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(ClientError::Closed),
            Ok(count) => {
                self.decoder.feed(&bytes[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits until the socket is ready for one of `flags`, at most `timeout`; tells for which it is.
fn wait(socket: &impl AsFd, flags: PollFlags, timeout: Duration) -> std::io::Result<PollFlags> {
    let timeout = Timespec::try_from(timeout).ok();
    let mut fds = [PollFd::new(socket, flags)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(fds[0].revents()),
        Err(error) => Err(error.into()),
    }
}
