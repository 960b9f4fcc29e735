//! Unmodified OpenSM as the subnet manager that `weft up --sm opensm` starts.

use std::time::{Duration, Instant};

use serde_json::Value;
use weft_judges::{Lab, first_host, output_of};

/// Nothing that is waited for takes longer, or it does not come.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn opensm_brings_the_laboratory_up_and_is_one_of_its_processes() {
    let fabric = weft_judges::x5();
    let lab = Lab::start(&fabric, &["--sm", "opensm", "--pack", "leaf", "--restart", "on-failure"]);
    let checked = output_of(&mut lab.weft(&["check"]));
    assert!(checked.contains("every host reaches"), "{checked}");
    let processes: Value = serde_json::from_str(&output_of(&mut lab.weft(&["ps", "--json"]))).unwrap();
    let is_opensm = |process: &&Value| process["process"] == "opensm";
    let opensm = processes.as_array().unwrap().iter().find(is_opensm).unwrap();
    assert_eq!((&opensm["kind"], &opensm["state"]), (&"opensm".into(), &"running".into()), "{opensm}");
    assert!(output_of(&mut lab.weft(&["status"])).contains("OpenSM manages the subnet"));
    let (_, host) = first_host(&fabric);
    assert!(lab.says(host, "sminfo").contains("SMINFO_MASTER"));

    // It goes with its process, and another takes over.
    output_of(&mut lab.weft(&["fault", "kill", "opensm"]));
    let began = Instant::now();
    while lab.command("sminfo", host, &[]).output().unwrap().status.success() {
        assert!(began.elapsed() < PATIENCE, "OpenSM outlives its process");
    }
    output_of(&mut lab.weft(&["fault", "restart", "opensm"]));
    while !lab.command("saquery", host, &[]).output().unwrap().status.success() {
        assert!(began.elapsed() < PATIENCE, "OpenSM does not come back");
    }
    output_of(&mut lab.weft(&["check"]));

    // It does not attach a second time, so its process is started again when its agent was.
    let host = host.guid.to_string();
    output_of(&mut lab.weft(&["fault", "kill", &host]));
    output_of(&mut lab.weft(&["fault", "restart", &host]));
    let began = Instant::now();
    while !lab.weft(&["check"]).output().unwrap().status.success() {
        assert!(began.elapsed() < PATIENCE, "OpenSM does not come back with its agent");
    }
}
