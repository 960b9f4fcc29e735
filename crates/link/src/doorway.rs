//! Clients' way in over QUIC to a process that has no links: a manager, or a hub.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{Endpoint, Incoming, TransportConfig, VarInt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::credentials::Credentials;
use crate::handshake_slots::{Room, TurnedAway, turn_away};
use crate::transport::{BindError, open_server};
use crate::visitor::{Protocol, Visitor};

/// Handshakes under way at the same time. Half of them are for clients that have proved their address, so strangers who send first
/// packets in others' names keep no client out.
pub const HANDSHAKES_MAX: usize = 128;
/// Streams that a client may have open at the same time.
pub const STREAMS_MAX: u32 = 256;
/// A handshake that takes longer is given up.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
/// A client that has not been heard for so long is gone. Clients say that they live more often than that.
const SILENCE: Duration = Duration::from_secs(20);

/// An endpoint that clients dial.
pub struct Doorway {
    endpoint: Endpoint,
    credentials: Credentials,
    handshakes: JoinSet<Option<Visitor>>,
    room: Room,
    count: Box<dyn Fn(TurnedAway)>,
}

impl Doorway {
    /// Opens one that serves these protocols. `count` is called for each client that is turned away because too many shake hands
    /// at once.
    ///
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// When the identity is unusable or the UDP port is taken.
    pub fn open(
        address: SocketAddr,
        credentials: &Credentials,
        protocols: &[Protocol],
        count: impl Fn(TurnedAway) + 'static,
    ) -> Result<Self, BindError> {
        let mut transport = TransportConfig::default();
        let silence = SILENCE.try_into().expect("a time in seconds fits");
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_MAX))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .max_idle_timeout(Some(silence));
        let names: Vec<&[u8]> = protocols.iter().map(|protocol| protocol.name()).collect();
        let endpoint = open_server(address, credentials, &names, transport)?;
        let (credentials, count) = (credentials.clone(), Box::new(count));
        let (handshakes, room) = (JoinSet::new(), Room::of(HANDSHAKES_MAX));
        Ok(Self { endpoint, credentials, handshakes, room, count })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next client with an identity of the same authority; `None` when the endpoint has ended.
    pub async fn next(&mut self) -> Option<Visitor> {
        loop {
            tokio::select! {
                incoming = self.endpoint.accept() => {
                    let incoming = incoming?;
                    if self.room.take(incoming.remote_address_validated()) {
                        self.handshakes.spawn(shake_hands(incoming, self.credentials.clone()));
                    } else {
                        (self.count)(turn_away(incoming));
                    }
                }
                Some(shaken) = self.handshakes.join_next() => {
                    self.room.give_back();
                    if let Ok(Some(visitor)) = shaken {
                        return Some(visitor);
                    }
                }
            }
        }
    }
}

/// A client that shows no certificate of the authority fails here, and its own end says why.
async fn shake_hands(incoming: Incoming, credentials: Credentials) -> Option<Visitor> {
    let connecting = incoming.accept().ok()?;
    let connection = timeout(HANDSHAKE_PATIENCE, connecting).await.ok()?.ok()?;
    Visitor::of(connection, &credentials)
}
