//! One connection of libibumad's stand-in.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags, Shutdown, shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use weft_node::Client;
use weft_umad::user_mad::{Datagram, Incoming, REQUEST_BYTES_MAX, receive};

use crate::program::Queued;
use crate::socket::watch;

/// More than this waits for a program that does not read: further MADs are dropped and counted. One message that is
/// longer than this still fits in.
const OUTGOING_BYTES_MAX: usize = 8 << 20;
/// No more long messages than this wait, since each holds a descriptor.
const OUTGOING_FILES_MAX: usize = 128;

/// The two numbers of Linux that say "later".
const EAGAIN: i32 = 11;
pub(crate) const ETOOMANYREFS: i32 = 109;

/// The agent's side of a connection.
#[derive(Debug)]
pub(crate) struct Line {
    readable: AsyncFd<OwnedFd>,
    outgoing: RefCell<Outgoing>,
    /// Signalled when the socket takes no more.
    blocked: Notify,
    /// The open port that the connection is.
    open: Cell<Option<Client>>,
}

#[derive(Debug, Default)]
struct Outgoing {
    datagrams: VecDeque<Datagram>,
    bytes: usize,
    /// How many of them hold a descriptor.
    files: usize,
    /// In the agent's list of lines to be written to.
    noted: bool,
    /// The socket's buffer is full.
    full: bool,
    /// The other end has gone.
    gone: bool,
}

impl Line {
    /// Takes a socket that does not block.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let readable = watch(socket, Interest::READABLE)?;
        Ok(Self { readable, outgoing: RefCell::default(), blocked: Notify::new(), open: Cell::new(None) })
    }

    /// Which open port this is.
    pub(crate) fn open(&self) -> Option<Client> {
        self.open.get()
    }

    pub(crate) fn set_open(&self, client: Option<Client>) {
        self.open.set(client);
    }

    /// Waits until there is something to be read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.readable.readable().await.map(|mut ready| ready.retain_ready())
    }

    /// Takes one datagram, `None` when there is none.
    pub(crate) fn receive(&self, buffer: &mut [u8; REQUEST_BYTES_MAX]) -> io::Result<Option<Incoming>> {
        let taken = self.readable.try_io(Interest::READABLE, |socket| {
            loop {
                match receive(socket, buffer, RecvFlags::DONTWAIT) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    taken => return taken,
                }
            }
        });
        match taken {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Gathers a datagram. A control message is not dropped, but who asks on and reads no answer is sent away.
    pub(crate) fn queue(&self, datagram: Datagram, is_mad: bool) -> Queued {
        let outgoing = &mut *self.outgoing.borrow_mut();
        if outgoing.gone {
            return Queued::No;
        }
        let is_full = outgoing.bytes > OUTGOING_BYTES_MAX
            || (datagram.has_file() && outgoing.files >= OUTGOING_FILES_MAX);
        if is_mad && is_full {
            return Queued::Dropped;
        }
        if is_full {
            self.hang_up(outgoing);
            return Queued::No;
        }
        outgoing.bytes += datagram.size();
        outgoing.files += usize::from(datagram.has_file());
        outgoing.datagrams.push_back(datagram);
        if std::mem::replace(&mut outgoing.noted, true) { Queued::No } else { Queued::ToBeNoted }
    }

    /// Writes what the socket takes.
    pub(crate) fn flush(&self) {
        let outgoing = &mut *self.outgoing.borrow_mut();
        outgoing.noted = false;
        outgoing.full = false;
        while let Some(datagram) = outgoing.datagrams.front() {
            match datagram.send(self.readable.get_ref(), SendFlags::DONTWAIT) {
                Ok(()) => {
                    outgoing.bytes -= datagram.size();
                    outgoing.files -= usize::from(datagram.has_file());
                    outgoing.datagrams.pop_front();
                }
                // Either the socket or the system's number of files on their way is full.
                Err(error) if matches!(error.raw_os_error(), Some(EAGAIN | ETOOMANYREFS)) => {
                    outgoing.full = true;
                    self.blocked.notify_one();
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.hang_up(outgoing),
            }
        }
    }

    /// Ends the connection from this side.
    pub(crate) fn end(&self) {
        self.hang_up(&mut self.outgoing.borrow_mut());
    }

    /// Nothing more goes either way. Reading tells so too, and ends the connection.
    fn hang_up(&self, outgoing: &mut Outgoing) {
        *outgoing = Outgoing { gone: true, noted: outgoing.noted, ..Outgoing::default() };
        // A peer that has gone already needs no shutdown.
        let _ = shutdown(self.readable.get_ref(), Shutdown::Both);
    }

    /// Waits until there is something to write and room for it.
    pub(crate) async fn unblocked(&self) {
        loop {
            if self.outgoing.borrow().full {
                // Without a descriptor to watch there is no way to know: the next MAD tries again.
                let writable = async {
                    let socket = self.readable.get_ref().as_fd().try_clone_to_owned()?;
                    watch(socket, Interest::WRITABLE)?.writable().await.map(drop)
                };
                if writable.await.is_ok() {
                    return;
                }
                self.outgoing.borrow_mut().full = false;
            }
            self.blocked.notified().await;
        }
    }
}
