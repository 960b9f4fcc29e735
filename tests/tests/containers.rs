//! Laboratories in containers: images made here, none pulled, and Docker's own ways to break and mend things.
//!
//! They need a Docker engine, and Compose 5 in target/judges, where `tests/run` installs it.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weft_judges::{Containers, Image, has_engine, output_of, wait_for_success};

/// Nothing that is waited for takes longer, or it does not come: containers start at one or two a second.
const PATIENCE: Duration = Duration::from_secs(120);
/// The link timeout of a small laboratory, whose few containers start at once.
const LINK_TIMEOUT_MS: &str = "1500";
/// What an image may hold.
const IMAGE_BYTES_MAX: u64 = 18_000_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn docker(arguments: &[&str]) -> String {
    output_of(Command::new("docker").args(arguments))
}

/// The engine's own words, and a hint, before anything is built for it.
#[test]
fn an_engine_that_is_too_old_for_the_client_is_named_at_once() {
    if !has_engine() {
        return;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut image = Command::new(cargo);
    // Without a program: it would be built.
    image
        .args(["xtask", "image", "--tag", "weft-never"])
        .env("DOCKER_API_VERSION", "9.99")
        .current_dir(root());
    let done = image.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success(), "{said}");
    let lines = |label: &str| said.lines().filter(|line| line.starts_with(label)).collect::<Vec<_>>();
    let [error] = lines("error: ")[..] else { panic!("{said}") };
    assert!(error.contains("client version 9.99 is too new"), "{error}");
    assert_eq!(
        lines("hint: "),
        ["hint: the engine is too old for this client: update the engine, or use a client of its age"]
    );
}

/// All that is done to the ring: one start serves them.
#[test]
fn a_ring_in_containers_heals_whatever_docker_does_to_it() {
    if !has_engine() {
        return;
    }
    let image = Image::make();
    contents_of(&image);
    let lab = Containers::up(&image, "ring", "ring-4.topo", &["--pm", "--link-timeout-ms", LINK_TIMEOUT_MS]);
    output_of(&mut lab.verb(&["check"]));
    assert_eq!(lab.json(&["ps", "--json"]).as_array().unwrap().len(), 8 + 3);
    // A switch with its host behind it, far from the manager: of twelve pairs of hosts six are left.
    docker_breaks(&lab, "S3", Stock { whole: 8, left: 6, pairs: 6 });

    identities_change(&lab);
    for service in ["sm", "pm", "hub"] {
        let container = lab.container(service);
        docker(&["kill", &container]);
        docker(&["start", &container]);
        wait_for_success(&format!("the hub hears all after {service} was killed"), || {
            lab.verb(&["ask", service, "hello"])
        });
        lab.heals(&format!("after {service} was killed and started"), 8);
        // Nobody takes note of the hub's.
        if service != "hub" {
            costs_are_told(&lab, &format!("of {service}"), 1, |cost| {
                cost["fault"] == format!("end of {service}") && cost["lasted_ns"].is_u64()
            });
        }
    }
    let told = output_of(&mut lab.verb(&["events", "--json"]));
    assert!(told.contains("\"link-down\"") && told.contains("\"subnet-up\""), "{told}");
}

/// An agent's identity is renewed where the authority's key is, and the container reads it; with the one before revoked it has its links.
fn identities_change(lab: &Containers) {
    let (agent, _) = lab.agent_of("S3");
    let serial = || {
        let listed = lab.authority(&["identity", "ls", "--json", "--in", "lab"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let row = listed.as_array().unwrap().iter().find(|row| row["name"] == agent.as_str()).unwrap();
        row["serial"].as_str().unwrap().to_owned()
    };
    let before = serial();
    lab.authority(&["identity", "renew", &agent, "--in", "lab"]);
    assert_ne!(serial(), before);
    output_of(&mut lab.verb(&["ask", &agent, "renew-identity"]));
    output_of(&mut lab.verb(&["identity", "revoke", "--serial", &before, "--in", "lab"]));
    // Links that were made with the old one end, and come back with the new one.
    let began = Instant::now();
    let ended = |line: &str| line.contains("\"link-down\"") && line.contains("revoked");
    while !output_of(&mut lab.verb(&["events", "--json"])).lines().any(ended) {
        assert!(began.elapsed() < Duration::from_secs(60), "no link has ended");
    }
    lab.heals("with another identity", 8);
}

/// How many nodes there are, how many are left without an agent and what is behind it, and between how many pairs of hosts there is no
/// way then.
#[derive(Clone, Copy)]
struct Stock {
    whole: u64,
    left: u64,
    pairs: u64,
}

/// An agent's container is killed, paused, and taken off its network. Such faults come from outside: the hub finds what they cost all
/// the same, when the last cable is back.
fn docker_breaks(lab: &Containers, device: &str, Stock { whole, left, pairs }: Stock) {
    let (agent, _) = lab.agent_of(device);
    let container = lab.container(&agent);
    let are_told = |faults: usize| {
        costs_are_told(lab, &format!("of {device}"), faults, |cost| {
            assert!(cost["detected_after_ns"].is_null(), "{cost}");
            let is_known = cost["rerouted_after_ns"].is_u64() && cost["restored_after_ns"].is_u64();
            is_known && cost["pairs_lost"] == pairs
        });
    };
    docker(&["kill", &container]);
    lab.wait_for_nodes("after docker kill", left);
    docker(&["start", &container]);
    lab.heals("after docker kill and start", whole);
    are_told(1);

    docker(&["pause", &container]);
    lab.wait_for_nodes("while it is paused", left);
    docker(&["unpause", &container]);
    lab.heals("after docker pause and unpause", whole);
    are_told(2);

    returns_at_another_address(lab, (&agent, &container), (left, whole));
    are_told(3);
}

/// Waits until the hub has told of this many such costs.
fn costs_are_told(lab: &Containers, whose: &str, faults: usize, is_such: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    loop {
        let told = output_of(&mut lab.verb(&["events", "--json"]));
        let events = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let kinds = ["fault-cost", "link-down", "link-up", "subnet-up", "process-ended"];
        let signs: Vec<Value> =
            events.filter(|event| kinds.iter().any(|kind| event["event"] == *kind)).collect();
        let costs = signs.iter().filter(|event| event["event"] == "fault-cost");
        if costs.filter(|cost| is_such(cost)).count() == faults {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "what {faults} faults {whose} cost: {}", json!(signs));
    }
}

/// A container that is taken off its network comes back at another address, since others have got its own meanwhile.
fn returns_at_another_address(lab: &Containers, (agent, container): (&str, &str), (left, whole): (u64, u64)) {
    let network = format!("{}_fabric", lab.project);
    let address = |container: &str| {
        let of = format!("{{{{(index .NetworkSettings.Networks \"{network}\").IPAddress}}}}");
        docker(&["inspect", "--format", &of, container]).trim().to_owned()
    };
    let before = address(container);
    docker(&["network", "disconnect", &network, container]);
    lab.wait_for_nodes("while it is disconnected", left);
    // Docker gives the next address or the lowest one, so this takes the one that is free or makes it not the next.
    let idle = Image::idle();
    let other = docker(&["run", "--detach", "--network", &network, idle.name(), "sleep", "infinity"]);
    docker(&["network", "connect", "--alias", agent, &network, container]);
    assert_ne!(address(container), before);
    lab.heals("after docker network disconnect and connect", whole);
    docker(&["rm", "--force", other.trim()]);
}

/// What is in the image, and what its program may do.
fn contents_of(image: &Image) {
    let told: Value = serde_json::from_str(&docker(&["image", "inspect", image.name()])).unwrap();
    let (config, bytes) = (&told[0]["Config"], told[0]["Size"].as_u64().unwrap());
    assert_eq!(config["User"], "65532:65532");
    // A program with debug assertions is twice as large.
    let most = if cfg!(debug_assertions) { 4 * IMAGE_BYTES_MAX } else { IMAGE_BYTES_MAX };
    assert!(bytes <= most, "the image has {bytes} bytes");
    let closed = ["run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none"];
    let version = docker(&[&closed[..], &[image.name(), "--version"]].concat());
    assert!(version.starts_with("weft "), "{version}");
    let shell =
        Command::new("docker").args(closed).args(["--entrypoint", "/bin/sh", image.name()]).output().unwrap();
    assert!(!shell.status.success(), "there is a shell");
    // A whole fabric in one container, as a user that is not root.
    let scratch = ["--tmpfs", "/tmp", "--env", "WEFT_HOME=/tmp/w", "--volume"];
    let topology =
        format!("{}:/x5.topo:ro", root().join("topologies/psmn-x5.topo").canonicalize().unwrap().display());
    let up = [&closed[..], &scratch, &[&topology, image.name(), "up", "--pack", "all", "/x5.topo"]].concat();
    let said = docker(&up);
    assert!(said.contains("SUBNET UP"), "{said}");
    bill_of(image);
}

/// The bill of materials names what is linked, and nothing that only builds.
fn bill_of(image: &Image) {
    let names = image.parts();
    for linked in ["quinn", "rustls", "tokio", "clap"] {
        assert!(names.iter().any(|name| name == linked), "{linked} is not in {names:?}");
    }
    for absent in ["tempfile", "serde_derive", "syn"] {
        assert!(!names.iter().any(|name| name == absent), "{absent} is in {names:?}");
    }
}

/// The production cluster, an agent for a switch and its hosts.
#[test]
fn x5_in_containers_comes_up_and_heals() {
    if !has_engine() {
        return;
    }
    let image = Image::make();
    let lab = Containers::up(&image, "x5", "psmn-x5.topo", &["--pack", "leaf", "--standby", "1"]);
    lab.heals("at first", 100);
    // A leaf with its hosts, far from the manager.
    const LEAF: &str = "H-78e7d1030022a0dc";
    let (_, devices) = lab.agent_of(LEAF);
    let (hosts, away) = (hosts(&lab), devices - 1);
    assert!(away > 0, "its agent runs a switch and its hosts");
    let pairs = |hosts: u64| hosts * (hosts - 1);
    let pairs = pairs(hosts) - pairs(hosts - away);
    docker_breaks(&lab, LEAF, Stock { whole: 100, left: 100 - devices, pairs });
}

/// How many hosts the fabric has.
fn hosts(lab: &Containers) -> u64 {
    lab.json(&["check", "--json"])["hosts"].as_u64().unwrap()
}

/// A virtual machine moves between agents in containers, and the VM manager knows it again after its own death.
#[test]
fn a_virtual_machine_moves_between_containers() {
    if !has_engine() {
        return;
    }
    let image = Image::make();
    let lab = Containers::up(
        &image,
        "vms",
        "ring-4.topo",
        &["--pack", "leaf", "--vfs", "2", "--lids", "dynamic", "--link-timeout-ms", LINK_TIMEOUT_MS],
    );
    output_of(&mut lab.verb(&["vm", "create", "web1", "--host", "H1"]));
    output_of(&mut lab.verb(&["vm", "migrate", "web1", "H3"]));
    runs_at_h3(&lab, "after its move");
    let container = lab.container("vmm");
    docker(&["kill", &container]);
    docker(&["start", &container]);
    runs_at_h3(&lab, "after the VM manager was killed and started");
    output_of(&mut lab.verb(&["check"]));
}

fn runs_at_h3(lab: &Containers, when: &str) {
    let began = Instant::now();
    loop {
        let said = lab.verb(&["vm", "ls"]).output().unwrap();
        let listed = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = listed.lines().find(|line| line.starts_with("web1")).unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(1..3) == Some(&["running", "H3"]) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{when}: {listed}{}", String::from_utf8_lossy(&said.stderr));
    }
}
