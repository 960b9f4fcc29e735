//! An agent in which something panics ends as a whole.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::process::Command;

use common::Fabric;

use crate::common;

/// Set in the process that is to end.
const VICTIM: &str = "WEFT_TEST_PANIC";

#[test]
fn a_panic_ends_the_process() {
    if std::env::var_os(VICTIM).is_some() {
        return panic_beside_an_agent();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_panic_ends_the_process", "--nocapture"]).env(VICTIM, "1");
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(101) && said.contains("on purpose"), "{:?}: {said}", output.status);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("test result"), "the process went on");
}

fn panic_beside_an_agent() {
    let mut config = Fabric::packed().agents.remove(0);
    config.part.devices.clear();
    assert!(weft_agent::run(&config).is_err());
    // As little as a task's does this panic end the process by itself.
    assert!(std::thread::spawn(|| panic!("on purpose")).join().is_err());
}
