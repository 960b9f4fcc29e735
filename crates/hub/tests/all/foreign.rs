//! Processes that tell what is not theirs to tell.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use common::{Folder, ready};
use weft_control::event::{AgentEvent, SmEvent};
use weft_control::sm::Summary;
use weft_control::{EventFilter, EventKind, Request, RequestLine, Since};

use crate::common;

#[test]
fn an_agent_tells_of_itself_alone() {
    let folder = Folder::new();
    folder.book.lock().unwrap().has_started = true;
    let hub = folder.hub_that_starts(&["a0"]);
    let hello =
        r#"{"v":1,"id":1,"answer":{"type":"hello","lab":"","name":"a0","kind":"sm","version":"9.0.0","pid":9,
        "incarnation":"0000000000000009","protocols":[1],"role":"operator","time":"","monotonic_ns":0}}"#
            .replace('\n', "");
    let event = |sequence: usize, what: &str| {
        format!(
            "{{\"v\":1,\"id\":2,\"event\":{{\"time\":\"2030-01-01T00:00:00Z\",\"incarnation\":\"0000000000000009\",\
             \"sequence\":{sequence},\"monotonic_ns\":1,{what}}}}}\n"
        )
    };
    let told = [
        r#""source":"sm","area":"sm","event":"detached""#,
        r#""source":"a0","area":"sm","event":"sweep-started""#,
        r#""source":"sm","area":"agent","event":"link-down","node":"a0""#,
        r#""source":"a0","area":"agent","event":"link-down","node":"another""#,
        r#""source":"a0","area":"agent","event":"link-down","node":"a0","ahead_ns":7"#,
        r#""source":"a0","area":"lab","event":"process-ended","process":"sm""#,
        r#""source":"a0","area":"agent","event":"link-up","node":"a0""#,
    ];
    let lines: String = told.iter().enumerate().map(|(at, what)| event(at, what)).collect();
    let _agent = folder.raw_process("a0", &format!("{hello}\n{}", lines.trim_end()));
    let filter = EventFilter {
        from: Since::Start,
        sources: vec!["a0".into()],
        past_only: true,
        ..EventFilter::default()
    };
    hub.wait_for_events(told.len() as u64);
    hub.wait_until("six are refused", || hub.metrics().contains("weft_hub_events_refused_total 6\n"));
    let mut raw = UnixStream::connect(folder.socket("hub")).unwrap();
    raw.write_all(RequestLine { id: 5, request: Request::Events(filter) }.to_line().as_bytes()).unwrap();
    let heard = common::read_until(&mut raw, "link-up");
    assert!(
        ["link-down", "sweep-started", "detached", "process-ended"]
            .iter()
            .all(|other| !heard.contains(other)),
        "{heard}"
    );
    assert!(hub.line("a0").problem.unwrap().contains("about other processes"));
}

#[test]
fn only_a_subnet_manager_says_that_the_subnet_is_up() {
    let folder = Folder::new();
    let hub = folder.hub_that_starts(&["a0"]);
    hub.wait_until("all are started", || folder.book.lock().unwrap().spawned == ["a0", "sm"]);
    let manager = folder.process("sm");
    manager.publish(ready());
    let linked = EventKind::Agent(AgentEvent::Links { up: 1, total: 1, to_dial: 0 });
    let summary = Summary { switches: 1, hosts: 1, complete: true, ..Summary::default() };
    let subnet_up = EventKind::Sm(SmEvent::SubnetUp(summary));
    let hello = r#"{"type":"hello","lab":"","name":"a0","kind":"sm","version":"9.0.0","pid":9,
        "incarnation":"0000000000000009","protocols":[1],"role":"operator","time":"","monotonic_ns":0}"#;
    let told = |id: u64, sequence: u64, kind: &EventKind| {
        let head = format!("\"source\":\"a0\",\"incarnation\":\"0000000000000009\",\"sequence\":{sequence},");
        let kind = serde_json::to_string(kind).unwrap();
        format!("{{\"v\":1,\"id\":{id},\"event\":{{{head}{}}}\n", &kind[1..])
    };
    let mut lines = format!("{{\"v\":1,\"id\":1,\"answer\":{}}}\n", hello.replace('\n', ""));
    lines += &(told(3, 0, &ready()) + &told(3, 1, &linked) + &told(3, 2, &subnet_up));
    let mut agent = folder.raw_process("a0", lines.trim_end()).unwrap();
    hub.wait_until("the manager begins", || folder.book.lock().unwrap().begun == ["sm"]);
    agent.write_all(told(2, 2, &subnet_up).as_bytes()).unwrap();
    hub.wait_until("it is refused", || hub.metrics().contains("weft_hub_events_refused_total 1\n"));
    assert!(!folder.book.lock().unwrap().has_started && hub.status().starting);
}
