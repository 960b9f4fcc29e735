//! One attached program: what it says, and what waits to be read by it.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;

use tokio::sync::Notify;
use weft_node::{Client, PortId};
use weft_umad::{ServerMessage, encode_into};
use weft_wire::Guid;

use crate::channel::Channel;

/// More than this waits for a program that does not read: further MADs are dropped and counted.
const OUTGOING_BYTES_MAX: usize = 4 << 20;
/// A program that made the agent drop this many MADs is sent away.
const DROPS_MAX: u64 = 4096;

/// The agent's side of a connection.
#[derive(Debug)]
pub(crate) struct Program {
    channel: Channel,
    /// What its certificate says, if it came over the network. A program of this machine may attach to any node here.
    visitor: Option<Holder>,
    outgoing: RefCell<Outgoing>,
    /// Signalled when the channel takes no more, or the connection is to end.
    blocked: Notify,
    /// The attachment, once it stands.
    attached: Cell<Option<(Client, PortId)>>,
}

/// What the certificate of a program says.
#[derive(Debug)]
pub(crate) enum Holder {
    /// It may attach to any node, as often as it likes.
    Operator,
    /// It is one process of the laboratory.
    Manager {
        role: Option<String>,
        /// The nodes that it may attach to.
        attaches: Vec<Guid>,
    },
}

#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// In the agent's list of programs to be written to.
    noted: bool,
    /// The channel takes no more for now.
    full: bool,
    /// Nothing more is to be read or written after what waits.
    closing: bool,
    dropped: u64,
}

/// What became of a message for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// It waits, and the program has to be noted for writing.
    ToBeNoted,
    /// There is nothing to be done: the program is noted already, or is to go.
    No,
    /// A MAD too many.
    Dropped,
}

impl Outgoing {
    fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// A program that reads steadily but never all must not make the buffer grow. Each byte is moved at most once
    /// for every one that is forgotten.
    fn forget_written(&mut self) {
        if self.written >= self.waiting() {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

impl Program {
    pub(crate) fn new(channel: Channel, visitor: Option<Holder>) -> Self {
        let (outgoing, blocked, attached) = (RefCell::default(), Notify::new(), Cell::new(None));
        Self { channel, visitor, outgoing, blocked, attached }
    }

    /// Which attachment this is.
    pub(crate) fn attached(&self) -> Option<Client> {
        self.attached.get().map(|(client, _)| client)
    }

    pub(crate) fn set_attached(&self, attached: Option<(Client, PortId)>) {
        self.attached.set(attached);
    }

    /// Whether it may attach to a node.
    pub(crate) fn may_attach(&self, node: Guid) -> bool {
        match &self.visitor {
            Some(Holder::Manager { attaches, .. }) => attaches.contains(&node),
            _ => self.may_attach_anywhere(),
        }
    }

    /// Whether it may attach to any node here.
    pub(crate) fn may_attach_anywhere(&self) -> bool {
        matches!(self.visitor, None | Some(Holder::Operator))
    }

    /// Whether a message finds room that is no MAD, and so is never dropped.
    pub(crate) fn has_room(&self) -> bool {
        self.outgoing.borrow().waiting() <= OUTGOING_BYTES_MAX
    }

    /// Whether this is the attachment of the same role at the same port: a process has one identity, so it is the life
    /// before of the process that `other` has come from.
    pub(crate) fn precedes(&self, other: &Self, at: PortId) -> bool {
        let role = |program: &Self| match &program.visitor {
            Some(Holder::Manager { role, .. }) => Some(role.clone()),
            None | Some(Holder::Operator) => None,
        };
        let is_there = self.attached.get().is_some_and(|(_, own)| own == at);
        is_there && role(self).is_some() && role(self) == role(other)
    }

    /// Waits for bytes; 0 at the end.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.channel.read(buffer).await
    }

    /// Waits until the other end has what was written last.
    pub(crate) async fn finish(&self) {
        self.channel.finish().await;
    }

    /// Gathers a message.
    pub(crate) fn queue(&self, message: &ServerMessage) -> Queued {
        let outgoing = &mut *self.outgoing.borrow_mut();
        let is_mad = matches!(message, ServerMessage::Receive(_));
        if outgoing.closing {
            return Queued::No;
        }
        if is_mad && outgoing.waiting() > OUTGOING_BYTES_MAX {
            outgoing.dropped += 1;
            outgoing.closing = outgoing.dropped >= DROPS_MAX;
            if outgoing.closing {
                self.blocked.notify_one();
            }
            return Queued::Dropped;
        }
        if encode_into(message, &mut outgoing.bytes).is_err() {
            // Longer than any frame may be: no program could read it, and it waits for an answer in vain.
            outgoing.closing = true;
        }
        if std::mem::replace(&mut outgoing.noted, true) { Queued::No } else { Queued::ToBeNoted }
    }

    /// Ends the connection after what waits.
    pub(crate) fn close(&self) {
        self.outgoing.borrow_mut().closing = true;
        self.blocked.notify_one();
    }

    /// Writes what the channel takes.
    pub(crate) fn flush(&self) {
        let outgoing = &mut *self.outgoing.borrow_mut();
        outgoing.noted = false;
        outgoing.full = false;
        while let Some(rest) = outgoing.bytes.get(outgoing.written..).filter(|rest| !rest.is_empty()) {
            match self.channel.try_write(rest) {
                Ok(bytes) if bytes > 0 => outgoing.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    outgoing.full = true;
                    outgoing.forget_written();
                    self.blocked.notify_one();
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => {
                    outgoing.closing = true;
                    self.blocked.notify_one();
                    break;
                }
            }
        }
        outgoing.bytes.clear();
        outgoing.written = 0;
    }

    /// Whether the connection is over and, if so, how many MADs it lost by not reading.
    pub(crate) fn over(&self) -> Option<u64> {
        let outgoing = self.outgoing.borrow();
        let slow = outgoing.dropped >= DROPS_MAX;
        (outgoing.closing && (slow || outgoing.bytes.is_empty())).then_some(outgoing.dropped)
    }

    /// Waits until there is something to write and room for it, or the connection is to end.
    pub(crate) async fn unblocked(&self) {
        while self.over().is_none() {
            if !self.outgoing.borrow().full {
                self.blocked.notified().await;
                continue;
            }
            tokio::select! {
                ready = self.channel.writable() => {
                    // Without a descriptor to watch there is no way to know; let it go rather than spin.
                    self.outgoing.borrow_mut().closing |= ready.is_err();
                    return;
                }
                () = self.blocked.notified() => {}
            }
        }
    }
}
