//! Peers that must not be let in, and bytes that are no peers at all.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use common::{Agent, HIGH, LINK, LOW, PATIENCE, VL15, cable, config, free_address, pair, run};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ConnectionError, Endpoint, rustls};
use weft_link::{
    Authority, Call, Credentials, Doorway, DownReason, HANDSHAKES_MAX, Identity, Peer, Protocol,
    RefusalReason, TurnedAway, Validity, node_name,
};
use weft_wire::Guid;

use crate::common;

/// A dialler and an acceptor with identities and a cabling as given, before either is up.
fn strangers(low: &Identity, low_claims: Guid, high: &Identity, high_cables: bool) -> (Agent, Agent) {
    let (low_at, high_at) = (free_address(), free_address());
    let cables = if high_cables { vec![cable(HIGH, low_claims, low_at)] } else { vec![] };
    let high = Agent::start(high_at, high, config(1), cables);
    let low = Agent::start(low_at, low, config(2), vec![cable(low_claims, HIGH, high_at)]);
    (low, high)
}

#[test]
fn another_authoritys_dialler_is_refused() {
    run(async {
        let ours = Authority::new("test").unwrap();
        let theirs = Authority::new("test").unwrap();
        // The stranger trusts us, but we do not trust it.
        let own = theirs.issue(&[LOW]).unwrap().pem().to_owned();
        let stranger = Identity::from_pem(ours.certificate_pem(), own);
        let (mut low, mut high) = strangers(&stranger, LOW, &ours.issue(&[HIGH]).unwrap(), true);
        let reason = high.events.refused().await;
        assert!(matches!(reason, RefusalReason::Certificate(_)), "{reason:?}");
        let reason = low.events.refused().await;
        assert!(matches!(reason, RefusalReason::ByPeer(_)), "{reason:?}");
        assert!(high.links.peer_stats().refused >= 1 && !high.links.is_up(LINK) && !low.links.is_up(LINK));
    });
}

#[test]
fn another_authoritys_acceptor_is_refused() {
    run(async {
        let ours = Authority::new("test").unwrap();
        let theirs = Authority::new("test").unwrap();
        let (mut low, mut high) =
            strangers(&ours.issue(&[LOW]).unwrap(), LOW, &theirs.issue(&[HIGH]).unwrap(), true);
        let reason = low.events.refused().await;
        assert!(matches!(reason, RefusalReason::Certificate(_)), "{reason:?}");
        let reason = high.events.refused().await;
        assert!(matches!(reason, RefusalReason::ByPeer(_)), "{reason:?}");
        assert!(low.links.stats(LINK).refused >= 1);
    });
}

#[test]
fn an_acceptor_with_another_nodes_certificate_is_refused() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let wrong = authority.issue(&[Guid(0x99)]).unwrap();
        let (mut low, _high) = strangers(&authority.issue(&[LOW]).unwrap(), LOW, &wrong, true);
        let reason = low.events.refused().await;
        assert!(matches!(reason, RefusalReason::Certificate(_)), "{reason:?}");
    });
}

#[test]
fn a_dialler_with_another_nodes_certificate_is_refused() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let wrong = authority.issue(&[Guid(0x09)]).unwrap();
        let (mut low, mut high) = strangers(&wrong, LOW, &authority.issue(&[HIGH]).unwrap(), true);
        assert_eq!(high.events.refused().await, RefusalReason::WrongNode(LOW));
        let reason = low.events.refused().await;
        assert!(
            matches!(&reason, RefusalReason::ByPeer(text) if text.contains("does not cover")),
            "{reason:?}"
        );
        assert!(high.links.stats(LINK).refused >= 1);
    });
}

#[test]
fn a_cable_that_the_cabling_does_not_have_is_refused() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let low = authority.issue(&[LOW]).unwrap();
        let (mut low, mut high) = strangers(&low, LOW, &authority.issue(&[HIGH]).unwrap(), false);
        let reason = high.events.refused().await;
        let (from, to) = (common::end(LOW), common::end(HIGH));
        assert_eq!(reason, RefusalReason::NotCabled { from, to });
        let reason = low.events.refused().await;
        assert!(matches!(&reason, RefusalReason::ByPeer(text) if text.contains("no cable")), "{reason:?}");
        // It comes back and is refused again: the dialler never gives up.
        assert!(matches!(low.events.refused().await, RefusalReason::ByPeer(_)));
    });
}

#[test]
fn a_peer_of_another_laboratory_is_refused() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let (low_at, high_at) = (free_address(), free_address());
        let mut other = config(1);
        other.lab = "other".into();
        let high_identity = authority.issue(&[HIGH]).unwrap();
        let mut high = Agent::start(high_at, &high_identity, other, vec![cable(HIGH, LOW, low_at)]);
        let low_identity = authority.issue(&[LOW]).unwrap();
        let _low = Agent::start(low_at, &low_identity, config(2), vec![cable(LOW, HIGH, high_at)]);
        assert_eq!(high.events.refused().await, RefusalReason::WrongLab("test".into()));
    });
}

/// A QUIC client with a valid certificate that then says what it likes.
async fn intruder(identity: &Identity, to: SocketAddr) -> (Endpoint, quinn::Connection) {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(identity.pem().as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(identity.pem().as_bytes()).unwrap(),
        )
        .unwrap();
    tls.alpn_protocols = vec![b"weft-link".to_vec()];
    let client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let connection = endpoint.connect_with(client, to, &node_name(HIGH)).unwrap().await.unwrap();
    (endpoint, connection)
}

#[test]
fn an_expired_identity_is_refused_in_words() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let now = time::OffsetDateTime::now_utc();
        let day = Duration::from_secs(24 * 60 * 60);
        let past = Validity { from: now - day * 3, until: now - day * 2 };
        let (low_at, high_at) = (free_address(), free_address());
        let fresh = authority.issue(&[HIGH]).unwrap();
        let mut high = Agent::start(high_at, &fresh, config(1), vec![cable(HIGH, LOW, low_at)]);
        let stale = authority.valid(past).issue(&[LOW]).unwrap();
        let _low = Agent::start(low_at, &stale, config(2), vec![cable(LOW, HIGH, high_at)]);
        let RefusalReason::Certificate(why) = high.events.refused().await else { panic!("another reason") };
        assert!(why.contains("expired"), "{why}");
    });
}

#[test]
fn malformed_hellos_are_refused() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let at = free_address();
        let mut high = Agent::start(
            at,
            &authority.issue(&[HIGH]).unwrap(),
            config(1),
            vec![cable(HIGH, LOW, free_address())],
        );
        let identity = authority.issue(&[LOW]).unwrap();
        let hellos: [(&[u8], RefusalReason); 5] = [
            (&[3, 0, 255, 255, 0], RefusalReason::Oversized(65535)),
            (&[7, 0, 1, 0, 0], RefusalReason::Version(7)),
            (&[3, 0, 3, 0, 9, 9, 9], RefusalReason::Malformed),
            (&[3, 0, 1, 0, 1], RefusalReason::Malformed), // Ready, and no hello before it
            (&[3, 0], RefusalReason::Malformed),          // and then the stream ends
        ];
        for (bytes, reason) in hellos {
            let (_endpoint, connection) = intruder(&identity, at).await;
            let (mut send, _receive) = connection.open_bi().await.unwrap();
            send.write_all(bytes).await.unwrap();
            let _ = send.finish();
            assert_eq!(high.events.refused().await, reason);
            let closed = connection.closed().await;
            assert!(matches!(closed, ConnectionError::ApplicationClosed(_)), "{closed:?}");
        }
        assert_eq!(high.links.peer_stats().refused, 5);
    });
}

#[test]
fn a_peer_that_connects_and_says_nothing_is_dropped() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let at = free_address();
        let mut quick = config(1);
        quick.handshake_timeout_ms = 200;
        let cables = vec![cable(HIGH, LOW, free_address())];
        let mut high = Agent::start(at, &authority.issue(&[HIGH]).unwrap(), quick, cables);
        let (_endpoint, connection) = intruder(&authority.issue(&[LOW]).unwrap(), at).await;
        let closed = tokio::time::timeout(Duration::from_secs(20), connection.closed()).await;
        assert!(closed.is_ok(), "the silent peer was kept");
        let counted = async {
            while high.links.peer_stats().unfinished == 0 {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(20), counted).await.is_ok(), "nobody counted it");
        assert!(high.events.is_quiet() && !high.links.is_up(LINK));
    });
}

#[test]
fn too_many_peers_that_say_nothing_are_ignored_and_counted() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let at = free_address();
        let mut patient = config(1);
        patient.handshake_timeout_ms = 60_000;
        let cables = vec![cable(HIGH, LOW, free_address())];
        let high = Agent::start(at, &authority.issue(&[HIGH]).unwrap(), patient, cables);
        let identity = authority.issue(&[LOW]).unwrap();
        // With one cable, 18 handshakes may be under way.
        let mut silent = Vec::new();
        for _ in 0..18 {
            silent.push(intruder(&identity, at).await);
        }
        assert_eq!(high.links.peer_stats().ignored, 0);
        let counted = async {
            while high.links.peer_stats().ignored == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = intruder(&identity, at) => panic!("one more was let in"),
            counted = tokio::time::timeout(Duration::from_secs(20), counted) => counted.unwrap(),
        }
    });
}

/// The first packets of as many clients, which say no more.
async fn initials<F: Future<Output = ()> + 'static>(
    count: usize,
    dial: impl Fn(SocketAddr) -> F,
) -> Vec<Vec<u8>> {
    let nobody = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = nobody.local_addr().unwrap();
    let mut dialling = tokio::task::JoinSet::new();
    for _ in 0..count {
        dialling.spawn_local(dial(to));
    }
    // By the connection id that the client has drawn (RFC 9000, section 17.2), so that none counts twice.
    let mut found = std::collections::BTreeMap::new();
    while found.len() < count {
        let mut packet = vec![0; 2048];
        let length = nobody.recv(&mut packet).await.unwrap();
        packet.truncate(length);
        found.insert(packet[6..6 + usize::from(packet[5])].to_vec(), packet);
    }
    dialling.abort_all();
    found.into_values().collect()
}

/// First packets of strangers take half of a door's places for handshakes. A client that proves its address is let in at once.
#[test]
fn strangers_do_not_shut_a_door() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let hub = Credentials::new(authority.issue_role("hub", &[]).unwrap()).unwrap();
        let retried = Rc::new(Cell::new(0));
        let counts = retried.clone();
        let count = move |how| {
            assert_eq!(how, TurnedAway::Retried);
            counts.set(counts.get() + 1);
        };
        let mut doorway = Doorway::open(free_address(), &hub, &[Protocol::Control], count).unwrap();
        let to = doorway.address().unwrap();
        let viewer = Credentials::new(authority.issue_role("viewer", &[]).unwrap()).unwrap();
        let dial = |to| {
            let viewer = viewer.clone();
            async move { Call::place(to, &Peer::Role("hub".into()), &viewer, Protocol::Control).await }
        };
        let knocking = |to| {
            let dialling = dial(to);
            async move { drop(dialling.await) }
        };
        let packets = initials(HANDSHAKES_MAX + 2, knocking).await;
        let from = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let knock = async {
            for packet in &packets {
                from.send_to(packet, to).await.unwrap();
                tokio::task::yield_now().await;
            }
            while retried.get() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            visitor = doorway.next() => panic!("{visitor:?} was let in"),
            done = tokio::time::timeout(PATIENCE, knock) => done.unwrap(),
        }
        let before = retried.get();
        let (call, visitor) = tokio::join!(dial(to), tokio::time::timeout(PATIENCE, doorway.next()));
        assert_eq!(visitor.unwrap().unwrap().role(), Some("viewer"));
        assert!(retried.get() > before, "the places were free when the client came");
        call.unwrap().end().await;
    });
}

/// The first packets of 40 clients come from one address and nothing follows; the neighbour that begins then is let in at
/// once.
fn the_neighbour_is_let_in(from: impl FnOnce(std::net::SocketAddr) -> UdpSocket) {
    run(async {
        let authority = Authority::new("test").unwrap();
        let (low_at, at) = (free_address(), free_address());
        let mut patient = config(1);
        patient.handshake_timeout_ms = 600_000;
        let identity = authority.issue(&[HIGH]).unwrap();
        let mut high = Agent::start(at, &identity, patient.clone(), vec![cable(HIGH, LOW, low_at)]);
        let identity = authority.issue(&[LOW]).unwrap();
        let sender = from(low_at);
        let dial = |to| {
            let identity = identity.clone();
            async move { drop(intruder(&identity, to).await) }
        };
        for packet in initials(40, dial).await {
            sender.send_to(&packet, at).unwrap();
        }
        let full = async {
            while high.links.peer_stats().retried + high.links.peer_stats().ignored == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), full).await.expect("the places are taken");
        drop(sender);
        let mut low = Agent::start(low_at, &identity, patient, vec![cable(LOW, HIGH, at)]);
        high.events.up().await;
        low.events.up().await;
    });
}

#[test]
fn strangers_do_not_keep_a_cable_down() {
    the_neighbour_is_let_in(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
}

/// Packets that bear the neighbour's own address hold no place that it needs: it proves that it is there.
#[test]
fn packets_in_a_neighbours_name_do_not_keep_a_cable_down() {
    the_neighbour_is_let_in(|neighbour| UdpSocket::bind(neighbour).unwrap());
}

#[test]
fn garbage_on_the_port_does_nothing() {
    run(async {
        let (mut low, mut high) = pair(|_| {}).await;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // In portions, because a full socket buffer would lose the packets between them too.
        for portion in 0..25usize {
            for number in portion * 20..portion * 20 + 20 {
                let length = 1 + (number * 37) % 1400;
                let garbage: Vec<u8> = (0..length).map(|at| (at * 31 + number * 17) as u8).collect();
                socket.send_to(&garbage, high.links.local_addr().unwrap()).unwrap();
            }
            low.send(VL15, b"still here");
            assert_eq!(high.events.packet().await.1.as_ref(), b"still here");
            high.send(VL15, b"so am I");
            assert_eq!(low.events.packet().await.1.as_ref(), b"so am I");
        }
        assert_eq!(high.links.peer_stats().refused, 0);
    });
}

#[test]
fn a_lane_stream_that_is_none_closes_the_link() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let at = free_address();
        let cables = vec![cable(HIGH, LOW, free_address())];
        let mut high = Agent::start(at, &authority.issue(&[HIGH]).unwrap(), config(1), cables);
        let identity = authority.issue(&[LOW]).unwrap();
        // The bytes of a good hello, recorded from a dialler that found us in place of its peer.
        let hello = recorded_hello(&identity).await;
        let streams = [
            &[15u8][..],
            &[0, 9, 0, 0],
            &[0, 0, 255, 255],
            // A data packet that is none, and flow control of another lane.
            &[0, 1, 4, 0, 1, 2, 3, 4],
            &[0, 2, 4, 0, 0, 0, 0x30, 0],
        ];
        for bytes in streams {
            let (_endpoint, connection) = intruder(&identity, at).await;
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(&hello).await.unwrap();
            receive.read_exact(&mut [0; 4]).await.unwrap();
            send.write_all(&[3, 0, 1, 0, 1]).await.unwrap();
            high.events.up().await;
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(bytes).await.unwrap();
            assert_eq!(high.events.down().await, DownReason::Malformed);
        }
        assert_eq!(high.links.stats(LINK).malformed_frames, 5);
    });
}

/// What a dialler with this identity says first.
async fn recorded_hello(identity: &Identity) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authority = Authority::new("test").unwrap();
    let mine = authority.issue(&[HIGH]).unwrap();
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(mine.pem().as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(mine.pem().as_bytes()).unwrap(),
        )
        .unwrap();
    tls.alpn_protocols = vec![b"weft-link".to_vec()];
    let server = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let server = quinn::ServerConfig::with_crypto(Arc::new(server));
    let endpoint = Endpoint::server(server, "127.0.0.1:0".parse().unwrap()).unwrap();
    let dialler = Identity::from_pem(mine.ca_pem(), identity.pem().to_owned());
    let at = endpoint.local_addr().unwrap();
    let _low = Agent::start(free_address(), &dialler, config(2), vec![cable(LOW, HIGH, at)]);
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let (_send, mut receive) = connection.accept_bi().await.unwrap();
    let mut hello = vec![0; 4];
    receive.read_exact(&mut hello).await.unwrap();
    let mut body = vec![0; usize::from(u16::from_le_bytes([hello[2], hello[3]]))];
    receive.read_exact(&mut body).await.unwrap();
    hello.extend_from_slice(&body);
    hello
}
