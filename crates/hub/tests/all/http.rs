//! The pages that a hub serves over HTTP.

use std::time::Instant;

use common::{Folder, ready};
use serde_json::{Value, json};
use weft_control::EventKind;
use weft_control::event::ProcessEvent;
use weft_control::hub::{LabStatus, ProcessState};
use weft_control::process::ProcessKind;
use weft_hub::Target;

use crate::common;

#[test]
fn http_shows_metrics_health_status_and_events() {
    let folder = Folder::new();
    let sm = folder.process("sm");
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Starting);
    sm.publish(ready());
    hub.wait_for_events(1);
    let metrics = hub.get("/metrics", "localhost");
    for line in [
        "weft_build_info{kind=\"hub\"",
        "weft_hub_processes{state=\"ready\"} 1",
        "weft_hub_events_collected_total 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(hub.get("/healthz", "127.0.0.1:7").ends_with("ok\n"));
    assert!(hub.get("/healthz", "evil.example").starts_with("HTTP/1.1 403"));
    assert!(hub.get("/nothing", "[::1]:7").starts_with("HTTP/1.1 404"));
    let status = hub.get("/status?limit=1", "localhost");
    let json = status.split_once("\r\n\r\n").unwrap().1;
    let status: LabStatus = serde_json::from_str(json).unwrap();
    assert_eq!((status.lab.as_str(), status.processes.len(), status.more), ("test", 1, true));
    let mut stream = hub.open("/events?from=start&sources=sm", "localhost", "");
    let told = common::read_until(&mut stream, "process-ready");
    assert!(told.contains("text/event-stream") && told.contains("\ndata: {"), "{told}");
    let id = told.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    sm.publish(EventKind::Process(ProcessEvent::Detached));
    common::read_until(&mut stream, "detached");
    let mut again = hub.open("/events", "localhost", &format!("Last-Event-ID: {id}\r\n"));
    let told = common::read_until(&mut again, "detached");
    assert!(!told.contains("process-ready"), "{told}");
    assert!(hub.get("/status?limit=many", "localhost").starts_with("HTTP/1.1 400"));
}

/// Processes that do not run are targets too: they are missed. Where the targets cannot be read, Prometheus keeps those that it has.
#[test]
fn http_shows_prometheus_whom_to_scrape() {
    let folder = Folder::new();
    let hub = folder.hub();
    let groups = || -> Value {
        let answer = hub.get("/sd", "localhost:9100");
        assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let own = &groups()[0];
    assert_eq!(own["targets"], json!(["localhost:9100"]), "as the request names the hub");
    let labels = json!({"__scheme__": "http", "__metrics_path__": "/metrics", "job": "weft-hub", "kind": "hub",
        "lab": "test", "process": "hub"});
    assert_eq!(own["labels"], labels);
    let target = Target {
        process: "a0000".into(),
        kind: ProcessKind::Agent,
        address: "host-1:9101".into(),
        is_guarded: true,
        node: Some("node 1".into()),
    };
    folder.book.lock().unwrap().targets.push(target);
    let all = groups();
    assert_eq!((all.as_array().unwrap().len(), &all[1]["targets"]), (2, &json!(["host-1:9101"])));
    assert_eq!(
        (&all[1]["labels"]["__scheme__"], &all[1]["labels"]["node"]),
        (&json!("https"), &json!("node 1"))
    );
    folder.book.lock().unwrap().targets.clear();
    assert_eq!(groups().as_array().unwrap().len(), 1);
    assert!(hub.get("/sd", "evil.example").starts_with("HTTP/1.1 403"));
    assert!(hub.get("/sd/", "localhost").starts_with("HTTP/1.1 404"));
    folder.book.lock().unwrap().is_full = true;
    assert!(hub.get("/sd", "localhost").starts_with("HTTP/1.1 500"));
}

#[test]
fn neither_silence_nor_streams_keep_requests_out() {
    let folder = Folder::new();
    let (hub, sm) = (folder.hub(), folder.process("sm"));
    let mut streams: Vec<_> =
        (0..weft_metrics::STREAMS_MAX).map(|_| hub.open("/events?from=start", "localhost", "")).collect();
    for stream in &mut streams {
        common::read_until(stream, "\ndata: {");
    }
    let _silent: Vec<_> = (0..300).map(|_| hub.open("", "", "")).collect();
    let begun = Instant::now();
    for path in ["/healthz", "/status", "/metrics"].iter().cycle().take(10) {
        let answer = hub.get(path, "localhost");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{path}: {answer}");
    }
    assert!(begun.elapsed() < weft_metrics::PROOF_TIME_MAX, "{:?}", begun.elapsed());
    let refused = hub.get("/events", "localhost");
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("close one"), "{refused}");
    let metrics = hub.get("/metrics", "localhost");
    assert!(metrics.contains("refused_total{reason=\"too_many_streams\"} 1\n"), "{metrics}");
    // One that ends leaves its place, and those that are open go on.
    drop(streams.pop());
    hub.wait_until("a place is free", || {
        let mut next = hub.open("/events?from=start", "localhost", "");
        common::read_until(&mut next, "\r\n").contains("200 OK")
    });
    sm.publish(EventKind::Process(ProcessEvent::Detached));
    common::read_until(&mut streams[0], "detached");
}
