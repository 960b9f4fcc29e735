//! A program's socket, watched for reading only.
//!
//! tokio's own stream is watched for both, and then every read at the other end wakes the agent to tell it that it
//! may write again. A program and its agent talk in small messages back and forth, so that would double the wake-ups.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The agent's end of a connection.
#[derive(Debug)]
pub(crate) struct Socket {
    readable: AsyncFd<UnixStream>,
}

impl Socket {
    /// Takes a stream that does not block.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        Ok(Self { readable: watch(stream, Interest::READABLE)? })
    }

    /// Waits for bytes; 0 at the end. Nothing is lost when the wait is given up.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.readable.readable().await?;
            match self.readable.get_ref().read(buffer) {
                Ok(count) => {
                    // Fewer than there was room for: asking again would only tell that there are no more.
                    if count < buffer.len() {
                        ready.clear_ready();
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what there is room for, without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.readable.get_ref().write(bytes)
    }

    /// Waits for room to write, with a second descriptor for as long as it takes.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        let watched = watch(self.readable.get_ref().try_clone()?, Interest::WRITABLE)?;
        watched.writable().await.map(drop)
    }
}

/// Watches what owns a descriptor and keeps it open.
pub(crate) fn watch<S: AsRawFd>(socket: S, interest: Interest) -> io::Result<AsyncFd<S>> {
    // Each of weft's owns its descriptor and keeps it open, which is what the deprecation is about; the replacement
    // is `unsafe`, which weft does not use.
    #[expect(deprecated, reason = "see above")]
    AsyncFd::with_interest(socket, interest)
}
