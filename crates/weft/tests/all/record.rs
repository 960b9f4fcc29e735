//! Recording and replay of agents' inputs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::{Home, text};
use serde_json::Value;

use crate::common;

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Bring-up, probes between all hosts, a kill, a restart: every agent's node says again what it said.
#[test]
fn the_x5_cluster_replays() {
    let home = Home::new();
    let kept = tempfile::tempdir().unwrap();
    let folder = kept.path().join("recordings");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies/psmn-x5.topo");
    home.weft(&["up", text(&file), &format!("--record={}", text(&folder)), "--pack", "10"]).succeeds();
    home.weft(&["check"]).succeeds();
    let processes = home.json(&["ps", "--json"]);
    let victim = |process: &&Value| process["process"] == "a0001";
    let victim =
        processes.as_array().unwrap().iter().find(victim).unwrap()["devices"][0]["description"].clone();
    let victim = victim.as_str().unwrap();
    home.weft(&["fault", "kill", victim]).succeeds();
    home.weft(&["fault", "restart", victim]).succeeds();
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
    let files = recordings(&folder);
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert!(names.contains(&"a0001.rec") && names.contains(&"a0001-2.rec"), "{names:?}");
    for file in &files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
        let replayed = home.json(&["replay", text(file), "--json"]);
        assert_eq!(replayed["difference"], Value::Null, "{}: {replayed}", file.display());
        assert!(
            replayed["inputs"].as_u64() > Some(100) && replayed["outputs"].as_u64() > Some(100),
            "{replayed}"
        );
        assert_eq!(replayed["complete"], !file.ends_with("a0001.rec"), "{}: {replayed}", file.display());
    }
    a_changed_recording_is_found_out(&home, &files[0]);
}

/// The last entry before the end mark ends with the checksum of an output, unless nothing followed. So one of the last
/// bytes is changed, and the replay stops there.
fn a_changed_recording_is_found_out(home: &Home, file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    let whole = home.json(&["replay", text(file), "--json"]);
    let found = (10..4000).step_by(7).any(|from_end| {
        let mut changed = bytes.clone();
        let at = changed.len() - from_end;
        changed[at] ^= 0x10;
        let other = file.with_file_name("changed");
        std::fs::write(&other, changed).unwrap();
        let replayed = home.weft(&["replay", text(&other), "--json"]);
        let said: Option<Value> = serde_json::from_str(&replayed.stdout).ok();
        said.is_some_and(|said| {
            said["difference"]["input"].as_u64().is_some_and(|input| Some(input) <= whole["inputs"].as_u64())
        })
    });
    assert!(found, "one byte of 570 near the end is part of an output's checksum");
    home.weft(&["replay", "/dev/null"]).fails(2, "not a recording of weft");
}
