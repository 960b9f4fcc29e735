//! The agent's UDP socket.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::watch::watch;

/// Datagrams taken with one system call.
const BATCH: usize = 8;

/// Watched for reading only. That it can be written to is asked for when it once could not.
#[derive(Debug)]
pub(super) struct Socket {
    readable: AsyncFd<UdpSocket>,
    state: UdpSocketState,
    /// A packet found no room and no one has found any since. QUIC asks before every packet it sends.
    full: AtomicBool,
}

impl Socket {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { readable: watch(socket, Interest::READABLE)?, state, full: AtomicBool::new(false) })
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable { socket: self, watched: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.state.send(self.readable.get_ref().into(), transmit);
        if sent.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            self.full.store(true, Relaxed);
        }
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let batch = bufs.len().min(meta.len()).min(BATCH);
        let (Some(bufs), Some(meta)) = (bufs.get_mut(..batch), meta.get_mut(..batch)) else {
            return Poll::Ready(Ok(0));
        };
        loop {
            let mut ready = ready!(self.readable.poll_read_ready(cx))?;
            match self.state.recv(self.readable.get_ref().into(), bufs, meta) {
                Ok(count) => {
                    // Fewer than asked for: there are no more, and asking again would tell just that. What comes
                    // meanwhile raises a new edge.
                    if count < batch {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.readable.get_ref().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Waits for room to send, which there nearly always is.
#[derive(Debug)]
struct Writable {
    socket: Arc<Socket>,
    /// A second descriptor of the same socket, only while there is no room.
    watched: Option<AsyncFd<UdpSocket>>,
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.socket.full.load(Relaxed) {
            self.watched = None;
            return Poll::Ready(Ok(()));
        }
        let watched = match self.watched.take() {
            Some(watched) => watched,
            None => watch(self.socket.readable.get_ref().try_clone()?, Interest::WRITABLE)?,
        };
        if watched.poll_write_ready(cx)?.is_ready() {
            self.socket.full.store(false, Relaxed);
            return Poll::Ready(Ok(()));
        }
        self.watched = Some(watched);
        Poll::Pending
    }
}
