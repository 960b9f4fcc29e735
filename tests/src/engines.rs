//! Docker engines of a test's own, one on each of several machines, and the Swarm that they form.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::{Machines, output_of};

/// How long an engine has to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where containerd listens: started by itself, or by the engine of this machine.
const CONTAINERD: [&str; 2] =
    ["/run/containerd/containerd.sock", "/var/run/docker/containerd/containerd.sock"];

/// Engines on the machines from 1 up. All that they have made goes with them.
pub struct Engines {
    /// The machines, one for each engine.
    pub machines: Machines,
    folder: TempDir,
    running: Vec<Option<Child>>,
}

impl Engines {
    /// Starts them, with the storage driver of this machine's engine.
    ///
    /// # Panics
    /// When they do not come up; their logs are in the message.
    pub fn start(name: &str, count: usize) -> Self {
        let machines = Machines::make(name, count);
        let folder = tempfile::tempdir().expect("a scratch folder can be made");
        let driver = output_of(Command::new("docker").args(["info", "--format", "{{.Driver}}"]));
        let config = json!({ "storage-driver": driver.trim() });
        std::fs::write(folder.path().join("daemon.json"), config.to_string()).expect("a scratch file");
        let mut engines = Self { machines, folder, running: (0..count).map(|_| None).collect() };
        (1..=count).for_each(|machine| engines.start_one(machine));
        engines
    }

    /// Starts the engine of a machine, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn start_one(&mut self, machine: usize) {
        let own = self.own(machine);
        std::fs::create_dir_all(&own).expect("a scratch folder");
        let place = |name: &str| own.join(name).into_os_string();
        let containerd = CONTAINERD.into_iter().find(|path| Path::new(path).exists());
        let log = std::fs::File::options().create(true).append(true).open(own.join("log")).expect("a log");
        // Not `ip netns exec`, which hides the cgroups. In a Swarm each engine needs a name of its own.
        let mut command = self.machines.command(machine, "unshare");
        command.args(["--uts", "sh", "-c", "hostname \"$1\"; shift; exec dockerd \"$@\"", "sh"]);
        command.arg(self.name(machine)).arg("--config-file").arg(self.folder.path().join("daemon.json"));
        command.arg("--data-root").arg(place("data")).arg("--exec-root").arg(place("exec"));
        command.arg("--pidfile").arg(place("pid")).arg("--host").arg(self.socket(machine));
        command.arg("--containerd").arg(containerd.expect("no containerd runs"));
        let namespace = self.namespace(machine);
        command.args(["--containerd-namespace", &namespace]);
        command.args(["--containerd-plugins-namespace", &format!("{namespace}-plugins")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("nsenter and dockerd must be installed");
        self.running[machine - 1] = Some(child);
        let answers = self.wait(|| {
            self.docker(machine, &["version"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|ended| ended.success())
        });
        let log = std::fs::read_to_string(own.join("log")).unwrap_or_default();
        assert!(answers, "the engine of machine {machine} does not answer:\n{log}");
    }

    /// Kills the engine of a machine.
    pub fn kill(&mut self, machine: usize) {
        if let Some(mut engine) = self.running[machine - 1].take() {
            let _ = engine.kill();
            let _ = engine.wait();
        }
    }

    /// A command of docker's on a machine's engine.
    pub fn docker(&self, machine: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.arg("--host").arg(self.socket(machine)).args(arguments).stdin(Stdio::null());
        command
    }

    /// Gives an image of this machine's engine to all of them.
    ///
    /// # Panics
    /// When docker fails.
    pub fn load(&self, image: &str) {
        let archive = self.folder.path().join("image.tar");
        output_of(Command::new("docker").args(["image", "save", "--output"]).arg(&archive).arg(image));
        for machine in 1..=self.running.len() {
            output_of(self.docker(machine, &["image", "load", "--input"]).arg(&archive));
        }
    }

    /// Forms a Swarm: the first machine manages it.
    ///
    /// # Panics
    /// When docker fails.
    pub fn swarm(&self) {
        let manager = self.machines.address(1);
        output_of(&mut self.docker(1, &["swarm", "init", "--advertise-addr", &manager]));
        let token = output_of(&mut self.docker(1, &["swarm", "join-token", "--quiet", "worker"]));
        for machine in 2..=self.running.len() {
            let own = self.machines.address(machine);
            let join = ["swarm", "join", "--token", token.trim(), "--advertise-addr", &own, &manager];
            output_of(&mut self.docker(machine, &join));
        }
    }

    /// What the manager says of a machine: `ready` or `down`.
    ///
    /// # Panics
    /// When docker fails.
    pub fn state(&self, machine: usize) -> String {
        let asked = ["node", "inspect", "--format", "{{.Status.State}}", &self.name(machine)];
        output_of(&mut self.docker(1, &asked)).trim().to_owned()
    }

    fn name(&self, machine: usize) -> String {
        format!("machine{machine}")
    }

    fn own(&self, machine: usize) -> PathBuf {
        self.folder.path().join(machine.to_string())
    }

    fn socket(&self, machine: usize) -> String {
        format!("unix://{}", self.own(machine).join("docker.sock").display())
    }

    fn namespace(&self, machine: usize) -> String {
        format!("weft-{}-{machine}", std::process::id())
    }

    fn wait(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let began = Instant::now();
        while !is_so() {
            if began.elapsed() > PATIENCE {
                return false;
            }
            crate::pause();
        }
        true
    }

    /// Ends one engine and its containers.
    fn end(&mut self, machine: usize) {
        let quietly = |mut command: Command| command.stderr(Stdio::null()).output();
        let _ = quietly(self.docker(machine, &["swarm", "leave", "--force"]));
        if let Ok(listed) = quietly(self.docker(machine, &["ps", "--all", "--quiet"])) {
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            let containers: Vec<&str> = listed.split_whitespace().collect();
            if !containers.is_empty() {
                let _ = quietly(self.docker(machine, &[&["rm", "--force"], &containers[..]].concat()));
            }
        }
        if let Some(mut engine) = self.running[machine - 1].take() {
            let pid = i32::try_from(engine.id()).ok().and_then(rustix::process::Pid::from_raw);
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
            if !self.wait(|| matches!(engine.try_wait(), Ok(Some(_)))) {
                let _ = engine.kill();
                let _ = engine.wait();
            }
        }
        // What an engine that was killed has left mounted would keep its folder.
        let own = self.own(machine);
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let below = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|at| Path::new(at).starts_with(&own));
        for mount in below {
            let _ = quietly({
                let mut command = Command::new("umount");
                command.args(["--lazy", mount]);
                command
            });
        }
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        for machine in 1..=self.running.len() {
            if self.running[machine - 1].is_none() && std::thread::panicking() {
                // One that was killed has left its containers running, and only it can end them.
                let start = std::panic::AssertUnwindSafe(|| self.start_one(machine));
                drop(std::panic::catch_unwind(start));
            }
            self.end(machine);
        }
    }
}
