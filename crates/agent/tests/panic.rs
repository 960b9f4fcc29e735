//! An agent in which something panics ends as a whole.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use std::process::Command;

use common::Fabric;

#[test]
#[ignore = "run by the test below, in a process that may end"]
fn panics_beside_an_agent() {
    let mut config = Fabric::packed().agents.remove(0);
    config.devices.clear();
    assert!(weft_agent::run(&config).is_err());
    // As little as a task's does this panic end the process by itself.
    assert!(std::thread::spawn(|| panic!("on purpose")).join().is_err());
}

#[test]
fn a_panic_ends_the_process() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let arguments = ["--ignored", "--exact", "panics_beside_an_agent", "--nocapture"];
    let output = child.args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(101) && said.contains("on purpose"), "{:?}: {said}", output.status);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("test result"), "the process went on");
}
