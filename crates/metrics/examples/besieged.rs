//! Answering times of an HTTP server to which others hold silent and dripping connections.
//!
//! ```text
//! cargo run --release -p weft-metrics --example besieged -- [ADDRESS [CA.pem TOKEN]]
//! ```
//!
//! Without an address it begins servers of its own, one on loopback and one with TLS. With one it asks whatever listens there, such as a
//! hub, for `/metrics`; with a certificate and a token by TLS. It prints how long ten requests took, one after the other, while 150 of 300
//! connections said nothing and 150 a byte every 50 ms.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures time and prints what it finds"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use prometheus::Registry;
use tokio::runtime::{Builder, LocalOptions};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, Stream};
use weft_metrics::{Guard, NoAnswer, Page, Source, TokenHash, serve};

/// Connections of each kind, and requests.
const EACH: usize = 150;
const REQUESTS: usize = 10;
/// Every certificate of a laboratory has this name.
const NAME: &str = "pages.http.weft";

struct Fixed(Registry);

impl Source for Fixed {
    async fn page(&self) -> Result<Page, NoAnswer> {
        Ok(Page::new())
    }

    async fn is_healthy(&self) -> bool {
        true
    }

    fn registry(&self) -> Registry {
        self.0.clone()
    }
}

/// What a client by TLS needs.
struct Tls {
    client: Arc<ClientConfig>,
    token: String,
}

impl Tls {
    fn trusting(authority: CertificateDer<'static>, token: String) -> Self {
        let mut trusted = RootCertStore::empty();
        trusted.add(authority).expect("a certificate");
        let client = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
        Self { client: Arc::new(client), token }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(address) = arguments.next() else { return own_servers() };
    let address = address.parse().expect("an address as 127.0.0.1:9100");
    let tls = arguments.next().zip(arguments.next()).map(|(authority, token)| {
        Tls::trusting(CertificateDer::from_pem_file(authority).expect("a certificate"), token)
    });
    measure(if tls.is_some() { "TLS" } else { "plain" }, address, tls.as_ref());
}

fn own_servers() {
    measure("plain", start(Guard::loopback()), None);
    let key = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a key");
    let own = key.cert.der().clone();
    let secret = PrivateKeyDer::try_from(key.signing_key.serialize_der()).expect("a key");
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![own.clone()], secret);
    let tls = Some((Arc::new(server.expect("a certificate")), TokenHash::of("secret")));
    // An address that is not loopback's is what makes the guard ask for TLS.
    let guard = Guard::at(([192, 0, 2, 1], 9100).into(), tls).expect("a guard");
    measure("TLS", start(guard), Some(&Tls::trusting(own, "secret".into())));
}

fn start(guard: Guard) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(async {
            listener.set_nonblocking(true).expect("a socket");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            serve(listener, guard, Fixed(Registry::new())).await;
        });
    });
    address
}

/// Opens the connections, asks, and prints how long it took.
fn measure(kind: &str, address: SocketAddr, tls: Option<&Tls>) {
    let open = || TcpStream::connect(address).expect("a connection");
    let _silent: Vec<TcpStream> = (0..EACH).map(|_| open()).collect();
    let mut dripping: Vec<TcpStream> = (0..EACH).map(|_| open()).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let head = b"GET /metrics HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat(&b'a'));
            for byte in head.take_while(|_| !over.load(Ordering::Relaxed)) {
                dripping.iter_mut().for_each(|stream| drop(stream.write(&[*byte])));
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        let took: Vec<Duration> = (0..REQUESTS).map(|_| ask(address, tls)).collect();
        let (all, slowest) = (begun.elapsed(), took.iter().max().expect("requests"));
        over.store(true, Ordering::Relaxed);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{kind}: {REQUESTS} of {REQUESTS} requests answered in {:.1} ms, the slowest in {:.1} ms, beside {} connections",
            millis(all),
            millis(*slowest),
            2 * EACH
        );
    });
}

/// Asks for `/metrics`, and gives how long the answer took.
fn ask(address: SocketAddr, tls: Option<&Tls>) -> Duration {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).expect("a connection");
    let mut answer = Vec::new();
    match tls {
        None => {
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
            stream.read_to_end(&mut answer).expect("an answer");
        }
        Some(Tls { client, token }) => {
            let name = ServerName::try_from(NAME).expect("a name");
            let mut session = ClientConnection::new(client.clone(), name).expect("a session");
            let mut wire = Stream::new(&mut session, &mut stream);
            let head =
                format!("GET /metrics HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer {token}\r\n\r\n");
            wire.write_all(head.as_bytes()).expect("a request");
            // The answer ends the connection.
            let _ = wire.read_to_end(&mut answer);
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&answer));
    begun.elapsed()
}
