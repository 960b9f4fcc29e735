//! A page that is kept compressed between editions.

use flate2::read::GzDecoder;
use tokio::sync::watch;

use super::*;

/// A page of many lines, each of which says how often it was made.
struct Edited {
    made: AtomicU64,
    editions: watch::Receiver<u64>,
}

/// Samples of the page.
const LINES: u64 = 5000;

impl Source for Edited {
    async fn page(&self) -> Result<Page, NoAnswer> {
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let mut page = Page::new();
        let mut family = page.gauge("weft_test_number", "A number");
        for line in 0..LINES {
            family.count(&[("line", &line.to_string())], made);
        }
        Ok(page)
    }

    async fn editions(&self) -> Option<watch::Receiver<u64>> {
        Some(self.editions.clone())
    }
}

fn start_edited() -> (SocketAddr, watch::Sender<u64>) {
    let (sender, editions) = watch::channel(0);
    (serve_in_thread(Guard::loopback(), Edited { made: AtomicU64::new(0), editions }), sender)
}

/// What is said to a client that takes this coding: head and body.
fn scrape(address: SocketAddr, coding: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
}

/// The page of a client that takes gzip, as soon as one is kept; and how long it was.
fn unpacked(address: SocketAddr) -> (String, usize) {
    let begun = Instant::now();
    loop {
        let (head, body) = scrape(address, "gzip");
        assert!(begun.elapsed() < PATIENCE, "{head}");
        if head.contains("content-encoding: gzip\r\n") {
            let mut page = String::new();
            GzDecoder::new(&body[..]).read_to_string(&mut page).unwrap();
            return (page, body.len());
        }
    }
}

/// The lines of the source; those of the server count its answers.
fn told(page: &str) -> Vec<&str> {
    page.lines().filter(|line| line.contains("weft_test_number")).collect()
}

#[test]
fn a_kept_page_unpacks_to_the_plain_one_and_follows_editions() {
    let (address, editions) = start_edited();
    let (first, length) = unpacked(address);
    assert!(length * 10 < first.len(), "{length} of {}", first.len());
    assert_eq!(told(&first).len() as u64, LINES + 2, "help, type and samples");
    assert!(first.contains("# TYPE weft_exporter_requests_total counter\n"), "{first}");
    // Who takes no gzip is shown the same edition.
    let (head, body) = scrape(address, "identity");
    assert!(!head.contains("content-encoding"), "{head}");
    assert!(head.contains("vary: accept-encoding"), "{head}");
    assert_eq!(told(std::str::from_utf8(&body).unwrap()), told(&first));
    assert_eq!(told(&unpacked(address).0), told(&first), "no page is made for a scrape");
    // A new edition is a new page, and it is there without another scrape's asking for it.
    editions.send_modify(|edition| *edition += 1);
    let begun = Instant::now();
    while told(&unpacked(address).0) == told(&first) {
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn what_is_kept_does_not_hide_what_the_server_counts() {
    let (address, _editions) = start_edited();
    let count = |page: &str| {
        let line =
            page.lines().find_map(|line| line.strip_prefix("weft_exporter_requests_total{code=\"200\"} "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = count(&unpacked(address).0);
    assert_eq!(count(&unpacked(address).0), before + 1);
}
