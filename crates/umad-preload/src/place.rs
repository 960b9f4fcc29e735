//! The node whose ports the program sees, and the way to its agent.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use umad::user_mad::{CaAttributes, PortAttributes, Reply, Request, connect, question};
use weft_wire::{Guid, NodeType, PhysState, PortNum, PortState};

/// What the adapter is called, as a driver would number its first.
pub(crate) const CA_NAME: &CStr = c"weft_0";

/// The agent's socket and the node, as the environment has them.
pub(crate) struct UmadNode {
    pub(crate) socket: PathBuf,
    pub(crate) node: Guid,
    /// The port for programs that name none, where the environment has one.
    port: Option<PortNum>,
}

impl UmadNode {
    /// Reads the environment.
    pub(crate) fn find() -> io::Result<Self> {
        let variable = |name: &str| {
            let missing =
                || format!("{name} is not set; hint: start the program with `weft shell -- PROGRAM`");
            std::env::var_os(name).filter(|value| !value.is_empty()).ok_or_else(|| bad(missing()))
        };
        let node = variable("WEFT_UMAD_NODE")?;
        let node = node.to_str().and_then(|node| node.parse().ok());
        let node = node.ok_or_else(|| bad("WEFT_UMAD_NODE is no GUID; hint: 0x and 16 digits".to_owned()))?;
        let port = std::env::var("WEFT_UMAD_PORT").ok().filter(|port| !port.is_empty());
        let port = port.map(|port| port.parse().map(PortNum)).transpose();
        let port = port.map_err(|_| bad("WEFT_UMAD_PORT is no port; hint: 1 to 254".to_owned()))?;
        Ok(Self { socket: variable("WEFT_UMAD_SOCKET")?.into(), node, port })
    }

    /// The same, and a connection for questions.
    pub(crate) fn ask() -> io::Result<Asking> {
        let place = Self::find()?;
        let socket = connect(&place.socket)?;
        Ok(Asking { node: place.node, port: place.port, socket })
    }
}

fn bad(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, what)
}

/// A connection for questions; the agent frees it when it is dropped.
pub(crate) struct Asking {
    pub(crate) node: Guid,
    port: Option<PortNum>,
    socket: OwnedFd,
}

impl Asking {
    pub(crate) fn question(&self, request: &Request) -> io::Result<Reply> {
        question(&self.socket, request)
    }

    /// What there is to know of the adapter.
    pub(crate) fn ca(&self) -> io::Result<CaAttributes> {
        match self.question(&Request::Ca { node: self.node })? {
            Reply::Ca(ca) => Ok(ca),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// What there is to know of a port.
    pub(crate) fn port(&self, port: PortNum) -> io::Result<PortAttributes> {
        match self.question(&Request::Port { node: self.node, port })? {
            Reply::Port(port) => Ok(port),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The port that a program means. Port 0 of an HCA stands for that of the environment; without one, for the first
    /// active one, else the first with a link, else the first that is not disabled; a switch has no other than 0.
    pub(crate) fn resolve(&self, wanted: c_int) -> io::Result<PortNum> {
        let ca = self.ca()?;
        if ca.node_type == NodeType::Switch {
            return Ok(PortNum::ZERO);
        }
        let wanted = self.port.filter(|_| wanted == 0).map_or(wanted, |port| port.0.into());
        if wanted != 0 {
            let port = u8::try_from(wanted).ok().map(PortNum);
            let has = |port: &PortNum| (ca.first_port..=ca.last_port).contains(port);
            return port.filter(has).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut best = None;
        for number in ca.first_port.0..=ca.last_port.0 {
            let port = self.port(PortNum(number))?;
            let rank = match (port.state, port.phys_state) {
                (PortState::Active, _) => 3,
                (_, PhysState::LinkUp) => 2,
                (_, PhysState::Disabled) => continue,
                _ => 1,
            };
            if best.is_none_or(|(other, _)| rank > other) {
                best = Some((rank, port.port));
            }
        }
        best.map(|(_, port)| port).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }
}

/// Whether a program that names an adapter means ours; it may name none.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn is_ours(name: *const c_char) -> bool {
    // SAFETY: the caller says so.
    name.is_null() || unsafe { CStr::from_ptr(name) } == CA_NAME
}
