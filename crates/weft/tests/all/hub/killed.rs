//! Hubs that are killed while they start a laboratory.

use std::process::Stdio;

use rustix::process::Signal;

use super::{all_ready, status};
use crate::common::{Home, Running, signal, text, wait_until};

/// It has noted the start, and `up` has heard nothing of it.
#[test]
fn a_hub_killed_before_the_start_is_heard_is_replaced() {
    // An `up` that has heard of the start before it is stopped says nothing: that is another try.
    let tries = std::iter::repeat_with(killed_before_the_start_is_heard).take(10);
    let (home, said) = tries.into_iter().find(|(_, said)| !said.is_empty()).expect("one has not heard of it");
    assert!(said.contains("another one goes on"), "{said}");
    home.weft(&["check"]).succeeds();
}

/// Stops `up`, lets the hub start all and kills it. Gives what `up` says, which goes on and succeeds.
fn killed_before_the_start_is_heard() -> (Home, String) {
    let home = Home::new();
    let mut command = home.command(&["up", text(&home.small_tree())]);
    let up = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lock = home.lab("default").join("locks/hub");
    let holder = || weft_process::lock::holder(&lock).ok().flatten();
    wait_until("the hub runs", || holder().is_some());
    signal(up.id(), Signal::STOP);
    wait_until("it has started all", || home.lab("default").join("started").exists());
    let _ = rustix::process::kill_process(holder().unwrap(), Signal::KILL);
    wait_until("the hub is dead", || holder().is_none());
    signal(up.id(), Signal::CONT);
    let output = up.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (home, said)
}

/// Hub and `up` killed half way: `weft hub` goes on.
#[test]
fn the_next_hub_finishes_an_interrupted_start() {
    let home = Home::new();
    let tree = home.small_tree();
    let up = Running::start(&home, &["up", text(&tree)]);
    let lock = home.lab("default").join("locks/hub");
    let holder = || weft_process::lock::holder(&lock).ok().flatten();
    wait_until("the hub runs", || holder().is_some());
    up.signal(Signal::KILL);
    let _ = rustix::process::kill_process(holder().unwrap(), Signal::KILL);
    up.end();
    wait_until("the hub is dead", || holder().is_none());
    home.weft(&["hub", "--detached"]).succeeds();
    home.events().wait_for("the subnet is up", |event| event["event"] == "subnet-up");
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    home.weft(&["check"]).succeeds();
}
