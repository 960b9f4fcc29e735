//! Clients of the agent itself: on the UDP port of its links, under a protocol name (ALPN) of their own.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::HandshakeData;
use quinn::rustls::pki_types::CertificateDer;
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig};
use tokio::io::Join;
use weft_wire::Guid;

use crate::identity::{self, Identity, node_name};
use crate::reason::CloseCode;
use crate::transport::{self, BindError, CONTROL};

/// A client that is alive says so this often; an agent gives up much later.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// An agent that has not been heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(20);

/// Both directions of a client's conversation.
pub type VisitorStream = Join<RecvStream, SendStream>;

/// A client that the laboratory's authority has issued an identity.
#[derive(Debug)]
pub struct Visitor {
    connection: Connection,
    role: Option<String>,
}

impl Visitor {
    /// The client of a connection; `None` when the connection is a link's.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let shaken = connection.handshake_data()?.downcast::<HandshakeData>().ok()?;
        if shaken.protocol.as_deref() != Some(CONTROL) {
            return None;
        }
        let chain = connection
            .peer_identity()
            .and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok());
        let role = chain.as_ref().and_then(|chain| chain.first()).and_then(identity::role);
        Some(Self { connection: connection.clone(), role })
    }

    /// The role that its certificate names, such as `operator`; none for an agent's.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// The stream that it opens. The client has one; when it ends the client has left.
    ///
    /// # Errors
    /// When the connection ends first.
    pub async fn stream(&self) -> Result<VisitorStream, ConnectionError> {
        let (send, receive) = self.connection.accept_bi().await?;
        Ok(tokio::io::join(receive, send))
    }

    /// Sends it away.
    pub fn refuse(&self, reason: &str) {
        self.connection.close(CloseCode::Refused.var_int(), reason.as_bytes());
    }
}

/// Why an agent was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisitError {
    /// The own identity or socket is unusable.
    #[error(transparent)]
    Bind(#[from] BindError),
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
}

/// A client's own end.
pub struct Visit {
    /// What is said, both ways.
    pub stream: VisitorStream,
    endpoint: Endpoint,
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl Visit {
    /// Ends the conversation, and waits until the agent can know.
    pub async fn end(self) {
        self.endpoint.close(CloseCode::Shutdown.var_int(), b"the client has left");
        self.endpoint.wait_idle().await;
    }
}

/// Visits the agent that runs a node, at its links' address.
///
/// # Errors
/// Says what kept the two apart; an agent that refuses the certificate closes the connection with its reason.
pub async fn visit(address: SocketAddr, node: Guid, identity: &Identity) -> Result<Visit, VisitError> {
    let mut transport = TransportConfig::default();
    let silence = SILENCE.try_into().expect("a time in seconds fits");
    transport.keep_alive_interval(Some(KEEPALIVE)).max_idle_timeout(Some(silence));
    let (endpoint, mut client) = transport::open_client(address, identity, CONTROL)?;
    client.transport_config(Arc::new(transport));
    let connecting = endpoint
        .connect_with(client, address, &node_name(node))
        .map_err(|source| VisitError::Dial { address, source })?;
    let broken = |source| VisitError::Connection { address, source };
    let connection = connecting.await.map_err(broken)?;
    let (send, receive) = connection.open_bi().await.map_err(broken)?;
    Ok(Visit { stream: tokio::io::join(receive, send), endpoint })
}
