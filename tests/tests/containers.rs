//! Laboratories in containers: images made here, none pulled, and Docker's own ways to break and mend things.
//!
//! They need a Docker engine, and Compose 5 in target/judges, where `tests/run` installs it.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use weft_judges::{has_engine, output_of, weft_program};

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

/// Waits until a command succeeds.
#[track_caller]
fn wait_until(what: &str, mut command: impl FnMut() -> Command) {
    let began = Instant::now();
    loop {
        let Output { status, stdout, stderr } = command().output().unwrap();
        if status.success() {
            return;
        }
        let said = [stdout, stderr].concat();
        assert!(began.elapsed() < PATIENCE, "{what}: {}", String::from_utf8_lossy(&said));
    }
}

/// The image of the program that was built with this test.
struct Image(String);

impl Image {
    fn make() -> Self {
        let tag = format!("weft-test:{}", std::process::id());
        let image = Self(tag.clone());
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let program = weft_program();
        let arguments = ["xtask", "image", "--tag", &tag, "--binary", program.to_str().unwrap()];
        output_of(Command::new(cargo).args(arguments).current_dir(root()));
        image
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ =
            Command::new("docker").args(["image", "rm", "--force", &self.0]).stdout(Stdio::null()).status();
    }
}

/// A laboratory in containers, which go when it is dropped.
struct Containers {
    folder: TempDir,
    project: String,
    door: String,
}

impl Containers {
    fn up(image: &Image, name: &str, topology: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let door = format!("127.0.0.1:{port}");
        let project = format!("weft-{name}-{}", std::process::id());
        let lab = Self { folder, project, door };
        let file = root().join("topologies").join(topology);
        let (file, door) = (file.to_str().unwrap(), lab.door.clone());
        let planned = ["compose", file, "--lab", "lab", "--image", &image.0, "--door", &door];
        let printed = output_of(lab.weft().args(planned).args(options));
        std::fs::write(lab.folder.path().join("compose.yaml"), printed).unwrap();
        lab.compose(&["up", "--detach", "--wait", "--wait-timeout", "240", "--quiet-pull"]);
        lab
    }

    fn compose(&self, arguments: &[&str]) -> String {
        let program = root().join("target/judges/bin/docker-compose");
        assert!(program.exists(), "no {}: `tests/run` installs it", program.display());
        let file = self.folder.path().join("compose.yaml");
        let mut command = Command::new(program);
        command.args(["--project-name", &self.project, "--file"]).arg(file).args(arguments);
        output_of(&mut command)
    }

    /// `weft` here, which knows nothing of the laboratory.
    fn weft(&self) -> Command {
        let mut command = Command::new(weft_program());
        command.env("WEFT_HOME", self.folder.path().join("w")).current_dir(self.folder.path());
        command
    }

    /// A verb on the laboratory.
    fn verb(&self, arguments: &[&str]) -> Command {
        let mut command = self.weft();
        command.args(["--at", &self.door, "--identity", "lab/identities/operator.pem"]).args(arguments);
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&output_of(&mut self.verb(arguments))).unwrap()
    }

    fn container(&self, service: &str) -> String {
        self.compose(&["ps", "--all", "--quiet", service]).trim().to_owned()
    }

    /// The agent that runs a node, and how many nodes it runs.
    fn agent_of(&self, node: &str) -> (String, u64) {
        let processes = self.json(&["ps", "--json"]);
        let devices = |process: &Value| process["devices"].as_array().unwrap().clone();
        let is_it = |device: &Value| device["description"] == node || device["id"] == node;
        let runs = |process: &&Value| devices(process).iter().any(is_it);
        let process = processes.as_array().unwrap().iter().find(runs).unwrap();
        (process["process"].as_str().unwrap().to_owned(), devices(process).len() as u64)
    }

    /// Whether the manager reaches as many nodes as this.
    fn has_nodes(&self, nodes: u64) -> bool {
        self.json(&["ask", "sm", "sm-status"])["nodes"].as_u64() == Some(nodes)
    }

    fn wait_for_nodes(&self, what: &str, nodes: u64) {
        let began = Instant::now();
        while !self.has_nodes(nodes) {
            let status = self.json(&["ask", "sm", "sm-status"]);
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: the manager does not come to {nodes} nodes: {status}"
            );
        }
    }

    fn heals(&self, after: &str, nodes: u64) {
        self.wait_for_nodes(after, nodes);
        wait_until(after, || self.verb(&["check"]));
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = Command::new(root().join("target/judges/bin/docker-compose"))
                .args(["--project-name", &self.project, "--file"])
                .arg(self.folder.path().join("compose.yaml"))
                .args(["logs", "--tail", "20", "hub", "sm"])
                .status();
            drop(logs);
        }
        self.compose(&["down", "--volumes", "--timeout", "5"]);
    }
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
    let (agent, _) = lab.agent_of("S3");
    let container = lab.container(&agent);

    // A switch with its host behind it, far from the manager: two nodes fewer.
    docker(&["kill", &container]);
    lab.wait_for_nodes("after docker kill", 6);
    docker(&["start", &container]);
    lab.heals("after docker kill and start", 8);

    docker(&["pause", &container]);
    lab.wait_for_nodes("while it is paused", 6);
    docker(&["unpause", &container]);
    lab.heals("after docker pause and unpause", 8);

    let network = format!("{}_fabric", lab.project);
    docker(&["network", "disconnect", &network, &container]);
    lab.wait_for_nodes("while it is disconnected", 6);
    docker(&["network", "connect", "--alias", &agent, &network, &container]);
    lab.heals("after docker network disconnect and connect", 8);

    for service in ["sm", "pm", "hub"] {
        let container = lab.container(service);
        docker(&["kill", &container]);
        docker(&["start", &container]);
        wait_until(&format!("the hub hears all after {service} was killed"), || {
            lab.verb(&["ask", service, "hello"])
        });
        lab.heals(&format!("after {service} was killed and started"), 8);
    }
    let told = output_of(&mut lab.verb(&["events", "--json"]));
    assert!(told.contains("\"link-down\"") && told.contains("\"subnet-up\""), "{told}");
}

/// What is in the image, and what its program may do.
fn contents_of(image: &Image) {
    let told: Value = serde_json::from_str(&docker(&["image", "inspect", &image.0])).unwrap();
    let (config, bytes) = (&told[0]["Config"], told[0]["Size"].as_u64().unwrap());
    assert_eq!(config["User"], "65532:65532");
    // A program with debug assertions is twice as large.
    let most = if cfg!(debug_assertions) { 4 * IMAGE_BYTES_MAX } else { IMAGE_BYTES_MAX };
    assert!(bytes <= most, "the image has {bytes} bytes");
    let closed = ["run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none"];
    let version = docker(&[&closed[..], &[&image.0, "--version"]].concat());
    assert!(version.starts_with("weft "), "{version}");
    let shell =
        Command::new("docker").args(closed).args(["--entrypoint", "/bin/sh", &image.0]).output().unwrap();
    assert!(!shell.status.success(), "there is a shell");
    // A whole fabric in one container, as a user that is not root.
    let scratch = ["--tmpfs", "/tmp", "--env", "WEFT_HOME=/tmp/w", "--volume"];
    let topology =
        format!("{}:/x5.topo:ro", root().join("topologies/psmn-x5.topo").canonicalize().unwrap().display());
    let up = [&closed[..], &scratch, &[&topology, &image.0, "up", "--pack", "all", "/x5.topo"]].concat();
    let said = docker(&up);
    assert!(said.contains("SUBNET UP"), "{said}");
    bill_of(image);
}

/// The bill of materials names what is linked, and nothing that only builds.
fn bill_of(image: &Image) {
    let container = docker(&["create", &image.0]).trim().to_owned();
    let mut copied = Command::new("docker")
        .args(["cp", &format!("{container}:/usr/share/doc/weft"), "-"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let piped = copied.stdout.take().unwrap();
    let listed = Command::new("tar").args(["-xO", "weft/sbom.cdx.json"]).stdin(piped).output();
    assert!(copied.wait().unwrap().success());
    docker(&["rm", &container]);
    let bill: Value = serde_json::from_slice(&listed.unwrap().stdout).unwrap();
    let names: Vec<&str> =
        bill["components"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
    for linked in ["quinn", "rustls", "tokio", "clap"] {
        assert!(names.contains(&linked), "{linked} is not in {names:?}");
    }
    for absent in ["tempfile", "serde_derive", "syn"] {
        assert!(!names.contains(&absent), "{absent} is in {names:?}");
    }
    assert!(bill["components"].as_array().unwrap().iter().all(|part| part["purl"].is_string()));
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
    let (agent, devices) = lab.agent_of("H-78e7d1030022a0dc");
    assert!(devices > 1, "{agent} runs a switch and its hosts");
    let container = lab.container(&agent);
    docker(&["kill", &container]);
    lab.wait_for_nodes("after docker kill", 100 - devices);
    docker(&["start", &container]);
    lab.heals("after docker kill and start", 100);
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
