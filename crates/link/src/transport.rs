//! The QUIC setup: one endpoint per agent, TLS with the fabric's own authority, liveness, and no back-pressure
//! of its own.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use quinn::congestion::{Controller, ControllerFactory};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::client::Resumption;
use quinn::rustls::version::TLS13;
use quinn::rustls::{ClientConfig as TlsClient, ServerConfig as TlsServer};
use quinn::{
    AckFrequencyConfig, ClientConfig, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use rustix::net::sockopt;

use crate::clock::WallClock;
use crate::config::LinkConfig;
use crate::credentials::Credentials;
use crate::identity::IdentityError;
use crate::reactor::Reactor;

/// The protocol name of links.
const LINK: &[u8] = b"weft-link";
/// The protocol name of the control protocol.
pub(crate) const CONTROL: &[u8] = b"weft-control";
/// The protocol name of attached programs.
pub(crate) const MAD: &[u8] = b"weft-mad";
/// The protocol name of conversations that a hub passes on.
pub(crate) const RELAY: &[u8] = b"weft-relay";
/// Lanes 0 to 14, one stream each.
const LANE_STREAMS: u32 = 15;
/// Wide enough that InfiniBand's credits always bind first.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
const DATAGRAM_RECEIVE_BYTES: usize = 1 << 20;
/// Twenty SMPs share a packet and its encryption. quinn sends ten packets at once, and the kernel takes 64 KiB.
const LOOPBACK_PAYLOAD_BYTES: u16 = 6000;
/// QUIC's least and most (RFC 9000, sections 14 and 18.2).
const PAYLOAD_BYTES: RangeInclusive<u16> = 1200..=65_527;
/// A certificate that names hundreds of packed devices is tens of kilobytes.
const CRYPTO_BUFFER_BYTES: usize = 256 << 10;
/// A first flight with its certificate, as the kernel counts what it keeps.
const ROOM_PER_CABLE_BYTES: usize = 4 << 10;
/// As much as 1024 cables ask for.
const ROOM_MAX_BYTES: usize = 4 << 20;
/// [`crate::liveness`] notices a dead peer far sooner than QUIC's idle timeout, which is here so
/// that a quiet connection's alarm is put off to a far timer instead of waking the agent.
const IDLE_LINK_TIMEOUTS: u64 = 100;
/// Beyond 32 bits quinn does not pace.
const WINDOW_BYTES: u64 = 1 << 40;

/// Why an agent's endpoint could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The identity is unusable.
    #[error("unusable identity")]
    Identity(#[from] IdentityError),
    /// The UDP port cannot be bound.
    #[error("cannot bind UDP {address}")]
    Socket {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// Two cables have the same two ends.
    #[error("the cable between {0} and {1} is listed twice")]
    DuplicateCable(crate::CableEnd, crate::CableEnd),
}

impl From<quinn::rustls::Error> for BindError {
    fn from(error: quinn::rustls::Error) -> Self {
        Self::Identity(IdentityError::Tls(error))
    }
}

/// Opens the agent's endpoint and the settings with which it dials.
pub(crate) fn open(
    address: SocketAddr,
    credentials: &Credentials,
    config: &LinkConfig,
    cables: usize,
) -> Result<(Endpoint, ClientConfig), BindError> {
    let mut client = ClientConfig::new(Arc::new(client_tls(credentials, LINK)?));
    let payload = payload_bytes(address, config);
    let transport = Arc::new(transport(config, payload));
    client.transport_config(transport.clone());
    let mut server = ServerConfig::with_crypto(Arc::new(server_tls(credentials, &[LINK, CONTROL, MAD])?));
    server.transport_config(transport).migration(false);

    let identity = credentials.identity();
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &identity.derived_key("weft stateless reset")?);
    let [a, b, c, d, e, f, g, h, ..] = identity.derived_key("weft connection id")?;
    let id_key = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let mut endpoint = EndpointConfig::new(Arc::new(reset_key));
    endpoint.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(id_key)));
    endpoint.max_udp_payload_size(payload).expect("payload_bytes() keeps to what QUIC allows");

    let socket_error = |source| BindError::Socket { address, source };
    let socket = UdpSocket::bind(address).map_err(socket_error)?;
    make_room(&socket, cables);
    let reactor = Reactor::start().map_err(socket_error)?;
    let endpoint = Endpoint::new(endpoint, Some(server), socket, Arc::new(reactor)).map_err(socket_error)?;
    Ok((endpoint, client))
}

/// The size of UDP payloads: only processes of this machine reach a loopback address, and no network is in between.
fn payload_bytes(address: SocketAddr, config: &LinkConfig) -> u16 {
    let least = if address.ip().is_loopback() { LOOPBACK_PAYLOAD_BYTES } else { *PAYLOAD_BYTES.start() };
    config.udp_payload_bytes.clamp(least, *PAYLOAD_BYTES.end())
}

/// Room for the first packets of all peers at once. What the system does not give, QUIC's repeating makes up for.
fn make_room(socket: &UdpSocket, cables: usize) {
    let wanted = (cables * ROOM_PER_CABLE_BYTES).min(ROOM_MAX_BYTES);
    // The kernel doubles what is asked for, and tells the double.
    if sockopt::socket_recv_buffer_size(socket).is_ok_and(|has| has < 2 * wanted) {
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, wanted)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, wanted));
    }
}

/// Opens an endpoint that serves no one, and dials `peers` peers with addresses of this kind.
pub(crate) fn open_client(peer: SocketAddr, peers: usize) -> Result<Endpoint, BindError> {
    let any = if peer.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let address = SocketAddr::new(any, 0);
    let socket_error = |source| BindError::Socket { address, source };
    let socket = UdpSocket::bind(address).map_err(socket_error)?;
    make_room(&socket, peers);
    Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime)).map_err(socket_error)
}

/// The settings with which it dials under this protocol name.
pub(crate) fn client(
    credentials: &Credentials,
    protocol: &[u8],
    transport: TransportConfig,
) -> Result<ClientConfig, BindError> {
    let mut client = ClientConfig::new(Arc::new(client_tls(credentials, protocol)?));
    client.transport_config(Arc::new(transport));
    Ok(client)
}

/// The provider was left with what QUIC needs.
const SUITE: &str = "the provider was left with the suite that QUIC's first packets need";

fn client_tls(credentials: &Credentials, protocol: &[u8]) -> Result<QuicClientConfig, BindError> {
    let mut client = TlsClient::builder_with_details(credentials.crypto().clone(), Arc::new(WallClock))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(credentials.party())
        .with_client_cert_resolver(credentials.party());
    client.resumption = Resumption::disabled();
    client.alpn_protocols = vec![protocol.to_vec()];
    Ok(QuicClientConfig::try_from(client).expect(SUITE))
}

/// How a process serves these protocols to whoever has an identity of the same authority.
fn server_tls(credentials: &Credentials, protocols: &[&[u8]]) -> Result<QuicServerConfig, BindError> {
    let mut server = TlsServer::builder_with_details(credentials.crypto().clone(), Arc::new(WallClock))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(credentials.party())
        .with_cert_resolver(credentials.party());
    server.send_tls13_tickets = 0;
    server.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(QuicServerConfig::try_from(server).expect(SUITE))
}

/// Opens an endpoint that serves these protocols and no links.
pub(crate) fn open_server(
    address: SocketAddr,
    credentials: &Credentials,
    protocols: &[&[u8]],
    transport: TransportConfig,
) -> Result<Endpoint, BindError> {
    let tls = server_tls(credentials, protocols)?;
    let mut server = ServerConfig::with_crypto(Arc::new(tls));
    server.transport_config(Arc::new(transport)).migration(false);
    Endpoint::server(server, address).map_err(|source| BindError::Socket { address, source })
}

fn transport(config: &LinkConfig, payload_bytes: u16) -> TransportConfig {
    let idle_ms = config.link_timeout_ms.saturating_mul(IDLE_LINK_TIMEOUTS);
    let idle = IdleTimeout::from(VarInt::from_u32(u32::try_from(idle_ms).unwrap_or(u32::MAX)));
    // An acknowledgement for every tenth packet: most traffic is requests and replies, which carry theirs along.
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(10));
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(None)
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(LANE_STREAMS))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES))
        .send_window(u64::from(CONNECTION_WINDOW_BYTES))
        .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BYTES))
        .datagram_send_buffer_size(config.datagram_send_bytes)
        .crypto_buffer_size(CRYPTO_BUFFER_BYTES)
        .initial_mtu(payload_bytes)
        .mtu_discovery_config(None)
        .ack_frequency_config(Some(acks))
        .allow_spin(false)
        .congestion_controller_factory(Arc::new(ConstantWindow));
    transport
}

/// No congestion control: a cable's only back-pressure is InfiniBand's credits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConstantWindow;

impl ControllerFactory for ConstantWindow {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for ConstantWindow {
    fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _persistent: bool, _lost_bytes: u64) {}

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        WINDOW_BYTES
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        WINDOW_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
