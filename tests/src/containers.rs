//! A laboratory in containers, as Compose starts it.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use weft_control::Utc;

use crate::{Image, output_of, weft_program};

/// Nothing that is waited for takes longer, or it does not come: containers start at one or two a second.
const PATIENCE: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// How often a laboratory is taken down.
const DOWN_TRIES: usize = 3;

/// Compose 5, where `tests/run` installs it.
fn compose() -> PathBuf {
    root().join("target/judges/bin/docker-compose")
}

/// Waits until a command succeeds.
#[track_caller]
pub fn wait_for_success(what: &str, mut command: impl FnMut() -> Command) {
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

/// A laboratory in containers, which go when it is dropped.
pub struct Containers {
    folder: TempDir,
    /// Its name for Compose.
    pub project: String,
    door: String,
    program: PathBuf,
}

impl Containers {
    /// Makes and starts it.
    pub fn up(image: &Image, name: &str, topology: &str, options: &[&str]) -> Self {
        let lab = Self::planned(image, name, &root().join("topologies").join(topology), options);
        lab.compose(&["up", "--detach", "--wait", "--wait-timeout", "240", "--quiet-pull"]);
        lab
    }

    /// Makes and starts it with Debian's Compose 1.29, which cannot wait.
    pub fn up_with_old_compose(image: &Image, name: &str, topology: &str, options: &[&str]) -> Self {
        let mut lab = Self::planned(image, name, &root().join("topologies").join(topology), options);
        lab.program = "/usr/bin/docker-compose".into();
        lab.compose(&["up", "--detach"]);
        wait_for_success("Compose 1.29 starts it", || lab.verb(&["ask", "sm", "hello"]));
        lab
    }

    /// Makes it, and starts nothing.
    pub fn planned(image: &Image, name: &str, topology: &Path, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = crate::free_port();
        let door = format!("127.0.0.1:{port}");
        let project = format!("weft-{name}-{}", std::process::id());
        let lab = Self { folder, project, door, program: compose() };
        let (file, door) = (topology.to_str().unwrap(), lab.door.clone());
        let planned = ["compose", file, "--lab", "lab", "--image", image.name(), "--door", &door];
        let printed = output_of(lab.weft().args(planned).args(options));
        std::fs::write(lab.folder.path().join("compose.yaml"), printed).unwrap();
        lab
    }

    /// As many containers as this laboratory has, which do nothing.
    pub fn idle(&self, image: &Image) -> Self {
        let idle = format!(
            "{{image: {}, command: [sleep, infinity], read_only: true, cap_drop: [ALL], networks: [fabric]}}",
            image.name()
        );
        let services: String =
            self.services().iter().map(|service| format!("  {service}: {idle}\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let file = format!("services:\n{services}networks:\n  fabric: {{internal: true}}\n");
        std::fs::write(folder.path().join("compose.yaml"), file).unwrap();
        let project = format!("{}-idle", self.project);
        Self { folder, project, door: String::new(), program: compose() }
    }

    /// Its compose file, with what that tells people.
    pub fn file(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("compose.yaml")).unwrap()
    }

    /// The names of its services.
    pub fn services(&self) -> Vec<String> {
        let listed = self.compose(&["config", "--services"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Runs Compose.
    pub fn compose(&self, arguments: &[&str]) -> String {
        output_of(&mut self.compose_command(arguments))
    }

    fn compose_command(&self, arguments: &[&str]) -> Command {
        assert!(self.program.exists(), "no {}: `tests/run` installs it", self.program.display());
        let file = self.folder.path().join("compose.yaml");
        let mut command = Command::new(&self.program);
        command.args(["--project-name", &self.project, "--file"]).arg(file).args(arguments);
        command
    }

    /// `weft` here, which knows nothing of the laboratory.
    fn weft(&self) -> Command {
        let mut command = Command::new(weft_program());
        command.env("WEFT_HOME", self.folder.path().join("w")).current_dir(self.folder.path());
        command
    }

    /// What a verb prints where the authority's key is.
    pub fn authority(&self, arguments: &[&str]) -> String {
        output_of(self.weft().args(arguments))
    }

    /// A verb on the laboratory.
    pub fn verb(&self, arguments: &[&str]) -> Command {
        let mut command = self.weft();
        command.args(["--at", &self.door, "--identity", "lab/identities/operator.pem"]).args(arguments);
        command
    }

    /// What a verb prints with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&output_of(&mut self.verb(arguments))).unwrap()
    }

    /// The identities of those who look at it from outside.
    pub fn identities(&self) -> PathBuf {
        self.folder.path().join("lab/identities")
    }

    /// The container of a service.
    pub fn container(&self, service: &str) -> String {
        self.compose(&["ps", "--all", "--quiet", service]).trim().to_owned()
    }

    /// The agent that runs a node, and how many nodes it runs.
    pub fn agent_of(&self, node: &str) -> (String, u64) {
        let (agent, devices) = self.devices_with(node);
        (agent, devices.len() as u64)
    }

    /// The agent that runs a node, and the ids of all nodes that it runs.
    pub fn devices_with(&self, node: &str) -> (String, Vec<String>) {
        let processes = self.json(&["ps", "--json"]);
        let devices = |process: &Value| process["devices"].as_array().unwrap().clone();
        let is_it = |device: &Value| device["label"] == node || device["id"] == node;
        let runs = |process: &&Value| devices(process).iter().any(is_it);
        let process = processes.as_array().unwrap().iter().find(runs).unwrap();
        let ids = devices(process).iter().map(|device| device["id"].as_str().unwrap().to_owned()).collect();
        (process["process"].as_str().unwrap().to_owned(), ids)
    }

    /// How a subnet manager is; nothing while the hub does not reach it.
    pub fn manager(&self, name: &str) -> Option<Value> {
        let told = self.verb(&["ask", name, "sm-status"]).output().unwrap().stdout;
        serde_json::from_slice(&told).ok()
    }

    /// Waits until the manager reaches as many nodes as this.
    pub fn wait_for_nodes(&self, what: &str, nodes: u64) {
        self.wait_for_manager(what, nodes, |_| true);
    }

    /// Waits until the subnet is up with as many nodes as this.
    pub fn wait_for_subnet(&self, what: &str, nodes: u64) {
        self.wait_for_manager(what, nodes, |status| status["subnet_up"] == true);
    }

    /// When the subnet was up first with as many nodes as this.
    pub fn subnet_up_at(&self, nodes: u64) -> Utc {
        let told = output_of(&mut self.verb(&["events", "--json"]));
        let mut events = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = events.find(|event| {
            let count = |what: &str| event[what].as_u64().unwrap_or_default();
            event["event"] == "subnet-up" && count("switches") + count("hosts") == nodes
        });
        found.expect("it is up")["time"].as_str().unwrap().parse().unwrap()
    }

    fn wait_for_manager(&self, what: &str, nodes: u64, is_good: impl Fn(&Value) -> bool) {
        let began = Instant::now();
        loop {
            let status = self.manager("sm").unwrap_or_default();
            if status["nodes"] == nodes && is_good(&status) {
                return;
            }
            let late = "the manager does not come to";
            assert!(began.elapsed() < PATIENCE, "{what}: {late} {nodes} nodes: {status}");
        }
    }

    /// Waits until all nodes are there and `check` finds nothing.
    pub fn heals(&self, after: &str, nodes: u64) {
        self.wait_for_nodes(after, nodes);
        wait_for_success(after, || self.verb(&["check"]));
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = self.compose_command(&["logs", "--tail", "20", "hub", "sm"]).status();
            drop(logs);
        }
        // An engine under load may count a container that has left a network as one that is in it: what it says is shown.
        let down = || self.compose_command(&["down", "--volumes", "--timeout", "5"]).output().unwrap();
        let mut said = down();
        for _ in 1..DOWN_TRIES {
            if said.status.success() {
                return;
            }
            said = down();
        }
        eprintln!("Compose does not take it down: {}", String::from_utf8_lossy(&said.stderr));
    }
}
