//! Addresses of datagrams: abstract Unix names, or UDP.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixDatagram};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, bind, recvmsg, socket_with, sockopt,
};

/// The address of a datagram socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name in the kernel's abstract space, its final zero included, its first left out.
    Abstract(Vec<u8>),
    /// UDP.
    Udp(SocketAddr),
}

impl Address {
    /// The name that ibsim gives to a part of the server `base`: `ctl`, `out3`, `ctl4711`.
    pub fn named(base: &str, part: &str) -> Self {
        Self::Abstract(format!("{base}:{part}\0").into_bytes())
    }

    fn unix(name: &[u8]) -> io::Result<unix::SocketAddr> {
        unix::SocketAddr::from_abstract_name(name)
    }

    /// Whether a socket has this address. A program that was killed has none any more.
    ///
    /// Of an address on another machine nothing can be known: it counts as taken.
    pub fn is_taken(&self) -> bool {
        match self {
            Self::Abstract(name) => {
                let connected =
                    UnixDatagram::unbound().and_then(|socket| socket.connect_addr(&Self::unix(name)?));
                // Whoever is connected to another may not be connected to, but is there.
                !matches!(connected, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
            }
            Self::Udp(address) if address.ip().is_loopback() => {
                matches!(UdpSocket::bind(address), Err(error) if error.kind() == io::ErrorKind::AddrInUse)
            }
            Self::Udp(_) => true,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstract(name) => {
                write!(f, "@{}", String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name)))
            }
            Self::Udp(address) => write!(f, "{address}"),
        }
    }
}

/// A datagram socket of either kind that never waits.
#[derive(Debug)]
pub enum Socket {
    /// Abstract Unix.
    Local(UnixDatagram),
    /// UDP.
    Udp(UdpSocket),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Local(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

impl Socket {
    /// A socket with this address.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Abstract(name) => {
                let socket = UnixDatagram::bind_addr(&Address::unix(name)?)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Local(socket))
            }
            Address::Udp(address) => {
                let socket = UdpSocket::bind(address)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Udp(socket))
            }
        }
    }

    /// The same, where the kernel names the user behind each datagram that [`Socket::recv_from`] reads. It does so from the
    /// first on: a program may send as soon as the address is taken, and would wait for ever if that came from no one.
    pub fn bind_knowing_users(address: &Address) -> io::Result<Self> {
        let Address::Abstract(name) = address else { return Self::bind(address) };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        sockopt::set_socket_passcred(&socket, true)?;
        bind(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
        Ok(Self::Local(socket.into()))
    }

    /// The port of a UDP socket.
    pub fn udp_port(&self) -> Option<u16> {
        match self {
            Self::Local(_) => None,
            Self::Udp(socket) => socket.local_addr().ok().map(|address| address.port()),
        }
    }

    /// From now on sends there, and takes nothing from others.
    pub fn connect(&self, to: &Address) -> io::Result<()> {
        match (self, to) {
            (Self::Local(socket), Address::Abstract(name)) => socket.connect_addr(&Address::unix(name)?),
            (Self::Udp(socket), Address::Udp(address)) => socket.connect(address),
            _ => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Sends to whom it is connected with.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(socket) => socket.send(bytes),
            Self::Udp(socket) => socket.send(bytes),
        }
    }

    /// Sends somewhere.
    pub fn send_to(&self, bytes: &[u8], to: &Address) -> io::Result<usize> {
        match (self, to) {
            (Self::Local(socket), Address::Abstract(name)) => {
                socket.send_to_addr(bytes, &Address::unix(name)?)
            }
            (Self::Udp(socket), Address::Udp(address)) => socket.send_to(bytes, address),
            _ => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Waits until it is ready for one of `flags`, at most `timeout`.
    pub(crate) fn wait(&self, flags: PollFlags, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(self, flags)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a datagram of whoever it is connected with.
    pub fn recv(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(socket) => socket.recv(bytes),
            Self::Udp(socket) => socket.recv(bytes),
        }
    }

    /// Reads a datagram and says where it comes from. One from another user, or from a socket without a name, to
    /// which no answer would go, is an error: [`io::ErrorKind::PermissionDenied`].
    pub fn recv_from(&self, bytes: &mut [u8]) -> io::Result<(usize, Address)> {
        match self {
            Self::Local(socket) => recv_known(socket, bytes),
            Self::Udp(socket) => {
                let (count, from) = socket.recv_from(bytes)?;
                Ok((count, Address::Udp(from)))
            }
        }
    }
}

fn recv_known(socket: &UnixDatagram, bytes: &mut [u8]) -> io::Result<(usize, Address)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(bytes)];
    let received = recvmsg(socket, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let own = rustix::process::geteuid();
    let known = ancillary.drain().any(|message| match message {
        RecvAncillaryMessage::ScmCredentials(user) => user.uid == own || user.uid.is_root(),
        _ => false,
    });
    let from = received.address.and_then(|address| SocketAddrUnix::try_from(address).ok());
    let name = from.as_ref().and_then(SocketAddrUnix::abstract_name).filter(|_| known);
    let name = name.ok_or(io::ErrorKind::PermissionDenied)?;
    Ok((received.bytes, Address::Abstract(name.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(part: &str) -> Address {
        Address::named(&format!("weft-address-test-{}", std::process::id()), part)
    }

    #[test]
    fn a_name_is_taken_as_long_as_its_socket_is_open() {
        let address = unique("taken");
        assert!(!address.is_taken());
        let socket = Socket::bind(&address).unwrap();
        assert!(address.is_taken());
        let other = Socket::bind(&unique("other")).unwrap();
        socket.connect(&unique("other")).unwrap();
        assert!(address.is_taken(), "also when it is connected with somebody else");
        drop((socket, other));
        assert!(!address.is_taken());
    }

    #[test]
    fn a_loopback_port_is_taken_as_long_as_its_socket_is_open() {
        let any = Address::Udp(SocketAddr::from(([127, 0, 0, 1], 0)));
        let socket = Socket::bind(&any).unwrap();
        let address = Address::Udp(SocketAddr::from(([127, 0, 0, 1], socket.udp_port().unwrap())));
        assert!(address.is_taken());
        drop(socket);
        assert!(!address.is_taken());
    }

    #[test]
    fn senders_are_known_by_name_and_user() {
        let (here, there) = (unique("here"), unique("there"));
        let (server, program) = (Socket::bind_knowing_users(&here).unwrap(), Socket::bind(&there).unwrap());
        program.connect(&here).unwrap();
        program.send(b"hello").unwrap();
        let mut bytes = [0; 16];
        assert_eq!(server.recv_from(&mut bytes).unwrap(), (5, there));
        let nameless = UnixDatagram::unbound().unwrap();
        let Address::Abstract(name) = &here else { unreachable!() };
        nameless.send_to_addr(b"hello", &Address::unix(name).unwrap()).unwrap();
        let refused = server.recv_from(&mut bytes).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
