//! What `weft compose` prints, judged by the programs that are to read it: the specification's schema, Compose 1.29 and 5, and
//! `docker stack`. None of them needs an engine for that.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use weft_judges::{judge, output_of, weft_program};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A compose file and its bundle.
fn composed(options: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let x5 = root().join("topologies/psmn-x5.topo");
    let mut command = Command::new(weft_program());
    command.arg("compose").arg(x5).args(options).current_dir(folder.path());
    command.env("WEFT_HOME", folder.path().join("w"));
    std::fs::write(folder.path().join("compose.yaml"), output_of(&mut command)).unwrap();
    folder
}

#[test]
fn the_schema_both_composes_and_the_swarm_read_one_file() {
    for options in
        [&["--pack", "leaf", "--pm", "--standby", "1"][..], &["--sm", "none", "--door", "127.0.0.1:7443"]]
    {
        let folder = composed(options);
        let file = folder.path().join("compose.yaml");
        output_of(judge("check-jsonschema").args(["--builtin-schema", "vendor.compose-spec"]).arg(&file));
        let five =
            output_of(judge("docker-compose").arg("--file").arg(&file).args(["config", "--format", "json"]));
        let old = output_of(
            Command::new("/usr/bin/docker-compose").arg("--file").arg(&file).args(["config", "--services"]),
        );
        let read: Value = serde_json::from_str(&five).unwrap();
        let services = read["services"].as_object().unwrap();
        assert_eq!(old.lines().count(), services.len());
        let stack = output_of(Command::new("docker").args(["stack", "config", "--compose-file"]).arg(&file));
        let named = |name: &String| stack.contains(&format!("\n  {name}:\n"));
        assert!(services.keys().all(named), "`docker stack` reads other services: {stack}");
        for (name, service) in services {
            closed(name, service);
        }
        // Nothing but the hub's door leads outside.
        assert_eq!(read["networks"]["fabric"]["internal"], true);
        for (name, service) in services {
            let networks: Vec<&String> = service["networks"].as_object().unwrap().keys().collect();
            let expected = if name == "hub" { vec!["door", "fabric"] } else { vec!["fabric"] };
            assert_eq!(networks, expected, "{name}");
            assert_eq!(service.get("ports").is_some(), name == "hub", "{name}");
        }
    }
}

/// A service may do nothing but run its process.
fn closed(name: &str, service: &Value) {
    assert_eq!(service["read_only"], true, "{name}");
    assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]), "{name}");
    assert!(service["user"].as_str().unwrap().contains(':'), "{name}");
    assert!(service.get("privileged").is_none() && service.get("volumes").is_none(), "{name}");
    let test: Vec<&str> = service["healthcheck"]["test"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    assert_eq!(test[..3], ["CMD", "/weft", "health"], "{name}: no shell is there to run a check");
    for secret in service["secrets"].as_array().unwrap() {
        assert!(secret["target"].as_str().unwrap().starts_with("/bundle/"), "{name}");
    }
}
