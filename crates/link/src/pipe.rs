//! A client's stream for an agent that writes without waiting, as it writes to a socket.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use quinn::{RecvStream, SendStream};
use tokio::io::{AsyncRead as _, AsyncWrite, ReadBuf};
use tokio::time::timeout;

/// Both directions of a client's stream. QUIC's flow control bounds what lies between the two ends.
#[derive(Debug)]
pub struct Pipe {
    receive: RefCell<RecvStream>,
    send: RefCell<SendStream>,
}

impl Pipe {
    pub(crate) fn new(receive: RecvStream, send: SendStream) -> Self {
        Self { receive: RefCell::new(receive), send: RefCell::new(send) }
    }

    /// Waits for bytes; 0 at the end. Nothing is lost when the wait is given up.
    ///
    /// # Errors
    /// When the connection has broken.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| {
            let mut filled = ReadBuf::new(buffer);
            ready!(Pin::new(&mut *self.receive.borrow_mut()).poll_read(context, &mut filled))?;
            Poll::Ready(Ok(filled.filled().len()))
        })
        .await
    }

    /// Writes what there is room for, without waiting.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when there is no room, others when the connection has broken.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.poll_write(&mut Context::from_waker(Waker::noop()), bytes);
        match written {
            Poll::Ready(written) => written,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits for room to write.
    ///
    /// # Errors
    /// When the connection has broken.
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_write(context, &[])).await.map(drop)
    }

    /// Says that nothing more comes, and waits until the client has all that was written, at most for `patience`.
    pub async fn finish(&self, patience: Duration) {
        let stopped = {
            let mut send = self.send.borrow_mut();
            // Refused for a stream that has ended otherwise.
            let _ = send.finish();
            send.stopped()
        };
        let _ = timeout(patience, stopped).await;
    }

    fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut *self.send.borrow_mut()), context, bytes)
    }
}
