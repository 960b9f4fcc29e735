//! A client's own end of a conversation with an agent.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{
    ConnectError, Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig, VarInt,
};
use tokio::net::lookup_host;
use tokio::time::timeout;
use weft_wire::Guid;

use crate::credentials::Credentials;
use crate::dial::is_closed;
use crate::identity::{node_name, role_name};
use crate::peer::PeerAddress;
use crate::reason::CloseCode;
use crate::transport::{self, BindError, ConstantWindow};
use crate::visitor::{Protocol, VisitorStream};

/// What a client of the control protocol keeps alive, and how soon it gives an agent up.
const CONTROL_LIVENESS: Liveness =
    Liveness { keepalive: Duration::from_secs(5), silence: Duration::from_secs(20) };
/// The same of an attached program: an agent that was restarted answers the next word with a reset, so the program is
/// attached again within about a second.
const MAD_LIVENESS: Liveness =
    Liveness { keepalive: Duration::from_secs(1), silence: Duration::from_secs(10) };
/// What may lie between an agent and an attached program, in each direction: thousands of MADs.
const MAD_WINDOW_BYTES: u32 = 1 << 20;

/// How long a client that leaves waits for its last packet to go.
const GOODBYE: Duration = Duration::from_millis(20);

/// The same of whoever has to know soon that a process has ended with its host: a hub.
const WATCH_LIVENESS: Liveness =
    Liveness { keepalive: Duration::from_secs(1), silence: Duration::from_secs(5) };

struct Liveness {
    /// A client that is alive says so this often.
    keepalive: Duration,
    /// An end that has not been heard for so long is gone.
    silence: Duration,
}

/// Why an agent was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisitError {
    /// The own identity or socket is unusable.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The name of the agent's host does not resolve.
    #[error("cannot resolve {address}: {reason}")]
    Unresolved {
        /// Where the agent should be.
        address: PeerAddress,
        /// What the resolver says.
        reason: String,
    },
    /// No socket is bound there.
    #[error("no process listens at {address}")]
    Closed {
        /// The agent's address.
        address: SocketAddr,
    },
    /// The agent did not answer in time.
    #[error("no answer from {address} within {} ms", patience.as_millis())]
    Silent {
        /// Where the agent should be.
        address: PeerAddress,
        /// How long it had.
        patience: Duration,
    },
    /// The connection was not begun.
    #[error("cannot dial {address}")]
    Dial {
        /// The agent's address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: quinn::ConnectError,
    },
    /// The connection did not come to be, or ended.
    #[error("no conversation with {address}")]
    Connection {
        /// The agent's address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: ConnectionError,
    },
    /// A thread, a runtime or a pair of sockets could not be had.
    #[error("the system refuses what a conversation needs")]
    System(#[from] io::Error),
}

/// The address of a process that listens somewhere: its name is resolved, and IPv4 comes first. Where the system says at once
/// that no socket is bound there, nothing is dialled.
///
/// # Errors
/// When the name has no address, or no process listens.
pub async fn find(peer: &PeerAddress) -> Result<SocketAddr, VisitError> {
    let unresolved = |reason| VisitError::Unresolved { address: peer.clone(), reason };
    let address = match peer.literal() {
        Some(literal) => literal,
        None => {
            let found = lookup_host(peer.to_string()).await;
            let found = found.map_err(|error| unresolved(error.to_string()))?;
            let first = found.min_by_key(|address| !address.is_ipv4());
            first.ok_or_else(|| unresolved("it has no address".to_owned()))?
        }
    };
    // QUIC would repeat its first packet in vain.
    if is_closed(address) { Err(VisitError::Closed { address }) } else { Ok(address) }
}

/// A client's own end.
pub struct Visit {
    /// What the agent says.
    pub receive: RecvStream,
    /// What is said to it.
    pub send: SendStream,
    call: Call,
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl Visit {
    /// Why the connection has ended; `None` while it stands.
    pub fn end_reason(&self) -> Option<ConnectionError> {
        self.call.end_reason()
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        self.call.closed().await;
    }

    /// Ends the conversation, and waits until the agent can know.
    pub async fn end(&self) {
        self.call.end().await;
    }
}

/// Whom a client wants to talk to: what the other end's certificate must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The agent of a node.
    Node(Guid),
    /// A process that is no agent, such as `hub`.
    Role(String),
}

impl Peer {
    fn server_name(&self) -> String {
        match self {
            Self::Node(node) => node_name(*node),
            Self::Role(role) => role_name(role),
        }
    }
}

/// Visits the agent whose certificate names a node, at its links' address.
///
/// # Errors
/// Says what kept the two apart; an agent that refuses the certificate closes the connection with its reason.
pub async fn visit(
    address: SocketAddr,
    node: Guid,
    credentials: &Credentials,
    protocol: Protocol,
) -> Result<Visit, VisitError> {
    let call = Call::place(address, &Peer::Node(node), credentials, protocol).await?;
    let (send, receive) = call.open().await?;
    Ok(Visit { receive, send, call })
}

/// Endpoints for many calls, one for each kind of addresses: each has a socket, and three megabytes to read into. A call without a line
/// has an endpoint of its own. The first call of a kind binds its endpoint to the runtime that it is placed in.
#[derive(Debug)]
pub struct Line {
    calls: usize,
    bound: [Mutex<Option<Endpoint>>; 2],
}

impl Line {
    /// With room in the kernel for what arrives by `calls` calls.
    pub fn for_calls(calls: usize) -> Self {
        Self { calls, bound: Default::default() }
    }

    fn endpoint(&self, peer: SocketAddr) -> Result<Endpoint, BindError> {
        let mut bound = self.bound(peer);
        match &*bound {
            Some(endpoint) => Ok(endpoint.clone()),
            None => Ok(bound.insert(transport::open_client(peer, self.calls)?).clone()),
        }
    }

    /// The system took its socket away: the next call gets another.
    fn forget(&self, peer: SocketAddr) {
        *self.bound(peer) = None;
    }

    fn bound(&self, peer: SocketAddr) -> MutexGuard<'_, Option<Endpoint>> {
        let [four, six] = &self.bound;
        if peer.is_ipv4() { four } else { six }.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's connection, on which it opens streams itself.
#[derive(Debug)]
pub struct Call {
    /// Its own, if it has no line.
    endpoint: Option<Endpoint>,
    connection: Arc<Connection>,
}

impl Call {
    /// Dials a process.
    ///
    /// # Errors
    /// Says what kept the two apart.
    pub async fn place(
        address: SocketAddr,
        peer: &Peer,
        credentials: &Credentials,
        protocol: Protocol,
    ) -> Result<Self, VisitError> {
        let endpoint = transport::open_client(address, 1)?;
        let placed = Self::from(&endpoint, address, peer, How::usual(credentials, protocol));
        Ok(Self { endpoint: Some(endpoint.clone()), ..placed.await? })
    }

    /// The same on a line.
    ///
    /// # Errors
    /// Says what kept the two apart.
    pub async fn place_on(
        line: &Line,
        address: SocketAddr,
        peer: &Peer,
        credentials: &Credentials,
        protocol: Protocol,
    ) -> Result<Self, VisitError> {
        Self::on(line, address, peer, How::usual(credentials, protocol)).await
    }

    /// The same for the control protocol, by whoever has to know soon that the process is gone.
    ///
    /// # Errors
    /// Says what kept the two apart.
    pub async fn watch_on(
        line: &Line,
        address: SocketAddr,
        peer: &Peer,
        credentials: &Credentials,
    ) -> Result<Self, VisitError> {
        let mut transport = TransportConfig::default();
        keep_alive(&mut transport, &WATCH_LIVENESS);
        Self::on(line, address, peer, How { credentials, protocol: Protocol::Control, transport }).await
    }

    async fn on(line: &Line, address: SocketAddr, peer: &Peer, how: How<'_>) -> Result<Self, VisitError> {
        let endpoint = line.endpoint(address)?;
        let placed = Self::from(&endpoint, address, peer, how).await;
        if matches!(placed, Err(VisitError::Dial { source: ConnectError::EndpointStopping, .. })) {
            line.forget(address);
        }
        placed
    }

    async fn from(
        endpoint: &Endpoint,
        address: SocketAddr,
        peer: &Peer,
        how: How<'_>,
    ) -> Result<Self, VisitError> {
        let How { credentials, protocol, transport } = how;
        let client = transport::client(credentials, protocol.name(), transport)?;
        let connecting = endpoint
            .connect_with(client, address, &peer.server_name())
            .map_err(|source| VisitError::Dial { address, source })?;
        let connection = connecting.await.map_err(|source| VisitError::Connection { address, source })?;
        Ok(Self { endpoint: None, connection: credentials.keep(connection) })
    }

    /// Opens another stream.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn stream(&self) -> Result<VisitorStream, VisitError> {
        let (send, receive) = self.open().await?;
        Ok(tokio::io::join(receive, send))
    }

    async fn open(&self) -> Result<(SendStream, RecvStream), VisitError> {
        let address = self.connection.remote_address();
        let opened = self.connection.open_bi().await;
        opened.map_err(|source| VisitError::Connection { address, source })
    }

    /// Why the connection has ended; `None` while it stands.
    pub fn end_reason(&self) -> Option<ConnectionError> {
        self.connection.close_reason()
    }

    /// Waits until the connection has ended, and says why.
    pub async fn closed(&self) -> ConnectionError {
        self.connection.closed().await
    }

    /// Ends the connection, and waits until the other end can know, unless a line goes on that tells it.
    pub async fn end(&self) {
        self.connection.close(CloseCode::Shutdown.var_int(), b"the client has left");
        // The word leaves at once; what takes longer is the wait for packets that are still under way. A line goes on.
        if let Some(endpoint) = &self.endpoint {
            let _ = timeout(GOODBYE, endpoint.wait_idle()).await;
        }
    }
}

fn keep_alive(transport: &mut TransportConfig, liveness: &Liveness) {
    let silence = liveness.silence.try_into().expect("a time in seconds fits");
    transport.keep_alive_interval(Some(liveness.keepalive)).max_idle_timeout(Some(silence));
}

/// What a connection is for.
struct How<'a> {
    credentials: &'a Credentials,
    protocol: Protocol,
    transport: TransportConfig,
}

impl<'a> How<'a> {
    /// With the transport that the protocol usually has.
    fn usual(credentials: &'a Credentials, protocol: Protocol) -> Self {
        Self { credentials, protocol, transport: transport_of(protocol) }
    }
}

fn transport_of(protocol: Protocol) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let liveness = match protocol {
        Protocol::Control | Protocol::Relay => CONTROL_LIVENESS,
        Protocol::Mad => {
            // As on a link: what holds a program back is its own number of outstanding MADs.
            transport
                .stream_receive_window(VarInt::from_u32(MAD_WINDOW_BYTES))
                .receive_window(VarInt::from_u32(MAD_WINDOW_BYTES))
                .send_window(MAD_WINDOW_BYTES.into())
                .congestion_controller_factory(Arc::new(ConstantWindow));
            MAD_LIVENESS
        }
    };
    keep_alive(&mut transport, &liveness);
    transport
}
