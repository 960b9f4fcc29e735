//! `weft relay`: the control protocol on standard input and output, near and through a hub's door.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::ports::free_port;
use common::{Done, Home, text, wait_until};
use serde_json::{Value, json};

use crate::common;

/// No line takes longer, or it never comes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Relay {
    child: Child,
    requests: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Relay {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let (send, receive) = channel();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { requests: child.stdin.take(), child, lines: receive }
    }

    fn send(&mut self, line: &str) {
        self.requests.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    #[track_caller]
    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(&json!({ "v": 1, "id": 7, "request": request }).to_string());
        self.next()
    }

    /// Closes its standard input, and waits for its end.
    fn end(mut self) -> Done {
        drop(self.requests.take());
        Done::of(self.child.wait_with_output().unwrap())
    }
}

#[test]
fn requests_go_in_and_replies_come_out() {
    let home = Home::new();
    let port = free_port().to_string();
    home.weft(&["up", text(&home.small_tree()), "--hub-door", &port]).succeeds();
    let identity = home.lab("default").join("identities/viewer.pem");
    let at = format!("127.0.0.1:{port}");
    let user = Home::new();
    for mut relay in [
        Relay::start(home.command(&["relay"])),
        Relay::start(user.command(&["--at", &at, "--identity", text(&identity), "relay"])),
    ] {
        assert_eq!(relay.ask(&json!({ "type": "hello" }))["answer"]["kind"], "hub");
        let inner = json!({ "type": "relay", "process": "sm", "request": { "type": "sm-status" } });
        assert_eq!(relay.ask(&inner)["answer"]["subnet_up"], true);
        // What is wrong is answered, and the conversation goes on.
        relay.send("nonsense");
        assert_eq!(relay.next()["error"]["code"], "malformed");
        relay.send(&"x".repeat((1 << 20) + 10));
        assert_eq!(relay.next()["error"]["code"], "line-too-long");
        let past = json!({ "type": "events", "from": "start", "past_only": true, "kinds": ["subnet-up"] });
        assert_eq!(relay.ask(&past)["answer"]["type"], "subscribed");
        assert_eq!(relay.next()["event"]["event"], "subnet-up");
        assert_eq!(relay.next()["answer"]["type"], "events-ended");
        let done = relay.end();
        assert_eq!((done.succeeds().stdout.as_str(), done.stderr.as_str()), ("", ""));
    }
    // After the end of its input it ends, once all requests are answered.
    let mut relay = Relay::start(home.command(&["relay", "sm"]));
    for id in 0..100 {
        relay.send(&format!(r#"{{"v":1,"id":{id},"request":{{"type":"hello"}}}}"#));
    }
    drop(relay.requests.take());
    for id in 0..100 {
        assert_eq!(relay.next()["id"], id);
    }
    relay.end().succeeds();
}

#[test]
fn a_hub_that_dies_ends_a_relay_with_a_hint() {
    let home = Home::new();
    home.weft(&["relay"]).fails(1, "no laboratory is running");
    home.weft(&["up", text(&home.small_tree())]).succeeds();
    let mut relay = Relay::start(home.command(&["relay"]));
    assert_eq!(relay.ask(&json!({ "type": "events" }))["answer"]["type"], "subscribed");
    home.weft(&["fault", "kill", "hub"]).succeeds();
    wait_until("the relay has ended", || relay.child.try_wait().unwrap().is_some());
    let done = relay.end();
    done.fails(1, "`hub` closed the connection").fails(1, "hint: start a hub with `weft hub --detached`");
    home.weft(&["relay"]).fails(1, "hint: start a hub with `weft hub --detached`");
    home.weft(&["relay", "nobody"]).fails(1, "hint: `weft ps` lists the processes");
    home.weft(&["relay", ""]).fails(2, "a value is required");
    home.weft(&["--at", "127.0.0.1:1", "--identity", "/nowhere.pem", "relay"]).fails(1, "/nowhere.pem");
}
