//! One attached program: what it says, and what waits to be read by it.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;

use tokio::net::UnixStream;
use tokio::sync::Notify;
use weft_node::Client;
use weft_umad::{ClientMessage, Decoder, FrameError, ServerMessage, VERSION, encode_into};

use crate::agent::Agent;
use crate::socket::Socket;

/// More than this waits for a program that does not read: further MADs are dropped and counted.
const OUTGOING_BYTES_MAX: usize = 4 << 20;
/// A program that made the agent drop this many MADs is sent away.
const DROPS_MAX: u64 = 4096;
const READ_BYTES: usize = 32 * 1024;

/// The agent's side of a connection.
#[derive(Debug)]
pub(crate) struct Program {
    socket: Socket,
    outgoing: RefCell<Outgoing>,
    /// Signalled when the socket takes no more, or the connection is to end.
    blocked: Notify,
    /// The attachment, once it stands.
    attached: Cell<Option<Client>>,
}

#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// In the agent's list of programs to be written to.
    noted: bool,
    /// The socket's buffer is full.
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
    fn new(socket: Socket) -> Self {
        Self { socket, outgoing: RefCell::default(), blocked: Notify::new(), attached: Cell::new(None) }
    }

    /// Which attachment this is.
    pub(crate) fn attached(&self) -> Option<Client> {
        self.attached.get()
    }

    pub(crate) fn set_attached(&self, client: Option<Client>) {
        self.attached.set(client);
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

    /// Writes what the socket takes.
    pub(crate) fn flush(&self) {
        let outgoing = &mut *self.outgoing.borrow_mut();
        outgoing.noted = false;
        outgoing.full = false;
        while let Some(rest) = outgoing.bytes.get(outgoing.written..).filter(|rest| !rest.is_empty()) {
            match self.socket.try_write(rest) {
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
    fn over(&self) -> Option<u64> {
        let outgoing = self.outgoing.borrow();
        let slow = outgoing.dropped >= DROPS_MAX;
        (outgoing.closing && (slow || outgoing.bytes.is_empty())).then_some(outgoing.dropped)
    }

    /// Waits until there is something to write and room for it, or the connection is to end.
    async fn unblocked(&self) {
        while self.over().is_none() {
            if !self.outgoing.borrow().full {
                self.blocked.notified().await;
                continue;
            }
            tokio::select! {
                ready = self.socket.writable() => {
                    // Without a descriptor to watch there is no way to know; let it go rather than spin.
                    self.outgoing.borrow_mut().closing |= ready.is_err();
                    return;
                }
                () = self.blocked.notified() => {}
            }
        }
    }
}

/// Serves one connection until either side ends it.
pub(crate) async fn serve(agent: Rc<Agent>, stream: UnixStream) {
    let Ok(socket) = stream.into_std().and_then(Socket::new) else { return };
    let program = Rc::new(Program::new(socket));
    let mut decoder = Decoder::new();
    let mut buffer = vec![0; READ_BYTES];
    while program.over().is_none() {
        let busy = tokio::select! {
            read = program.socket.read(&mut buffer) => {
                let Some(bytes) = read.ok().and_then(|n| buffer.get(..n)).filter(|b| !b.is_empty()) else {
                    break;
                };
                decoder.feed(bytes);
                bytes.len() == READ_BYTES
            }
            () = program.unblocked() => {
                program.flush();
                continue;
            }
        };
        if let Err(error) = take_messages(&agent, &program, &mut decoder) {
            let reason = error.to_string();
            agent.with_core(|core| {
                core.recorder.count("program_frames_malformed");
                core.say(&program, &ServerMessage::Refused { reason });
            });
            break;
        }
        if busy {
            // A program that never stops writing must not keep the links waiting.
            tokio::task::yield_now().await;
        }
    }
    agent.with_core(|core| core.program_gone(&program));
    if let Some(dropped) = program.over().filter(|dropped| *dropped > 0) {
        agent.with_core(|core| core.recorder.slow_client(dropped));
    }
}

fn take_messages(
    agent: &Rc<Agent>,
    program: &Rc<Program>,
    decoder: &mut Decoder<ClientMessage>,
) -> Result<(), FrameError> {
    agent.with_core(|core| {
        while let Some(message) = decoder.next_message()? {
            match message {
                ClientMessage::Send(mad) => core.program_sends(program, mad),
                ClientMessage::Attach { version: VERSION, node, port, registrations } => {
                    core.program_attaches(program, node, port, registrations);
                }
                ClientMessage::Attach { version, .. } => core.refuse(
                    program,
                    format!("version {version} of the protocol is not spoken here, version {VERSION} is"),
                ),
            }
        }
        Ok(())
    })
}
