//! The live page of a laboratory that runs, as a browser asks for it, and tapes of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{Home, Running, text, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use weft_page::merge::apply;

use crate::common;

/// Nothing on the page comes later, or it does not come.
const BOUND: Duration = Duration::from_secs(60);

/// A page that is served.
pub(crate) struct Page {
    /// None when it was closed.
    process: Option<Running>,
    address: String,
    token: String,
}

impl Page {
    pub(crate) fn open(home: &Home, arguments: &[&str]) -> Self {
        Self::serve(Running::start(home, &[&["ui", "--no-browser"], arguments].concat()))
    }

    /// That of a process that has just begun to serve it.
    pub(crate) fn serve(mut process: Running) -> Self {
        let url = process.line();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
        assert!(address.starts_with("127.0.0.1:") && token.len() == 32, "{url}");
        Self { address: address.to_owned(), token: token.to_owned(), process: Some(process) }
    }

    fn ask(&self, line: &str, token: &str, content: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let (address, length) = (&self.address, content.len());
        let head = format!("{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n{content}").unwrap();
        stream
    }

    fn answer(&self, line: &str, token: &str, content: &str) -> (u16, Value) {
        let mut answer = String::new();
        self.ask(line, token, content).read_to_string(&mut answer).unwrap();
        let (head, content) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, serde_json::from_str(content).unwrap_or(Value::Null))
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (code, value) = self.answer(&format!("GET {path}"), &self.token, "");
        assert_eq!(code, 200, "{path}: {value}");
        value
    }

    fn act(&self, order: &Value) -> Value {
        let (code, value) = self.answer("POST /api/act", &self.token, &order.to_string());
        assert_eq!(code, 200, "{order}: {value}");
        value["done"].clone()
    }

    pub(crate) fn watch(&self) -> Watch {
        let stream = self.ask("GET /api/stream?from=live", &self.token, "");
        Watch { lines: BufReader::new(stream), state: Value::Null }
    }

    /// Ends as with Ctrl-C.
    pub(crate) fn close(mut self) {
        let process = self.process.take().unwrap();
        process.signal(Signal::INT);
        let done = process.done();
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
}

/// A test that failed leaves none behind.
impl Drop for Page {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal(Signal::INT);
            let _ = process.end();
        }
    }
}

/// The state, as the page keeps it.
pub(crate) struct Watch {
    lines: BufReader<TcpStream>,
    pub(crate) state: Value,
}

impl Watch {
    /// Takes lines until the state is as wanted.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let begun = std::time::Instant::now();
        loop {
            assert!(begun.elapsed() < BOUND, "{what}: {}", self.state);
            if !self.state.is_null() && is_so(&self.state) {
                return;
            }
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "{what}: the stream has ended");
            // Other lines are the server's head and its chunks.
            let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(key) = line.get("key") {
                self.state = key.clone();
            } else if let Some(patch) = line.get("patch") {
                apply(&mut self.state, patch);
            }
        }
    }
}

pub(crate) fn rows<'a>(state: &'a Value, table: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    state[table].as_object().into_iter().flatten()
}

pub(crate) fn node<'a>(state: &'a Value, name: &str) -> &'a Value {
    rows(state, "nodes").find(|(_, node)| node["name"] == name).map_or(&Value::Null, |(_, node)| node)
}

fn fault<'a>(state: &'a Value, kind: &str) -> Option<(&'a String, &'a Value)> {
    rows(state, "faults").find(|(_, fault)| fault["kind"] == kind)
}

fn all(state: &Value, table: &str, field: &str, value: &str) -> bool {
    rows(state, table).all(|(_, row)| row[field] == value)
}

#[test]
fn the_page_shows_what_happens_and_acts() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let page = Page::open(&home, &[]);
    assert_eq!(page.answer("GET /api/stream", "", "").0, 401);
    assert_eq!(page.answer("POST /api/act", "wrong", "{}").0, 401);
    let mut watch = page.watch();
    watch.until("all devices and cables are there", |state| {
        let summary = &state["summary"];
        (summary["hosts"] == 4 && rows(state, "nodes").count() == 8 && summary["links_down"] == 0)
            && (all(state, "cables", "state", "active") && all(state, "nodes", "state", "up"))
    });
    let state = &watch.state;
    assert_eq!((&state["layout"]["kind"], &state["may_act"]), (&json!("tiers"), &json!(true)));
    assert_eq!(state["summary"]["cables"], rows(state, "cables").count());
    assert!(node(state, "host-0")["lids"][0].as_u64() > Some(0) && node(state, "host-0")["leaf"].is_string());
    watch.until("a master is shown", |state| state["managers"]["sm"]["state"] == "master");
    let order = json!({"do": "flow-start", "from": "host-0", "to": "host-3", "name": "web"});
    assert_eq!(page.act(&order), "flow `web` has begun");
    watch.until("the flow has its way, and its cables their load", |state| {
        let flow = &state["flows"]["web"];
        let steps = flow["path"].as_array().map_or(&[][..], Vec::as_slice);
        let is_loaded = |step: &Value| {
            let way = if step[1] == 0 { "ab" } else { "ba" };
            state["cables"][step[0].as_str().unwrap()][way]["mbps"].as_f64() > Some(0.1)
        };
        steps.len() == 4 && steps.iter().all(is_loaded) && flow["mbps"].as_f64() > Some(0.1)
    });
    let hops = page.get("/api/flow?id=web");
    assert_eq!(
        (hops["hops"].as_array().map(Vec::len), &hops["hops"][0]["node"]),
        (Some(4), &json!("host-0"))
    );
    assert_eq!((&hops["hops"][2]["vl"], &hops["hops"][2]["shares"][0]["flow"]), (&json!(0), &json!("web")));
    page.act(&json!({"do": "kill", "node": "switch-2-1"}));
    watch.until("a dead switch is down, with its cables and an alarm", |state| {
        let down = rows(state, "cables").filter(|(_, cable)| cable["state"] == "down").count();
        node(state, "switch-2-1")["state"] == "down" && down == 2 && rows(state, "alarms").next().is_some()
    });
    page.act(&json!({"do": "restart", "node": "switch-2-1"}));
    watch.until("it is back", |state| {
        all(state, "nodes", "state", "up") && all(state, "cables", "state", "active")
    });
    page.act(&json!({"do": "flow-stop", "id": "web"}));
    watch.until("no flow is left", |state| rows(state, "flows").next().is_none());
    page.close();
}

#[test]
fn faults_of_a_cable_are_shown_set_and_cleared() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let page = Page::open(&home, &[]);
    let mut watch = page.watch();
    watch.until("all is up", |state| {
        state["summary"]["hosts"] == 4 && all(state, "cables", "state", "active")
    });
    let cable = rows(&watch.state, "cables").next().unwrap().0.clone();
    for (order, kind) in [
        (json!({"do": "loss", "cable": cable, "percent": 1, "seconds": 600}), "loss"),
        (json!({"do": "delay", "cable": cable, "ms": 0.5}), "delay"),
        (json!({"do": "link-down", "cable": cable, "seconds": 600}), "unplugged"),
    ] {
        page.act(&order);
        watch.until("the fault is shown at its cable", |state| {
            let faults = &state["cables"][&cable]["faults"];
            fault(state, kind)
                .is_some_and(|(id, _)| faults.as_array().is_some_and(|all| all.contains(&json!(id))))
        });
        let (id, _) = fault(&watch.state, kind).unwrap();
        page.act(&json!({"do": "clear", "fault": id}));
        watch.until("it is cleared", |state| rows(state, "faults").next().is_none());
    }
    for wrong in [
        json!({"do": "loss", "cable": cable, "percent": 101}),
        json!({"do": "delay", "cable": cable, "ms": -1}),
        json!({"do": "link-down", "cable": "99"}),
        json!({"do": "link-down", "cable": cable, "seconds": 0}),
        json!({"do": "flow-start", "from": "host-0", "to": "host-0"}),
        json!({"do": "flow-start", "from": "host-0", "to": "host-1", "rate_mbps": 0}),
        json!({"do": "kill", "node": "<script>"}),
        json!({"do": "flow-stop", "id": "none"}),
    ] {
        let (code, answer) = page.answer("POST /api/act", &page.token, &wrong.to_string());
        assert!((400..500).contains(&code) && answer["error"].is_string(), "{wrong}: {code} {answer}");
    }
    page.close();
}

#[test]
fn a_tape_shows_what_was() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    home.weft(&["flow", "start", "host-0", "host-1", "--name", "web"]).succeeds();
    home.weft(&["tape", "-o", "day.tape", "--for", "4s"]).succeeds();
    home.weft(&["down"]).succeeds();
    let written = std::fs::read_to_string(home.folder().join("day.tape")).unwrap();
    assert!(!written.contains("key.json") && written.starts_with("{\"tape\":1,"), "{written}");
    let page = Page::open(&home, &["--tape", "day.tape"]);
    let span = page.get("/api/tape");
    let to_ms = span["to_ms"].as_u64().unwrap();
    assert!(to_ms >= span["from_ms"].as_u64().unwrap() + 1000 && span["live"] == false, "{span}");
    let state = page.get(&format!("/api/tape/at?ms={to_ms}"))["key"].clone();
    assert_eq!((&state["summary"]["hosts"], &state["flows"]["web"]["from"]), (&json!(4), &json!("host-0")));
    let (code, _) = page.answer("POST /api/act", &page.token, r#"{"do":"kill","node":"host-0"}"#);
    assert_eq!(code, 409);
    page.close();
    home.weft(&["ui", "--tape", text(&tree)]).fails(2, "is no tape");
    home.weft(&["ui", "--tape", "none.tape"]).fails(2, "cannot read none.tape");
}

#[test]
fn a_laboratory_that_goes_is_said_to_be_gone() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let page = Page::open(&home, &[]);
    let mut watch = page.watch();
    watch.until("all is up", |state| state["summary"]["hosts"] == 4);
    home.weft(&["down"]).succeeds();
    let mut line = String::new();
    wait_until("the page hears of it", || {
        line.clear();
        watch.lines.read_line(&mut line).unwrap() > 0 && line.contains("taken down")
    });
    page.close();
}
