//! A laboratory on a Swarm of three Docker engines.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "in a test a panic is the report")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Engines, HERE, Image, output_of, weft_program};

/// Nothing that is waited for takes longer, or it does not come: a Swarm takes half a minute to give up a machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// The laboratory's name, and that of its file.
const LAB: &str = "lab";
const FILE: &str = "lab.yaml";
/// The stack's name.
pub const STACK: &str = "weft";

/// The laboratory on the Swarm.
pub struct Stack {
    /// The engines.
    pub engines: Engines,
    folder: TempDir,
    /// How many nodes its fabric has.
    fabric_nodes: u64,
}

impl Stack {
    /// Starts the engines, forms the Swarm and deploys one of the repository's fabrics, planned with these options.
    pub fn deploy(image: &Image, topology: &str, options: &[&str]) -> Self {
        let engines = Engines::start("swarm", 3);
        engines.load(image.name());
        engines.swarm();
        let folder = tempfile::tempdir().unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies").join(topology);
        let fabric = weft_topology::parse(topology, &std::fs::read_to_string(&file).unwrap()).unwrap();
        let stack = Self { engines, folder, fabric_nodes: fabric.nodes().len() as u64 };
        let planned = ["compose", "--lab", LAB, "--image", image.name()];
        let printed = output_of(stack.weft().args(planned).args(options).arg(file));
        std::fs::write(stack.folder.path().join(FILE), printed).unwrap();
        let deploy = ["stack", "deploy", "--resolve-image", "never", "--compose-file", FILE, STACK];
        output_of(stack.engines.docker(1, &deploy).current_dir(stack.folder.path()));
        stack
    }

    fn weft(&self) -> Command {
        let mut command = self.engines.machines.command(HERE, weft_program());
        command.env("WEFT_HOME", self.folder.path().join("w")).current_dir(self.folder.path());
        command
    }

    /// A verb on the laboratory, by the door of its hub on the machine that manages the Swarm.
    pub fn verb(&self, arguments: &[&str]) -> Command {
        let mut command = self.weft();
        let hub = format!("{}:7443", self.engines.machines.address(1));
        let identity = format!("{LAB}/identities/operator.pem");
        command.args(["--at", &hub, "--identity", &identity]).args(arguments);
        command
    }

    /// Nodes that the manager reaches, if it answers.
    pub fn nodes(&self) -> Option<u64> {
        let said = self.verb(&["ask", "sm", "sm-status"]).output().unwrap();
        serde_json::from_slice::<Value>(&said.stdout).ok()?["nodes"].as_u64()
    }

    /// The machines that the services run on.
    pub fn placed(&self) -> String {
        let tasks = ["stack", "ps", "--format", "{{.Name}} {{.Node}} {{.CurrentState}} {{.Error}}", STACK];
        output_of(&mut self.engines.docker(1, &tasks))
    }

    /// What some processes have said last.
    fn last_words(&self) -> String {
        let logs = ["hub", "sm", "a0000"].map(|service| {
            let service = format!("{STACK}_{service}");
            // It waits for what a machine that is cut off has said.
            let docker = self.engines.docker(1, &["service", "logs", "--tail", "5", &service]);
            let mut bounded = Command::new("timeout");
            let said = bounded.arg("10").arg(docker.get_program()).args(docker.get_args()).output().unwrap();
            String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned()
        });
        logs.concat()
    }

    /// Waits until something is so, and tells how long that took.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            let so_far = || format!("{}\nnodes: {:?}\n{}", self.placed(), self.nodes(), self.last_words());
            assert!(began.elapsed() < PATIENCE, "not within {} s: {what}\n{}", PATIENCE.as_secs(), so_far());
            crate::pause();
        }
        eprintln!("{what}: after {:.1} s", began.elapsed().as_secs_f64());
    }

    /// Waits until all nodes are there and `check` finds nothing.
    pub fn heals(&self, when: &str) {
        self.wait_until(when, || {
            self.nodes() == Some(self.fabric_nodes)
                && self.verb(&["check"]).output().unwrap().status.success()
        });
    }
}
