//! The server against scrapers good and bad, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prometheus::{IntCounter, Registry};
use tokio::runtime::{Builder, LocalOptions};
use weft_metrics::{CONNECTIONS_MAX, Guard, NoAnswer, Page, Source, serve};

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

/// A server in a thread of its own, which ends with the test; and whether its source is well.
fn start() -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let well = Arc::new(AtomicBool::new(true));
    let own = IntCounter::new("weft_test_own_total", "Counted by the process").unwrap();
    own.inc_by(7);
    let registry = Registry::new();
    registry.register(Box::new(own)).unwrap();
    let source = Asked { times: AtomicU64::new(0), well: well.clone(), registry };
    std::thread::spawn(move || {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
        runtime.block_on(async {
            listener.set_nonblocking(true).unwrap();
            serve(tokio::net::TcpListener::from_std(listener).unwrap(), Guard::loopback(), source).await;
        });
    });
    (address, well)
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
fn what_is_not_there_and_what_may_not_be_done() {
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
fn what_is_no_request_stops_nothing() {
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

#[test]
fn idle_connections_take_no_more_than_their_places() {
    let (address, _well) = start();
    let mut idle: Vec<TcpStream> =
        (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Each is held once the server has accepted it; the one beyond is closed without a word.
    let turned_away = |stream: &mut TcpStream| matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_));
    assert!(turned_away(&mut TcpStream::connect(address).unwrap()));
    idle.pop();
    let page = loop {
        let page = get(address, "/metrics");
        if page.contains(" 200 OK") {
            break page;
        }
    };
    assert!(page.contains("{reason=\"too_many\"} "), "{page}");
    assert!(!page.contains("{reason=\"too_many\"} 0\n"), "{page}");
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
