//! What comes in through a laboratory's doors and its surroundings: strangers, junk, full disks, tight limits.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use common::{Home, Running, runs, text};
use rustix::process::Signal;

#[test]
fn junk_on_the_launchers_socket_does_not_end_the_laboratory() {
    let home = Home::new();
    let file = home.small_tree();
    let mut up = Running::start(&home, &["up", text(&file), "--no-sm", "--foreground"]);
    up.wait_for_line("links up");
    let processes = home.processes();
    let agent = &processes[0].0;
    let lies = [
        format!("{{\"type\":\"failed\",\"agent\":\"{agent}\",\"reason\":\"a lie\"}}\n"),
        "{\"type\":\"ready\",\"agent\":\"sm\",\"pid\":1}\n".to_owned(),
        "junk\n".to_owned(),
        "x".repeat(100_000),
    ];
    for bytes in lies.iter().map(String::as_bytes).chain([&[0, 0xff, b'\n'][..], b""]) {
        let mut stream = UnixStream::connect(home.lab("default").join("launch.sock")).unwrap();
        // The launcher may have hung up before all is written; it hangs up in any case.
        let _ = stream.write_all(bytes);
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)), "a stranger was answered");
    }
    assert!(up.is_running(), "the launcher has ended");
    assert_eq!(home.processes(), processes);
    assert!(processes.iter().all(|(_, pid)| runs(*pid)), "{processes:?}");
    up.signal(Signal::INT);
    assert_eq!(up.end().code(), Some(0));
}
