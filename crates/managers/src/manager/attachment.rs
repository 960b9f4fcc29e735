//! Attachment of a manager: to a port of an agent's device, or to one of a fabric that ibsim emulates.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use rustix::event::PollFlags;
use weft_ibsim::{Program, Received};
use weft_link::{Credentials, Destination, Protocol, Tunnel};
use weft_umad::{Client, ClientError, ServerMessage};
use weft_wire::{AddressedMad, Guid, NodeType, PortNum, Registration};

use crate::manager::News;

/// How long a connection over the network may take: nothing else is done meanwhile, and another attempt follows.
const REACH: Duration = Duration::from_secs(1);

/// How long the other side has to answer an attachment.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a UDP server's name begins with.
const UDP: &str = "udp:";

/// Where a manager attaches.
#[derive(Clone, Debug)]
pub enum AttachPoint {
    /// At a device of an agent.
    Agent {
        /// Which way to the agent.
        way: Way,
        /// The node.
        node: Guid,
        /// Its port.
        port: PortNum,
    },
    /// At a node of an ibsim.
    Ibsim {
        /// Its socket's name (`IBSIM_SOCKNAME`), or `udp:` and an address.
        server: String,
        /// The node, as `SIM_HOST` names it; empty is the first of its file.
        node: String,
    },
}

/// Which way a manager reaches its agent.
#[derive(Clone, Debug)]
pub enum Way {
    /// By its socket on this machine.
    Unix(PathBuf),
    /// At the UDP port of its links.
    Quic(Box<Destination>, Credentials),
}

impl AttachPoint {
    /// How many requests may be under way so that each answer finds room here; `None` is any number.
    pub fn window_max(&self) -> Option<u32> {
        match self {
            Self::Agent { .. } => None,
            Self::Ibsim { server, .. } if server.starts_with(UDP) => Some(weft_ibsim::UDP_WINDOW),
            Self::Ibsim { .. } => Some(weft_ibsim::local_window()),
        }
    }
}

/// An attachment that stands.
#[derive(Debug)]
pub(crate) enum Attachment {
    /// What carries it over the network goes after the client, whose end it sees.
    Agent(Client, Option<Tunnel>),
    Ibsim(Program),
}

impl AsFd for Attachment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Agent(client, _) => client.as_fd(),
            Self::Ibsim(program) => program.as_fd(),
        }
    }
}

impl Attachment {
    /// Attaches, and returns the news of it for the machine.
    pub(crate) fn open(
        place: &AttachPoint,
        registrations: Vec<Registration>,
    ) -> anyhow::Result<(Self, News)> {
        match place {
            AttachPoint::Agent { way, node, port } => {
                let (mut client, tunnel) = connect(way)?;
                let attached = client.attach(*node, *port, registrations, PATIENCE);
                let attached = attached.map_err(|error| explain(error.into(), tunnel.as_ref()))?;
                let (node_guid, port_guid, port) = (attached.node, attached.port_guid, attached.port);
                Ok((Self::Agent(client, tunnel), News::Attached { node_guid, port_guid, port }))
            }
            AttachPoint::Ibsim { server, node } => {
                let program = match server.strip_prefix(UDP) {
                    None => Program::connect(server, node, PATIENCE)?,
                    Some(address) => {
                        let address: SocketAddr =
                            address.parse().with_context(|| format!("{server} is not udp:ADDRESS:PORT"))?;
                        Program::connect_udp(address, node, PATIENCE)?
                    }
                };
                program.set_issm(true, PATIENCE)?;
                let info = program.node_info();
                let port = match info.node_type {
                    NodeType::Switch => PortNum::ZERO,
                    _ => program.port_info().local_port_num,
                };
                let news = News::Attached { node_guid: info.node_guid, port_guid: info.port_guid, port };
                Ok((Self::Ibsim(program), news))
            }
        }
    }

    /// Takes a MAD to be sent with the next flush, or sooner.
    pub(crate) fn send(&mut self, mad: &AddressedMad) -> anyhow::Result<()> {
        match self {
            Self::Agent(client, _) => Ok(client.send(mad)?),
            Self::Ibsim(program) => Ok(program.send(mad)?),
        }
    }

    /// Sends what was taken, as far as the other side takes it.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Agent(client, _) => Ok(client.flush()?),
            Self::Ibsim(program) => Ok(program.flush()?),
        }
    }

    /// What to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        match self {
            Self::Ibsim(program) if program.is_waiting() => PollFlags::IN | PollFlags::OUT,
            _ => PollFlags::IN,
        }
    }

    /// Reads once, for whoever polls the descriptor; then take all that is [`Attachment::next`].
    pub(crate) fn read_ready(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Agent(client, tunnel) => {
                client.read_ready().map_err(|error| explain(error.into(), tunnel.as_ref()))
            }
            // Datagrams are read one by one.
            Self::Ibsim(_) => Ok(()),
        }
    }

    /// The next news for the machine that is there already.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<News>> {
        loop {
            match self {
                Self::Agent(client, _) => match client.buffered()? {
                    None => return Ok(None),
                    Some(ServerMessage::Receive(mad)) => return Ok(Some(News::Mad(mad))),
                    Some(ServerMessage::PortChanged { up }) => {
                        return Ok(Some(News::PortChanged { up }));
                    }
                    Some(ServerMessage::Refused { reason }) => {
                        return Err(ClientError::Refused { reason }.into());
                    }
                    Some(_) => {}
                },
                Self::Ibsim(program) => match program.try_recv()? {
                    None => return Ok(None),
                    Some(Received::Mad(mad)) => return Ok(Some(News::Mad(mad))),
                    // The machine's own clock says that no one answers, and tries again.
                    Some(Received::Unanswered(_)) => {}
                },
            }
        }
    }
}

fn connect(way: &Way) -> anyhow::Result<(Client, Option<Tunnel>)> {
    match way {
        Way::Unix(socket) => Ok((Client::connect(socket)?, None)),
        Way::Quic(agent, credentials) => {
            let (stream, tunnel) = Tunnel::open(agent, credentials, Protocol::Mad, REACH)?;
            Ok((Client::over(stream)?, Some(tunnel)))
        }
    }
}

/// What the client cannot know of the end of a connection over the network.
fn explain(error: anyhow::Error, tunnel: Option<&Tunnel>) -> anyhow::Error {
    match tunnel.and_then(Tunnel::end_reason) {
        Some(reason) => error.context(reason.to_owned()),
        None => error,
    }
}
