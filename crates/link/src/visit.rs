//! A client's own end of a conversation with an agent.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::time::timeout;
use weft_wire::Guid;

use crate::identity::{Identity, node_name};
use crate::peer::PeerAddress;
use crate::reason::CloseCode;
use crate::transport::{self, BindError, ConstantWindow};
use crate::visitor::Protocol;

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

/// A client's own end.
pub struct Visit {
    /// What the agent says.
    pub receive: RecvStream,
    /// What is said to it.
    pub send: SendStream,
    connection: Connection,
    endpoint: Endpoint,
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl Visit {
    /// Why the connection has ended; `None` while it stands.
    pub fn end_reason(&self) -> Option<ConnectionError> {
        self.connection.close_reason()
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        self.connection.closed().await;
    }

    /// Ends the conversation, and waits until the agent can know.
    pub async fn end(self) {
        self.endpoint.close(CloseCode::Shutdown.var_int(), b"the client has left");
        // The word leaves at once; what takes longer is the wait for packets that are still under way.
        let _ = timeout(GOODBYE, self.endpoint.wait_idle()).await;
    }
}

/// Visits the agent whose certificate names a node, at its links' address.
///
/// # Errors
/// Says what kept the two apart; an agent that refuses the certificate closes the connection with its reason.
pub async fn visit(
    address: SocketAddr,
    node: Guid,
    identity: &Identity,
    protocol: Protocol,
) -> Result<Visit, VisitError> {
    let (endpoint, mut client) = transport::open_client(address, identity, protocol.name())?;
    client.transport_config(Arc::new(transport_of(protocol)));
    let connecting = endpoint
        .connect_with(client, address, &node_name(node))
        .map_err(|source| VisitError::Dial { address, source })?;
    let broken = |source| VisitError::Connection { address, source };
    let connection = connecting.await.map_err(broken)?;
    let (send, receive) = connection.open_bi().await.map_err(broken)?;
    Ok(Visit { receive, send, connection, endpoint })
}

fn transport_of(protocol: Protocol) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let liveness = match protocol {
        Protocol::Control => CONTROL_LIVENESS,
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
    let silence = liveness.silence.try_into().expect("a time in seconds fits");
    transport.keep_alive_interval(Some(liveness.keepalive)).max_idle_timeout(Some(silence));
    transport
}
