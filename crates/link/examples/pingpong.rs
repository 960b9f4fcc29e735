//! Round-trip time of a 290-byte packet to the neighbouring agent, beside a bare QUIC datagram of the same
//! size on the same machine in the same run. Each side has a thread of its own, as agents have processes.
//!
//! ```text
//! cargo run --release -p weft-link --example pingpong
//! ```

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{Endpoint, rustls};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use weft_link::{
    Authority, Cable, CableEnd, Credentials, Handler, Identity, LinkConfig, LinkEvent, LinkIndex, Links,
    node_name,
};
use weft_wire::{Guid, LinkParameters, PortNum, VirtualLane};

const ROUNDS: u32 = 10_000;
const REPEATS: usize = 7;
const PACKET: [u8; 290] = [7; 290];
const LOW: Guid = Guid(1);
const HIGH: Guid = Guid(2);

fn main() {
    let authority = Authority::new("pingpong").expect("a certificate authority");
    let low = authority.issue(&[LOW]).expect("a certificate");
    let high = authority.issue(&[HIGH]).expect("a certificate");
    let (mut bare, mut link) = (Vec::new(), Vec::new());
    // In turns, so that both see the same disturbances.
    for _ in 0..REPEATS {
        bare.push(bare_round_trip(&low, &high));
        link.push(link_round_trip(&low, &high));
    }
    bare.sort();
    link.sort();
    let (bare, link) = (bare[REPEATS / 2], link[REPEATS / 2]);
    println!("bare QUIC datagram, 290 bytes: {:.1} us", bare.as_secs_f64() * 1e6);
    println!("weft link on VL 15, 290 bytes: {:.1} us", link.as_secs_f64() * 1e6);
    println!("ratio: {:.3}", link.as_secs_f64() / bare.as_secs_f64());
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, future);
}

/// Both sides in threads; `high` says where it listens, `low` measures.
fn both(
    high: impl FnOnce(oneshot::Sender<SocketAddr>) + Send + 'static,
    low: impl FnOnce(SocketAddr) -> Duration,
) -> Duration {
    let (send, receive) = oneshot::channel();
    let thread = std::thread::spawn(move || high(send));
    let round_trip = low(receive.blocking_recv().expect("the other side listens"));
    thread.join().expect("the other side ends when this one does");
    round_trip
}

fn bare_round_trip(low: &Identity, high: &Identity) -> Duration {
    let (low, high) = (low.clone(), high.clone());
    both(
        move |address| block_on(bare_echo(&high, address)),
        move |address| {
            let mut took = Duration::ZERO;
            block_on(async { took = bare_measure(&low, address).await });
            took
        },
    )
}

fn certificate(identity: &Identity) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_slice(identity.pem().as_bytes()).expect("a certificate");
    (vec![certificate], PrivateKeyDer::from_pem_slice(identity.pem().as_bytes()).expect("a key"))
}

async fn bare_echo(high: &Identity, address: oneshot::Sender<SocketAddr>) {
    let (chain, key) = certificate(high);
    let server = quinn::ServerConfig::with_single_cert(chain, key).expect("a server");
    let endpoint = Endpoint::server(server, "127.0.0.1:0".parse().expect("an address")).expect("a socket");
    let _ = address.send(endpoint.local_addr().expect("a bound socket"));
    let connection = endpoint.accept().await.expect("a dialler").await.expect("a connection");
    while let Ok(packet) = connection.read_datagram().await {
        let _ = connection.send_datagram(packet);
    }
}

async fn bare_measure(low: &Identity, address: SocketAddr) -> Duration {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(low.ca_pem().as_bytes()).expect("the authority"))
        .expect("a root");
    let client = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client");
    let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a socket");
    let connection = endpoint
        .connect_with(client, address, &node_name(HIGH))
        .expect("a dial")
        .await
        .expect("a connection");
    let mut began = Instant::now();
    for round in 0..ROUNDS + 1000 {
        if round == 1000 {
            began = Instant::now();
        }
        connection.send_datagram(Bytes::from_static(&PACKET)).expect("room");
        connection.read_datagram().await.expect("an echo");
    }
    let took = began.elapsed() / ROUNDS;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    took
}

/// Sends every packet back, and for the side that measures, until the rounds are over.
struct Player {
    links: OnceCell<Links>,
    rounds: Cell<u32>,
    began: Cell<Instant>,
    done: Cell<Option<oneshot::Sender<Duration>>>,
    measures: bool,
}

impl Handler for Player {
    fn on_event(&self, event: LinkEvent) {
        let links = self.links.get().expect("set before the first event");
        let packet = match event {
            LinkEvent::Up { .. } if self.measures => Bytes::from_static(&PACKET),
            LinkEvent::Received { packet, .. } => packet,
            LinkEvent::Down { .. } => return drop(self.done.take()),
            _ => return,
        };
        let round = self.rounds.get();
        self.rounds.set(round + 1);
        if round == 1000 {
            self.began.set(Instant::now());
        }
        if round == 1000 + ROUNDS && self.measures {
            if let Some(done) = self.done.take() {
                let _ = done.send(self.began.get().elapsed() / ROUNDS);
            }
            return;
        }
        let _ = links.send(LinkIndex(0), VirtualLane::MANAGEMENT, packet);
    }
}

async fn play(
    me: Guid,
    other: Guid,
    identity: &Identity,
    to: SocketAddr,
    at: impl FnOnce(SocketAddr),
) -> Option<Duration> {
    let (send, done) = oneshot::channel();
    let player = Rc::new(Player {
        links: OnceCell::new(),
        rounds: Cell::new(0),
        began: Cell::new(Instant::now()),
        done: Cell::new(Some(send)),
        measures: me < other,
    });
    let end = |guid| CableEnd { guid, port: PortNum(1) };
    let parameters = LinkParameters::default();
    let cable = Cable { local: end(me), remote: end(other), remote_addr: to.into(), parameters };
    let config = LinkConfig::new("pingpong", me.0);
    let bind = "127.0.0.1:0".parse().expect("an address");
    let credentials = Credentials::new(identity.clone()).expect("an identity");
    let links = Links::bind(bind, &credentials, config, vec![cable], player.clone()).expect("a socket");
    at(links.local_addr().expect("a bound socket"));
    let _ = player.links.set(links.clone());
    links.start_dialling();
    let took = done.await.ok();
    links.shutdown().await;
    took
}

fn link_round_trip(low: &Identity, high: &Identity) -> Duration {
    let (low, high) = (low.clone(), high.clone());
    let nowhere: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    both(
        move |address| {
            block_on(async {
                play(HIGH, LOW, &high, nowhere, |at| address.send(at).expect("the other side waits")).await;
            });
        },
        move |address| {
            let mut took = Duration::ZERO;
            block_on(async { took = play(LOW, HIGH, &low, address, |_| ()).await.expect("a measurement") });
            took
        },
    )
}
