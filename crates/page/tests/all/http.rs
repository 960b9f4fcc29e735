//! The server against browsers that mean well, and others.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_page::state::{Flow, Node};
use weft_page::{Act, Assets, Counts, Done, Pages, Refusal, Registry, Source, Stage, Stagehand, State};

const TOKEN: &str = "5ec2e7";
const BOUND: Duration = Duration::from_secs(20);

struct Hands {
    may_act: bool,
}

impl Stagehand for Hands {
    fn may_act(&self) -> bool {
        self.may_act
    }

    fn act(&self, act: Act) -> Result<Done, Refusal> {
        match act {
            Act::Kill { node } if node == "S1" => Ok(Done::Words("killed S1".to_owned())),
            Act::Capture { .. } => Ok(Done::File { name: "a\"b/..:1.pcap".to_owned(), bytes: vec![1, 2] }),
            _ => Err(Refusal { status: 409, error: "no".to_owned(), hint: Some("later".to_owned()) }),
        }
    }
}

struct Served {
    address: SocketAddr,
    stage: Arc<Stage>,
    counts: Counts,
}

fn state(at_ms: u64, name: &str) -> State {
    let mut state = State::default();
    (state.head.v, state.head.at_ms, state.head.lab) = (1, at_ms, name.to_owned());
    state.nodes.insert("0".to_owned(), Node { name: name.to_owned(), ..Node::default() });
    state
}

fn serve_as(may_act: bool) -> Served {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let registry = Registry::new();
    let counts = Counts::new(&registry);
    let stage = Stage::new(counts.clone());
    stage.show(state(1000, "x5"), Vec::new());
    let source = Source::Live(stage.clone(), Arc::new(Hands { may_act }));
    let serve = move || {
        let pages = Pages::new(source, Assets::Own, address, TOKEN, &registry);
        weft_page::serve(listener, pages).unwrap();
    };
    std::thread::Builder::new().spawn(serve).unwrap();
    Served { address, stage, counts }
}

fn serve() -> Served {
    serve_as(true)
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream
    }

    /// All that comes of a request.
    fn raw(&self, request: &str) -> String {
        let mut stream = self.connect();
        // One that is refused early may not take all of it.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn head(&self, line: &str, more: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n{more}\r\n", self.address)
    }

    fn get(&self, path: &str) -> String {
        self.raw(&self.head(&format!("GET {path}"), ""))
    }

    fn post(&self, content: &str) -> String {
        let length = format!("Content-Length: {}\r\n", content.len());
        self.raw(&(self.head("POST /api/act", &length) + content))
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

fn json(answer: &str) -> Value {
    let content = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(content).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// A stream, line by line, whatever the chunks are.
struct Lines {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Lines {
    fn next(&mut self) -> Value {
        let until = Instant::now() + BOUND;
        loop {
            let end = self.bytes.iter().position(|byte| *byte == b'\n');
            let line: Vec<u8> = end.map(|end| self.bytes.drain(..=end).collect()).unwrap_or_default();
            if line.starts_with(b"{") {
                return serde_json::from_slice(&line).unwrap();
            }
            if end.is_none() {
                assert!(Instant::now() < until, "no line comes");
                let mut piece = [0; 4096];
                let count = self.stream.read(&mut piece).unwrap();
                assert!(count > 0, "the stream has ended");
                self.bytes.extend_from_slice(&piece[..count]);
            }
        }
    }
}

fn stream(served: &Served) -> Lines {
    let mut stream = served.connect();
    stream.write_all(served.head("GET /api/stream?from=live", "").as_bytes()).unwrap();
    Lines { stream, bytes: Vec::new() }
}

#[test]
fn a_stream_begins_with_a_key_and_goes_on_with_patches() {
    let served = serve();
    let mut lines = stream(&served);
    assert_eq!(lines.next()["key"]["nodes"]["0"]["name"], "x5");
    served.stage.show(state(2000, "<script>alert(1)</script>"), Vec::new());
    let patch = lines.next();
    assert_eq!(patch["patch"]["nodes"]["0"]["name"], "<script>alert(1)</script>", "text stays text");
    served.stage.lose("gone");
    assert_eq!(lines.next()["gone"], "gone");
    served.stage.show(state(3000, "x5"), Vec::new());
    assert_eq!(lines.next()["key"]["lab"], "x5");
    assert!(served.stage.is_watched());
    drop(lines);
    let until = Instant::now() + BOUND;
    let mut at = 4000;
    while served.stage.is_watched() {
        assert!(Instant::now() < until, "a reader that has gone is forgotten");
        at += 1;
        served.stage.show(state(at, &at.to_string()), Vec::new());
    }
}

#[test]
fn requests_without_the_token_get_nothing() {
    let served = serve();
    let host = format!("Host: {}\r\n", served.address);
    for path in
        ["/api/stream", "/api/tape", "/api/tape/at?ms=1", "/api/flow?id=a", "/api/metrics", "/api/none"]
    {
        for shown in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic 5ec2e7\r\n"] {
            let answer = served.raw(&format!("GET {path} HTTP/1.1\r\n{host}{shown}\r\n"));
            assert_eq!(status(&answer), 401, "{answer}");
            assert!(json(&answer)["hint"].as_str().unwrap().contains("weft ui") && !answer.contains("x5"));
        }
    }
    let act = format!("POST /api/act HTTP/1.1\r\n{host}Content-Length: 2\r\n\r\n{{}}");
    assert_eq!(status(&served.raw(&act)), 401);
    let query = format!("GET /api/tape?token={TOKEN} HTTP/1.1\r\n{host}\r\n");
    assert_eq!(status(&served.raw(&query)), 401, "the token is no part of an address");
    let page = served.raw(&format!("GET / HTTP/1.1\r\n{host}\r\n"));
    assert_eq!(status(&page), 200);
    assert!(page.contains("default-src 'none'") && page.contains("<title>"), "{page}");
}

#[test]
fn other_sites_get_nothing() {
    let served = serve();
    let own = served.address;
    let ask = |headers: &str| {
        served.raw(&format!("GET /api/tape HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n"))
    };
    assert_eq!(status(&ask(&format!("Host: {own}\r\nOrigin: http://{own}\r\n"))), 200);
    assert_eq!(status(&ask(&format!("Host: localhost:{}\r\n", own.port()))), 200);
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "10.0.0.1:80", "[::1]:80", ""] {
        assert_eq!(status(&ask(&format!("Host: {host}\r\n"))), 403, "{host}");
    }
    for origin in
        ["http://evil.example", "null", "https://127.0.0.1", &format!("https://{own}"), "http://localhost"]
    {
        assert_eq!(status(&ask(&format!("Host: {own}\r\nOrigin: {origin}\r\n"))), 403, "{origin}");
    }
    let posted = format!("POST /api/act HTTP/1.1\r\nHost: {own}\r\nOrigin: http://evil.example\r\n");
    let posted = posted + &format!("Authorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(status(&served.raw(&posted)), 403);
}

#[test]
fn orders_are_carried_out_or_refused_in_words() {
    let served = serve();
    assert_eq!(json(&served.post(r#"{"do":"kill","node":"S1"}"#))["done"], "killed S1");
    let refused = served.post(r#"{"do":"kill","node":"S2"}"#);
    assert_eq!((status(&refused), &json(&refused)["hint"]), (409, &Value::from("later")));
    for wrong in ["", "{", "[]", r#"{"do":"rm"}"#, r#"{"do":"kill"}"#, "\u{0}"] {
        assert_eq!(status(&served.post(wrong)), 400, "{wrong}");
    }
    let long = served.post(&"x".repeat(70_000));
    assert!(long.is_empty() || status(&long) == 413, "{long}");
    let file = served.post(r#"{"do":"capture","cable":"1"}"#);
    assert!(file.contains("filename=\"ab..1.pcap\"") && file.ends_with("\u{1}\u{2}"), "{file}");
    assert_eq!(status(&served.raw(&served.head("POST /api/tape", "Content-Length: 0\r\n"))), 405);
    assert_eq!(status(&served.get("/api/act")), 405);
    let viewer = serve_as(false);
    let refused = viewer.post(r#"{"do":"kill","node":"S1"}"#);
    assert_eq!(status(&refused), 403, "{refused}");
    assert_eq!(status(&viewer.get("/api/tape")), 200, "a viewer looks");
}

#[test]
fn what_was_is_shown_and_played() {
    let served = serve();
    for second in 2..30 {
        served.stage.show(state(second * 1000, &format!("x{second}")), Vec::new());
    }
    let span = json(&served.get("/api/tape"));
    assert_eq!(
        (&span["from_ms"], &span["to_ms"], &span["live"]),
        (&1000.into(), &29_000.into(), &true.into())
    );
    assert_eq!(json(&served.get("/api/tape/at?ms=7500"))["key"]["lab"], "x7");
    let played = served.get("/api/tape/play?from=7500&to=20500");
    let labs: Vec<String> = played
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let lab = line["key"]["lab"].as_str().or_else(|| line["patch"]["lab"].as_str());
            lab.unwrap().to_owned()
        })
        .collect();
    assert_eq!(labs, (7..=20).map(|second| format!("x{second}")).collect::<Vec<_>>());
    for wrong in ["/api/tape/at", "/api/tape/at?ms=-1", "/api/tape/at?ms=x", "/api/tape/play?from=1"] {
        assert_eq!(status(&served.get(wrong)), 400, "{wrong}");
    }
}

#[test]
fn a_flow_is_shown_by_its_name() {
    let served = serve();
    let mut with_flow = state(2000, "x5");
    let flow = Flow { name: "web".into(), why: Some("cut off".into()), ..Flow::default() };
    with_flow.flows.insert("web".to_owned(), flow);
    served.stage.show(with_flow, Vec::new());
    assert_eq!(json(&served.get("/api/flow?id=web"))["why"], "cut off");
    assert_eq!(status(&served.get("/api/flow?id=none")), 404);
    assert_eq!(status(&served.get("/api/flow")), 400);
}

#[test]
fn unknown_paths_and_long_heads_are_refused() {
    let served = serve();
    for path in ["/none", "/app/../Cargo.toml", "/../Cargo.toml", "/app/%2e%2e/x", "/api/none", "/index.htm"]
    {
        assert_eq!(status(&served.get(path)), 404, "{path}");
    }
    let long = served.raw(&served.head("GET /", &format!("X: {}\r\n", "x".repeat(1 << 20))));
    assert!(long.is_empty() || status(&long) == 431, "{}", &long[..long.len().min(100)]);
    assert_eq!(status(&served.get("/")), 200, "others are served as before");
}

/// A reader that takes nothing has a place among lines and no queue: when it reads again, it gets the state.
#[test]
fn a_slow_reader_gets_a_new_key() {
    let served = serve();
    let mut lines = stream(&served);
    assert!(lines.next()["key"].is_object());
    let large = "x".repeat(200_000);
    for second in 2..200_u64 {
        served.stage.show(state(second * 10, &format!("{second}{large}")), Vec::new());
        std::thread::yield_now();
    }
    let mut keys = 0;
    let last = format!("199{large}");
    loop {
        let line = lines.next();
        keys += u32::from(line["key"].is_object());
        let lab = line["key"]["lab"].as_str().or_else(|| line["patch"]["lab"].as_str());
        if lab == Some(&last) {
            break;
        }
    }
    assert!(keys >= 1 && served.counts.slow() >= 1, "{keys} keys, {} times slow", served.counts.slow());
}
