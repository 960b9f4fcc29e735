//! Laboratories in containers: images made here, none pulled, and Docker's own ways to break and mend things.
//!
//! They need a Docker engine, and Compose 5 in target/judges, where `tests/run` installs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_judges::{
    Breakable, Containers, Image, has_engine, now_ns, output_of, pairs_of, wait_for_success, wait_until, x5,
};
use weft_topology::Fabric;

/// Nothing that is waited for takes longer, or it does not come: containers start at one or two a second.
const PATIENCE: Duration = Duration::from_secs(120);
/// The link timeout of a small laboratory, whose few containers start at once.
const LINK_TIMEOUT_MS: &str = "1500";
/// How often X5's standby manager asks the master: it takes over after five questions without an answer.
const POLLING_MS: &str = "1000";
/// How long a part of X5 is cut off.
const AWAY: Duration = Duration::from_secs(30);
/// A host of X5 at another switch than the managers' hosts.
const FAR_HOST: &str = "H-78e7d1030022a0dc";
/// A schedule that kills the subnet manager and the hub, and cuts and impairs cables of the ring.
const CHAOS_SEED: &str = "6";
/// What an image may hold: the mark against regressions of `cargo xtask image`.
const IMAGE_BYTES_MAX: u64 = 21_000_000;

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

/// The image, and what the verbs do to its containers: one start serves all. X5 sees what Docker does to them.
#[test]
fn a_ring_in_containers_is_broken_by_verbs_and_heals() {
    if !has_engine() {
        return;
    }
    let image = Image::make();
    contents_of(&image);
    let lab = Containers::up(&image, "ring", "ring-4.topo", &["--pm", "--link-timeout-ms", LINK_TIMEOUT_MS]);
    output_of(&mut lab.verb(&["check"]));
    assert_eq!(lab.json(&["ps", "--json"]).as_array().unwrap().len(), 8 + 3);
    identities_change(&lab);
    // Each ends itself when the hub passes that on, and Docker starts it again.
    for process in ["S3", "sm", "pm", "hub"] {
        output_of(&mut lab.verb(&["fault", "restart", process]));
        lab.heals(&format!("after {process} was killed by way of the hub"), 8);
    }
    let told = output_of(&mut lab.verb(&["events", "--json"]));
    assert!(told.contains("\"link-down\"") && told.contains("\"subnet-up\""), "{told}");
    let schedule = tempfile::NamedTempFile::new().unwrap();
    let drawn = output_of(&mut lab.verb(&["chaos", "--draw", "--seed", CHAOS_SEED]));
    std::fs::write(&schedule, &drawn).unwrap();
    let replay = ["chaos", "--json", "--replay", schedule.path().to_str().unwrap()];
    let survived: Value = serde_json::from_str(&output_of(&mut lab.verb(&replay))).unwrap();
    assert_eq!(survived["ok"], Value::Bool(true), "{drawn}{survived}");
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

/// The production cluster, an agent for a switch and its hosts: one start serves all that is done to it.
#[test]
fn x5_in_containers_comes_up_and_heals() {
    if !has_engine() {
        return;
    }
    let (image, fabric) = (Image::make(), x5());
    let options = ["--pack", "leaf", "--pm", "--standby", "1", "--polling-ms", POLLING_MS];
    let lab = Containers::up(&image, "x5", "psmn-x5.topo", &options);
    lab.heals("at first", fabric.nodes().len() as u64);
    let leaf = Breakable::of(&lab, &fabric, FAR_HOST);
    leaf.dies();
    leaf.stops();
    leaf.is_cut_off(AWAY);
    a_host_is_cut_off_while_managers_die(&lab, &fabric);
    a_standby_takes_over(&lab, &fabric);
}

/// A host loses its cable for half a minute. Meanwhile performance manager and hub die: the next hub tells of the fault all the same.
fn a_host_is_cut_off_while_managers_die(lab: &Containers, fabric: &Fabric) {
    let (nodes, hosts) = (fabric.nodes().len() as u64, fabric.hosts().count() as u64);
    let (host_agent, _) = lab.devices_with(FAR_HOST);
    let (from, began) = (now_ns(), Instant::now());
    let done = lab.verb(&["fault", "partition", FAR_HOST]).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    let (_, id) = said.split_once("(fault ").unwrap_or_else(|| panic!("{said}"));
    let id = id.split([',', ')']).next().unwrap();
    lab.wait_for_nodes("while a host is cut off", nodes - 1);
    // The page of one who opens it later has these minutes.
    wait_until("the hub keeps the state with the host's fault", || {
        let minutes = minutes(lab);
        minutes.contains(r#"{"at_ms":"#)
            && minutes.contains(r#""key":{"#)
            && minutes.contains(r#""partition""#)
    });
    lab.manager_dies("pm", || {});
    lab.manager_dies("hub", || {});
    wait_for_success("the next hub reaches the host", || lab.verb(&["ask", &host_agent, "hello"]));
    wait_until("the host was away for long enough", || began.elapsed() >= AWAY);
    output_of(&mut lab.verb(&["fault", "heal", FAR_HOST]));
    lab.heals("after a host was cut off", nodes);
    let cost = lab.cost_since(from, "a host that was cut off", |cost| cost["fault"] == id);
    for part in ["detected_after_ns", "rerouted_after_ns", "restored_after_ns"] {
        assert!(cost[part].is_u64(), "{part}: {cost}");
    }
    assert_eq!(cost["pairs_lost"], pairs_of(hosts) - pairs_of(hosts - 1), "{cost}");
    // A clock that never goes back measured it here; agents tell of it by one that may be adjusted meanwhile.
    let lasted = Duration::from_nanos(cost["lasted_ns"].as_u64().unwrap());
    assert!(lasted + Duration::from_millis(100) >= AWAY, "{cost}");
}

/// What the hub keeps of the last ten minutes, piece by piece: a line for each state.
fn minutes(lab: &Containers) -> String {
    let (mut lines, mut place) = (String::new(), "{}".to_owned());
    loop {
        let piece = output_of(&mut lab.verb(&["ask", "hub", "past", &place]));
        let piece: Value = serde_json::from_str(&piece).unwrap();
        lines += piece["text"].as_str().unwrap();
        match &piece["next"] {
            Value::Null => return lines,
            next => place = next.to_string(),
        }
    }
}

/// The master dies, and stays dead until the standby manager has routed everything.
fn a_standby_takes_over(lab: &Containers, fabric: &Fabric) {
    let nodes = fabric.nodes().len() as u64;
    let is_master = |status: &Value| {
        let is_own = |line: &Value| line["is_self"] == true && line["state"] == "master";
        status["managers"].as_array().unwrap().iter().any(is_own)
    };
    let wait_for = |name: &str, is_it: &dyn Fn(&Value) -> bool| {
        let began = Instant::now();
        while !lab.manager(name).is_some_and(|status| is_it(&status)) {
            assert!(began.elapsed() < PATIENCE, "{name} does not become the master: {:?}", lab.manager(name));
        }
    };
    wait_for("sm", &is_master);
    wait_for("sm-2", &|_| true);
    // It may have been the master while the laboratory started, so only a sweep since then tells anything.
    let sweeps = |status: &Value| status["heavy_sweeps"].as_u64().unwrap();
    let before = sweeps(&lab.manager("sm-2").unwrap());
    let has_routed = |status: &Value| {
        let has_swept = sweeps(status) > before && status["phase"].is_null();
        is_master(status) && has_swept && status["subnet_up"] == true && status["nodes"] == nodes
    };
    let cost = lab.manager_dies("sm", || {
        wait_for("sm-2", &has_routed);
        wait_for_success("`check` under the standby manager", || lab.verb(&["check"]));
    });
    lab.heals("after the first manager is back", nodes);
    // The hub sees a container go when it has not heard it for a while, which may be after the standby manager has taken over.
    assert!(cost["restored_after_ns"].is_u64(), "{cost}");
    assert_eq!(cost["pairs_lost"], 0, "{cost}");
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

/// Two planes that only adapters join: each has managers of its own, in containers of their own, and lives on while the other's are dead.
#[test]
fn each_plane_in_containers_has_its_own_managers() {
    if !has_engine() {
        return;
    }
    let image = Image::make();
    let seats = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node01 mlx5_0:2"];
    let more = ["--pm", "--vfs", "1", "--pack", "leaf", "--link-timeout-ms", LINK_TIMEOUT_MS];
    let lab = Containers::up(&image, "planes", "two-planes.topo", &[&seats[..], &more].concat());
    let check = lab.json(&["check", "--json"]);
    assert_eq!((&check["ok"], check["pieces"].as_array().unwrap().len()), (&true.into(), 2), "{check:#}");
    let services = lab.services();
    let managers = ["sm", "sm-2", "pm", "pm-2", "vmm", "vmm-2"];
    assert!(managers.iter().all(|name| services.iter().any(|one| one == name)), "{services:?}");
    output_of(&mut lab.verb(&["vm", "create", "web1", "--host", "node02 mlx5_0:1"]));
    output_of(&mut lab.verb(&["vm", "create", "web2", "--host", "node02 mlx5_0:2"]));
    let killed = ["sm-2", "vmm-2"].map(|name| lab.container(name));
    killed.iter().for_each(|container| drop(docker(&["kill", container])));
    output_of(&mut lab.verb(&["vm", "migrate", "web1", "node03 mlx5_0:1"]));
    killed.iter().for_each(|container| drop(docker(&["start", container])));
    wait_for_success("the other plane's managers are back", || {
        lab.verb(&["vm", "migrate", "web2", "node04 mlx5_0:2"])
    });
    wait_for_success("after a plane's managers were killed", || lab.verb(&["check"]));
    let listed = lab.json(&["vm", "ls", "--json"]);
    let at = listed.as_array().unwrap().iter().map(|vm| vm["system_name"].as_str().unwrap());
    assert_eq!(at.collect::<Vec<_>>(), ["node03-p1", "node04-p2"], "{listed:#}");
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
