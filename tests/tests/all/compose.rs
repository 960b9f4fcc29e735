//! Output of `weft compose`, judged by the programs that are to read it: the specification's schema, Compose 1.29 and 5, and
//! `docker stack`. None of them needs an engine for that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use weft_judges::{judge, output_of, weft_program};

use crate::mounted::{finds_its_dashboards, laid_out, serves_rules_and_consoles};

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
    for options in [
        &["--pack", "leaf", "--pm", "--standby", "1", "--metrics", "--prometheus", "prom"][..],
        &["--pack", "leaf", "--metrics", "--prometheus", "prom", "--grafana", "graf"],
        &["--sm", "none", "--door", "127.0.0.1:7443"],
        &["--sm", "opensm", "--pack", "leaf", "--tools", "tools"],
        &["--vfs", "2", "--lids", "dynamic", "--pack", "leaf"],
    ] {
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
        if options.contains(&"prom") {
            prometheus_reads(&folder.path().join("psmn-x5/prometheus.yml"), services.keys());
            prometheus_serves_what_it_mounts(&read);
        }
        if options.contains(&"graf") {
            grafana_finds_what_it_mounts(&read);
        }
        if options.contains(&"opensm") {
            opensm_is_beside_its_agent(services);
        }
        // Nothing but the hub's door, and Prometheus', leads outside.
        assert_eq!(read["networks"]["fabric"]["internal"], true);
        for (name, service) in services {
            let networks: Vec<&String> = service["networks"].as_object().unwrap().keys().collect();
            let is_open = ["hub", "prometheus", "grafana"].contains(&name.as_str());
            let expected = if is_open { vec!["door", "fabric"] } else { vec!["fabric"] };
            assert_eq!(networks, expected, "{name}");
            assert_eq!(service.get("ports").is_some(), is_open, "{name}");
        }
    }
}

/// A service may do nothing but run its process.
fn closed(name: &str, service: &Value) {
    assert_eq!(service["read_only"], true, "{name}");
    assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]), "{name}");
    assert!(service["user"].as_str().unwrap().contains(':'), "{name}");
    assert!(service.get("privileged").is_none(), "{name}");
    let volumes = service["volumes"].as_array().into_iter().flatten();
    assert!(volumes.clone().all(|volume| volume["type"] != "bind"), "{name} sees the host's files");
    for secret in service["secrets"].as_array().unwrap() {
        assert!(secret["target"].as_str().unwrap().starts_with("/bundle/"), "{name}");
    }
    if ["opensm", "prometheus", "grafana"].contains(&name) {
        return;
    }
    let test: Vec<&str> = service["healthcheck"]["test"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    assert_eq!(test[..3], ["CMD", "/weft", "health"], "{name}: no shell is there to run a check");
}

/// `promtool` takes the scrape file with its rules, and every target is a service.
fn prometheus_reads<'a>(file: &Path, services: impl Iterator<Item = &'a String>) {
    output_of(Command::new("promtool").args(["check", "config"]).arg(file));
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("watch/weft.alerts.yml"), "{text}");
    let targets = text.split("targets: [\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    let targets: BTreeSet<&str> = targets.map(|target| target.strip_suffix(":9100").unwrap()).collect();
    let scraped = services.filter(|name| !["prometheus", "grafana"].contains(&name.as_str()));
    assert!(scraped.map(String::as_str).eq(targets.iter().copied()), "{targets:?}");
}

/// The files that a service mounts, at their places below `/bundle`.
fn mounted(read: &Value, service: &str) -> TempDir {
    let secrets = read["services"][service]["secrets"].as_array().unwrap().iter();
    laid_out(secrets.map(|secret| {
        let file = read["secrets"][secret["source"].as_str().unwrap()]["file"].as_str().unwrap();
        let target = secret["target"].as_str().unwrap().strip_prefix("/bundle/").unwrap();
        (target.to_owned(), std::fs::read_to_string(file).unwrap())
    }))
}

fn prometheus_serves_what_it_mounts(read: &Value) {
    let command = read["services"]["prometheus"]["command"].as_array().unwrap().iter();
    let arguments: Vec<String> = command.map(|word| word.as_str().unwrap().to_owned()).collect();
    serves_rules_and_consoles(mounted(read, "prometheus").path(), &arguments);
}

fn grafana_finds_what_it_mounts(read: &Value) {
    let grafana = &read["services"]["grafana"];
    let settings = grafana["environment"].as_object().unwrap().iter();
    let settings = settings.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    finds_its_dashboards(mounted(read, "grafana").path(), &settings.collect(), "prometheus:9090");
    assert_eq!(grafana["ports"][0]["host_ip"], "127.0.0.1", "anyone who reaches it sees dashboards");
}

/// OpenSM and its agent, and no others, share the folder with the agent's sockets; OpenSM reads no identity.
fn opensm_is_beside_its_agent(services: &serde_json::Map<String, Value>) {
    let opensm = &services["opensm"];
    let variable = |name: &str| opensm["environment"][name].as_str().unwrap();
    let agent = variable("WEFT_UMAD_SOCKET").strip_prefix("/run/weft/run/sockets/").unwrap();
    let agent = agent.strip_suffix(".umad").unwrap();
    // Others have memory of their own in its place.
    let shared = |service: &Value| {
        let volumes = service["volumes"].as_array().unwrap().iter();
        volumes.filter(|volume| volume["type"] == "volume").cloned().collect::<Vec<_>>()
    };
    let sharing = services.iter().filter(|(_, service)| !shared(service).is_empty());
    assert_eq!(sharing.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [agent, "hub", "opensm"]);
    assert_eq!(shared(&services[agent]), shared(opensm));
    // The hub's is its own.
    assert_ne!(shared(&services["hub"]), shared(opensm));
    assert_eq!(opensm["image"], "tools");
    let secrets: Vec<&Value> = opensm["secrets"].as_array().unwrap().iter().collect();
    assert!(matches!(secrets[..], [only] if only["source"] == "opensm-options"), "{secrets:?}");
}
