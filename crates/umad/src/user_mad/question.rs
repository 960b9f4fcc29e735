//! Connections, questions and their answers, as the program's side makes them. Blocks, and retries what a signal interrupts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
    connect as connect_to, listen as listen_to, socket_with,
};
use weft_wire::{Guid, PortNum};

use super::control::{Reply, Request, Token};
use super::datagram::{Datagram, receive};

/// The longest datagram that an agent sends: an answer with the largest P_Key table, 65 535 entries.
pub const REPLY_BYTES_MAX: usize = 132 * 1024;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Connects to an agent's [`socket_path`](super::socket_path).
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new(path)?;
    retry_on_intr(|| connect_to(&socket, &address))?;
    Ok(socket)
}

/// Listens as an agent does at its [`socket_path`](super::socket_path). A socket that is there is left from a process that was killed.
pub fn listen(path: &Path, flags: SocketFlags) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen_to(&socket, BACKLOG)?;
    Ok(socket)
}

/// Asks and waits for the answer. A refusal is an error with its number.
pub fn question(socket: impl AsFd, request: &Request) -> io::Result<Reply> {
    let datagram = Datagram::from(request.encode());
    retry(|| datagram.send(&socket, SendFlags::empty()))?;
    let mut buffer = vec![0; REPLY_BYTES_MAX];
    let answer = retry(|| receive(&socket, &mut buffer, RecvFlags::empty()))?;
    if answer.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match Reply::decode(&buffer[..answer.bytes]) {
        Ok(Reply::Failed(error)) => Err(io::Error::from_raw_os_error(i32::try_from(error).unwrap_or(5))),
        Ok(reply) => Ok(reply),
        Err(malformed) => Err(io::Error::new(io::ErrorKind::InvalidData, malformed)),
    }
}

/// Opens a port: the connection is the port from then on.
pub fn open(path: &Path, node: Guid, port: PortNum) -> io::Result<OwnedFd> {
    let socket = connect(path)?;
    let token = Token::of(&socket)?;
    question(&socket, &Request::Open { token, node, port })?;
    Ok(socket)
}

impl Token {
    /// The token of an open port, from the socket that it is.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        Ok(Self(rustix::fs::fstat(socket)?.st_ino))
    }
}

fn retry<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
