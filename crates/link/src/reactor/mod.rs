//! QUIC's contact with the operating system: timers and the UDP socket.
//!
//! A laboratory may be hundreds of idle agents on two cores, so what matters is how often an agent is woken and how
//! many system calls that takes. quinn's own adapter for tokio costs more of both than it needs to: a write and a
//! wake-up whenever a timer is set to ring earlier, a wake-up after every packet sent (the socket is "writable
//! again"), a second read that finds nothing, and one timer after another where all could ring together.

mod socket;
mod timers;

use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};

use socket::Socket;
use timers::{Timer, Timers};

/// quinn's view of the current thread's tokio runtime.
#[derive(Debug)]
pub(crate) struct Reactor {
    timers: Arc<Timers>,
}

impl Reactor {
    /// Needs a runtime in which `spawn_local` works.
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self { timers: Timers::start()? })
    }
}

impl Runtime for Reactor {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer::new(&self.timers, deadline))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        tokio::spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(Socket::new(socket)?))
    }
}
