//! Channel of a program's messages: a socket of this machine, or a stream over QUIC.

use std::io;
use std::time::Duration;

use weft_link::Pipe;

use crate::socket::Socket;

/// How long a program that is sent away has to take the reason.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The agent's end of a connection. Its two kinds differ in nothing that the agent does with them.
#[derive(Debug)]
pub(crate) enum Channel {
    Unix(Socket),
    Quic(Pipe),
}

impl Channel {
    /// Waits for bytes; 0 at the end. Nothing is lost when the wait is given up.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(buffer).await,
            Self::Quic(pipe) => pipe.read(buffer).await,
        }
    }

    /// Writes what there is room for, without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.try_write(bytes),
            Self::Quic(pipe) => pipe.try_write(bytes),
        }
    }

    /// Waits for room to write.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.writable().await,
            Self::Quic(pipe) => pipe.writable().await,
        }
    }

    /// Waits until the other end has all that was written. A socket's buffer outlives its writer; a QUIC connection's
    /// does not.
    pub(crate) async fn finish(&self) {
        match self {
            Self::Unix(_) => {}
            Self::Quic(pipe) => pipe.finish(LAST_WORDS).await,
        }
    }
}
