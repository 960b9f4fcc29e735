//! Clients of the agent itself: on the UDP port of its links, under protocol names (ALPN) of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::HandshakeData;
use quinn::{Connection, ConnectionError};
use tokio::io::Join;
use tokio::time::timeout;
use weft_wire::Guid;

use crate::credentials::{Credentials, peer_certificate};
use crate::identity;
use crate::pipe::Pipe;
use crate::reason::CloseCode;
use crate::revocation::Serial;
use crate::transport::{CONTROL, MAD, RELAY};

/// How long a client may take to hear the last word and leave.
const GOODBYE: Duration = Duration::from_secs(2);

/// Both directions of a client's conversation.
pub type VisitorStream = Join<quinn::RecvStream, quinn::SendStream>;

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The control protocol: JSON lines.
    Control,
    /// That of attached programs: MADs in frames.
    Mad,
    /// Conversations that a hub passes on to its laboratory's processes, as many streams as the client opens.
    Relay,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Control, Self::Mad, Self::Relay];

    /// Its name in the handshake.
    pub(crate) fn name(self) -> &'static [u8] {
        match self {
            Self::Control => CONTROL,
            Self::Mad => MAD,
            Self::Relay => RELAY,
        }
    }
}

/// A client that the laboratory's authority has issued an identity.
#[derive(Debug)]
pub struct Visitor {
    connection: Arc<Connection>,
    protocol: Protocol,
    role: Option<String>,
    attaches: Vec<Guid>,
    serial: Option<Serial>,
}

impl Visitor {
    /// The client of a connection; `None` when the connection is a link's.
    pub(crate) fn of(connection: Connection, credentials: &Credentials) -> Option<Self> {
        let shaken = connection.handshake_data()?.downcast::<HandshakeData>().ok()?;
        let name = shaken.protocol.as_deref()?;
        let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.name() == name)?;
        let own = peer_certificate(&connection);
        let own = own.as_ref();
        let (role, serial) = (own.and_then(identity::role), own.and_then(Serial::of));
        let attaches = own.map(identity::attaches).unwrap_or_default();
        let connection = credentials.keep(connection);
        Some(Self { connection, protocol, role, attaches, serial })
    }

    /// What it speaks.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The role that its certificate names, such as `operator`; none for an agent's.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// The nodes that its certificate lets it attach to.
    pub fn attaches(&self) -> &[Guid] {
        &self.attaches
    }

    /// The number of its certificate.
    pub fn serial(&self) -> Option<&Serial> {
        self.serial.as_ref()
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// The next stream that it opens. A client has one, and when it ends the client has left; one that speaks
    /// [`Protocol::Relay`] has many.
    ///
    /// # Errors
    /// When the connection ends first.
    pub async fn stream(&self) -> Result<VisitorStream, ConnectionError> {
        let (send, receive) = self.connection.accept_bi().await?;
        Ok(tokio::io::join(receive, send))
    }

    /// The same stream for an agent that writes without waiting.
    ///
    /// # Errors
    /// When the connection ends first.
    pub async fn pipe(&self) -> Result<Pipe, ConnectionError> {
        let (send, receive) = self.connection.accept_bi().await?;
        Ok(Pipe::new(receive, send))
    }

    /// Waits until it has left, but not for long: a connection that is dropped takes with it what is still under way to the client.
    pub async fn goodbye(&self) {
        let _ = timeout(GOODBYE, self.connection.closed()).await;
    }

    /// Sends it away.
    pub fn refuse(&self, reason: &str) {
        self.connection.close(CloseCode::Refused.var_int(), reason.as_bytes());
    }
}
