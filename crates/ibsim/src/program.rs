//! The program's side: an attachment to ibsim, or to a server that speaks like it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use weft_wire::{AddressedMad, Lid, NodeInfo, PortInfo, QpNum, Smp, TransactionId};

use crate::address::{Address, Socket};
use crate::codec::{CONTROL_BYTES, Command, Connect, Control, DATA_BYTES_MAX, Data, Form, Malformed, SLOTS};

/// MADs that wait until the server takes them; one more is dropped and counted.
const WAITING_MAX: usize = 4096;

/// Datagrams that a Unix socket holds where the kernel does not say otherwise.
const QUEUE_DEFAULT: u32 = 10;

/// How many requests may be without answer over UDP so that their answers all find room in a usual socket buffer.
pub const UDP_WINDOW: u32 = 64;

/// The same for a Unix socket (`net.unix.max_dgram_qlen`), with one place left for a trap.
pub fn local_window() -> u32 {
    let told = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").ok();
    // The kernel takes one more than it says.
    told.and_then(|text| text.trim().parse().ok()).unwrap_or(QUEUE_DEFAULT).max(1)
}

/// Why attaching to ibsim, or talking to it, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// No one serves there.
    #[error("nobody serves at {server}")]
    Connect {
        /// The server's control socket.
        server: Address,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The server is gone.
    #[error("the connection to the server broke")]
    Io(#[from] io::Error),
    /// The server will not do what was asked.
    #[error("the server refused {0:?}")]
    Refused(Command),
    /// No answer in time.
    #[error("no answer from the server within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// A datagram was no message.
    #[error("the server's answer makes no sense")]
    Malformed(#[from] Malformed),
}

/// What came from the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A MAD.
    Mad(AddressedMad),
    /// A request of ours that no one answers, as we sent it.
    Unanswered(AddressedMad),
}

/// A program attached to a port that a server of ibsim's protocol serves.
///
/// Nothing waits: what the server does not take at once stays here until [`Program::flush`]. ibsim itself waits in
/// its own sending while a program does not read, so a program must go on reading while it has something to send,
/// and have no more requests without answer than [`local_window`] or [`UDP_WINDOW`].
#[derive(Debug)]
pub struct Program {
    control: Socket,
    data: Socket,
    slot: u32,
    node: String,
    node_info: NodeInfo,
    port_info: PortInfo,
    waiting: VecDeque<Data>,
    dropped: u64,
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.data.as_fd()
    }
}

/// The sockets of a program, and the number by which the server finds the second.
struct Sockets {
    control: Socket,
    data: Socket,
    id: u32,
}

impl Sockets {
    /// Named after this process, and after a higher number when it is attached already.
    fn local(base: &str) -> io::Result<Self> {
        let mut id = std::process::id();
        loop {
            let bound = Socket::bind(&Address::named(base, &format!("ctl{id}")))
                .and_then(|control| Ok((control, Socket::bind(&Address::named(base, &format!("in{id}")))?)));
            match bound {
                Ok((control, data)) => return Ok(Self { control, data, id }),
                // Process numbers have 22 bits.
                Err(error) if error.kind() == ErrorKind::AddrInUse && id < 1 << 30 => id += 1 << 22,
                Err(error) => return Err(error),
            }
        }
    }

    fn udp(server: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let (control, data) = (Socket::bind(&Address::Udp(any))?, Socket::bind(&Address::Udp(any))?);
        let id = data.udp_port().unwrap_or(0).into();
        Ok(Self { control, data, id })
    }
}

impl Program {
    /// Attaches through the Unix sockets that begin with `name` to a node; an empty `node` is the server's choice.
    pub fn connect(name: &str, node: &str, timeout: Duration) -> Result<Self, ProgramError> {
        let out = |slot: u32| Address::named(name, &format!("out{slot}"));
        Self::attach(Sockets::local(name)?, &Address::named(name, "ctl"), out, node, timeout)
    }

    /// The same over UDP; the server's data ports follow its control port.
    pub fn connect_udp(server: SocketAddr, node: &str, timeout: Duration) -> Result<Self, ProgramError> {
        let out = |slot: u32| {
            let port = server.port().wrapping_add(slot as u16 + 1);
            Address::Udp((server.ip(), port).into())
        };
        Self::attach(Sockets::udp(server)?, &Address::Udp(server), out, node, timeout)
    }

    fn attach(
        sockets: Sockets,
        server: &Address,
        out: impl Fn(u32) -> Address,
        node: &str,
        timeout: Duration,
    ) -> Result<Self, ProgramError> {
        let Sockets { control, data, id } = sockets;
        let unreachable = |source| ProgramError::Connect { server: server.clone(), source };
        control.connect(server).map_err(unreachable)?;
        let connect = Connect { id, qp: 0, issm: false, node: node.to_owned() };
        let answer = ask(&control, &Control::new(0, Command::Connect, &connect.encode()), timeout)?;
        let slot = answer.client;
        if slot >= SLOTS as u32 {
            return Err(ProgramError::Refused(Command::Connect));
        }
        data.connect(&out(slot))?;
        let question = |command, bytes: &[u8]| ask(&control, &Control::new(slot, command, bytes), timeout);
        let node_info = question(Command::GetNodeInfo, &[])?;
        let node_info = NodeInfo::decode(node_info.data.first_chunk().expect("NodeInfo has fewer bytes"));
        let port_info = PortInfo::decode(&question(Command::GetPortInfo, &[0])?.data);
        let (node, waiting) = (Connect::decode(&answer.data).node, VecDeque::new());
        Ok(Self { control, data, slot, node, node_info, port_info, waiting, dropped: 0 })
    }

    /// Says whether this program manages the subnet: then traps and questions of other managers come here.
    pub fn set_issm(&self, issm: bool, timeout: Duration) -> Result<(), ProgramError> {
        let value = u32::from(issm).to_ne_bytes();
        ask(&self.control, &Control::new(self.slot, Command::SetIssm, &value), timeout).map(|_| ())
    }

    /// What the server calls the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The node as it was when this program attached.
    pub fn node_info(&self) -> &NodeInfo {
        &self.node_info
    }

    /// The port as it was when this program attached.
    pub fn port_info(&self) -> &PortInfo {
        &self.port_info
    }

    /// MADs that were dropped because the server did not take them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends a MAD, or keeps it until the server takes it.
    pub fn send(&mut self, mad: &AddressedMad) -> Result<(), ProgramError> {
        let slid = if mad.lid == Lid::PERMISSIVE { Lid::PERMISSIVE } else { Lid(0) };
        let (dqp, sqp) = (mad.remote_qp, if mad.mad.is_smp() { QpNum::SMI } else { QpNum::GSI });
        let data = Data { dlid: mad.lid, slid, dqp, sqp, status: 0, mad: mad.mad };
        if self.waiting.is_empty() && self.offer(&data)? {
            return Ok(());
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(data);
        Ok(())
    }

    /// Sends what was kept, as far as the server takes it.
    pub fn flush(&mut self) -> Result<(), ProgramError> {
        while let Some(data) = self.waiting.front().copied() {
            if !self.offer(&data)? {
                break;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Whether MADs wait for the server: then wait until it takes more, too.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// False when the server's queue is full.
    fn offer(&self, data: &Data) -> Result<bool, ProgramError> {
        match self.data.send(&data.encode(Form::Wide)) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// What came, without waiting; `None` when nothing did.
    pub fn try_recv(&mut self) -> Result<Option<Received>, ProgramError> {
        let mut bytes = [0; DATA_BYTES_MAX];
        let count = match self.data.recv(&mut bytes) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let (data, _) = Data::decode(bytes.get(..count).unwrap_or_default())?;
        let mut mad = data.mad;
        if data.status != 0 || mad.method().is_response() {
            let id = mad.transaction_id().0 & 0x0000_ffff_ffff_ffff;
            Smp::transaction_id.set(&mut mad.0, TransactionId(id));
        }
        let received = match mad.is_smp() {
            true => AddressedMad::smp(data.slid, mad),
            false => {
                let gmp = AddressedMad::gmp(data.slid, weft_wire::ServiceLevel(0), mad);
                AddressedMad { remote_qp: data.sqp, ..gmp }
            }
        };
        Ok(Some(match data.status {
            0 => Received::Mad(received),
            // ibsim knows no other.
            _ => Received::Unanswered(received),
        }))
    }

    /// The next MAD, `None` when none came within `timeout`.
    pub fn recv(&mut self, timeout: Duration) -> Result<Option<Received>, ProgramError> {
        let deadline = Instant::now() + timeout;
        loop {
            self.flush()?;
            if let Some(received) = self.try_recv()? {
                return Ok(Some(received));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let out = if self.is_waiting() { PollFlags::OUT } else { PollFlags::empty() };
            self.data.wait(PollFlags::IN | out, left)?;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A server that is gone needs no disconnect.
        let _ = self.control.send(&Control::new(self.slot, Command::Disconnect, &[]).encode());
    }
}

/// Asks a control question and waits for its answer.
fn ask(socket: &Socket, question: &Control, timeout: Duration) -> Result<Control, ProgramError> {
    socket.send(&question.encode())?;
    let deadline = Instant::now() + timeout;
    loop {
        let mut bytes = [0; CONTROL_BYTES];
        match socket.recv(&mut bytes) {
            Ok(count) => {
                let answer = Control::decode(bytes.get(..count).unwrap_or_default())?;
                if answer.command == Command::Error {
                    return Err(ProgramError::Refused(question.command));
                }
                if answer.command == question.command {
                    return Ok(answer);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ProgramError::TimedOut(timeout));
        }
        socket.wait(PollFlags::IN, left)?;
    }
}
