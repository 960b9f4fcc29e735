//! The server against scrapers good and bad, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod kept;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prometheus::{IntCounter, Registry};
use tokio::runtime::{Builder, LocalOptions};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, Stream};
use weft_metrics::{Guard, NoAnswer, PROOF_TIME_MAX, Page, Source, TokenHash, UNPROVED_MAX, serve};

/// A source that counts how often it was asked.
struct Asked {
    times: AtomicU64,
    /// Whether it is well and has an answer.
    well: Arc<AtomicBool>,
    registry: Registry,
}

impl Source for Asked {
    async fn page(&self) -> Result<Page, NoAnswer> {
        if !self.well.load(Ordering::Relaxed) {
            return Err(NoAnswer);
        }
        let mut page = Page::new();
        let asked = self.times.fetch_add(1, Ordering::Relaxed) + 1;
        page.gauge("weft_test_number", "A number").count(&[], asked);
        Ok(page)
    }

    async fn is_healthy(&self) -> bool {
        self.well.load(Ordering::Relaxed)
    }

    fn registry(&self) -> Registry {
        self.registry.clone()
    }
}

/// Much longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn start() -> (SocketAddr, Arc<AtomicBool>) {
    start_guarded(Guard::loopback())
}

/// A server in a thread of its own, which ends with the test; and whether its source is well.
fn start_guarded(guard: Guard) -> (SocketAddr, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(true));
    let own = IntCounter::new("weft_test_own_total", "Counted by the process").unwrap();
    own.inc_by(7);
    let registry = Registry::new();
    registry.register(Box::new(own)).unwrap();
    let source = Asked { times: AtomicU64::new(0), well: well.clone(), registry };
    (serve_in_thread(guard, source), well)
}

fn serve_in_thread(guard: Guard, source: impl Source + Send) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
        runtime.block_on(async {
            listener.set_nonblocking(true).unwrap();
            serve(tokio::net::TcpListener::from_std(listener).unwrap(), guard, source).await;
        });
    });
    address
}

/// Says `request`, and gives all that comes back.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // Whoever refuses may close before all is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

#[test]
fn a_scrape_is_answered_by_the_driver() {
    let (address, _well) = start();
    for expected in 1..=3 {
        let answer = get(address, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
        assert!(answer.contains(&format!("\nweft_test_number {expected}\n")), "{answer}");
    }
    let answer = get(address, "/metrics?format=text");
    assert!(answer.contains("weft_exporter_requests_total{code=\"200\"} 3\n"), "{answer}");
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("weft_test"), "{head}");
}

#[test]
fn unknown_paths_and_methods_get_404_and_405() {
    let (address, _well) = start();
    let answer = get(address, "/");
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n") && answer.contains("/metrics"), "{answer}");
    let posted = ask(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
    assert!(posted.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{posted}");
    assert!(posted.contains("allow: GET, HEAD\r\n"), "{posted}");
    let page = get(address, "/metrics");
    for counted in ["code=\"404\"} 1\n", "code=\"405\"} 1\n"] {
        assert!(page.contains(counted), "{page}");
    }
}

#[test]
fn malformed_http_requests_stop_nothing() {
    let (address, _well) = start();
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(64 * 1024));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "X: a\r\n".repeat(500));
    for nonsense in ["\0\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", &long, &many, "GET /metrics HTTP/9.9\r\n\r\n"] {
        let answer = ask(address, nonsense);
        assert!(!answer.contains(" 200 OK"), "{answer}");
    }
    drop(TcpStream::connect(address).unwrap());
    let page = get(address, "/metrics");
    let broken = page
        .lines()
        .find_map(|line| line.strip_prefix("weft_exporter_connections_refused_total{reason=\"broken\"} "));
    assert!(broken.is_some_and(|count| count.parse::<u32>().unwrap() >= 5), "{page}");
}

/// How many connections the server has ended for these reasons.
fn ended(page: &str, reasons: &[&str]) -> u64 {
    let count = |reason: &&str| {
        let name = format!("weft_exporter_connections_refused_total{{reason=\"{reason}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name)).expect("a counter");
        line.parse::<u64>().unwrap()
    };
    reasons.iter().map(count).sum()
}

/// Opens connections that say nothing, and as many that say a byte of a head now and then, until the test ends.
fn besiege(address: SocketAddr, each: usize) -> (Vec<TcpStream>, Arc<AtomicBool>) {
    let open = || TcpStream::connect(address).unwrap();
    let silent = (0..each).map(|_| open()).collect();
    let mut dripping: Vec<_> = (0..each).map(|_| open()).collect();
    let over = Arc::new(AtomicBool::new(false));
    let done = over.clone();
    std::thread::spawn(move || {
        let head = b"GET /metrics HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat(&b'a'));
        for byte in head.take_while(|_| !done.load(Ordering::Relaxed)) {
            dripping.iter_mut().for_each(|stream| drop(stream.write(&[*byte])));
            std::thread::park_timeout(Duration::from_millis(50));
        }
    });
    (silent, over)
}

#[test]
fn silent_and_dripping_connections_keep_no_one_out() {
    let (address, _well) = start();
    let (_silent, over) = besiege(address, 150);
    let begun = Instant::now();
    for asked in 1..=10 {
        let page = get(address, "/metrics");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{asked}: {page}");
    }
    // Sooner than any deadline could have made room.
    assert!(begun.elapsed() < PROOF_TIME_MAX, "{:?}", begun.elapsed());
    // No byte puts the deadline of a head off: all come to their end.
    while ended(&get(address, "/metrics"), &["too_many", "too_slow", "broken"]) < 300 {
        assert!(begun.elapsed() < PATIENCE, "{}", get(address, "/metrics"));
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let page = get(address, "/metrics");
    over.store(true, Ordering::Relaxed);
    assert!(ended(&page, &["too_many"]) >= 300 - UNPROVED_MAX as u64, "{page}");
    assert!(ended(&page, &["too_slow"]) > 0, "{page}");
}

#[test]
fn connections_that_come_again_keep_no_one_out() {
    let (address, _well) = start();
    let over = Arc::new(AtomicBool::new(false));
    let done = over.clone();
    let flood = std::thread::spawn(move || {
        let mut open = std::collections::VecDeque::new();
        while !done.load(Ordering::Relaxed) {
            open.extend(TcpStream::connect(address));
            if open.len() > 300 {
                open.pop_front();
            }
        }
    });
    let answered = (0..10).filter(|_| get(address, "/healthz").ends_with("\r\nok\n")).count();
    over.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    assert_eq!(answered, 10);
}

#[test]
fn connections_without_a_handshake_keep_no_one_out() {
    let key = rcgen::generate_simple_self_signed(["pages.test".to_owned()]).unwrap();
    let own = key.cert.der().clone();
    let secret = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![own.clone()], secret);
    let elsewhere = ([192, 0, 2, 1], 9100).into();
    let guard = Guard::at(elsewhere, Some((Arc::new(server.unwrap()), TokenHash::of("secret")))).unwrap();
    let (address, _well) = start_guarded(guard);
    let mut trusted = RootCertStore::empty();
    trusted.add(own).unwrap();
    let client = Arc::new(ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth());
    let ask = |token: &str| {
        let name = ServerName::try_from("pages.test").unwrap();
        let mut session = ClientConnection::new(client.clone(), name).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let mut wire = Stream::new(&mut session, &mut stream);
        let head = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
        wire.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        // The answer ends the connection.
        let _ = wire.read_to_string(&mut answer);
        answer
    };
    let (_silent, over) = besiege(address, 150);
    let begun = Instant::now();
    for asked in 1..=10 {
        let answer = ask("secret");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{asked}: {answer}");
    }
    assert!(begun.elapsed() < PROOF_TIME_MAX, "{:?}", begun.elapsed());
    assert!(ask("guess").starts_with("HTTP/1.1 401 Unauthorized\r\n"));
    over.store(true, Ordering::Relaxed);
}

#[test]
fn a_process_without_an_answer_says_so() {
    let (address, well) = start();
    let health = get(address, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("\r\n\r\nok\n"), "{health}");
    well.store(false, Ordering::Relaxed);
    for path in ["/metrics", "/healthz"] {
        let answer = get(address, path);
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{path}: {answer}");
    }
    well.store(true, Ordering::Relaxed);
    assert!(get(address, "/metrics").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn the_registry_stands_behind_the_page() {
    let (address, _well) = start();
    let answer = get(address, "/metrics");
    let [page, own] = ["weft_test_number 1", "weft_test_own_total 7"].map(|text| answer.find(text).unwrap());
    assert!(page < own, "{answer}");
}

#[test]
fn pages_of_other_sites_get_nothing() {
    let (address, _well) = start();
    let asked = |lines: &str| ask(address, &format!("GET /metrics HTTP/1.1\r\n{lines}\r\n"));
    for forged in [
        "Host: evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
    ] {
        let answer = asked(forged);
        assert!(!answer.contains("weft_test") && !answer.contains(" 200 OK"), "{answer}");
    }
    let refused = asked("Host: evil.example\r\n");
    assert!(
        refused.contains("403 Forbidden") && refused.ends_with("ask by address or as localhost\n"),
        "{refused}"
    );
    let own = asked(&format!("Host: {address}\r\nOrigin: http://{address}\r\n"));
    assert!(own.contains("weft_test_number") && own.contains("x-content-type-options: nosniff\r\n"), "{own}");
}
