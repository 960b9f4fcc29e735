//! Machines that ssh reaches: network namespaces, each with an sshd of its own that has its own host key and folder, and a laboratory on
//! them.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::{HERE, Machines, Roughness, output_of, weft_program};

/// Nothing that is waited for takes longer, or it does not come.
const PATIENCE: Duration = Duration::from_secs(60);
const MACHINES: usize = 3;
const LAB: &str = "three";

/// Three machines that ssh reaches.
pub struct SshSite {
    /// The machines.
    pub machines: Machines,
    folder: TempDir,
    /// The sshd of each.
    pub daemons: Vec<Option<Child>>,
}

impl SshSite {
    /// Makes them.
    pub fn make() -> Self {
        Self::on(Machines::make("ssh", MACHINES))
    }

    /// Makes them with a rough way between each two.
    pub fn far_apart(roughness: Roughness) -> Self {
        Self::on(Machines::far_apart("rough", MACHINES, roughness))
    }

    fn on(machines: Machines) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut site = Self { machines, folder, daemons: Vec::new() };
        site.key("id");
        std::fs::copy(site.path("id.pub"), site.path("authorized_keys")).unwrap();
        // Where sshd puts those that have not logged in yet.
        std::fs::create_dir_all("/run/sshd").unwrap();
        for machine in 1..=MACHINES {
            std::fs::create_dir(site.path(&machine.to_string())).unwrap();
            site.key(&format!("{machine}/host_key"));
            let daemon = site.daemon(machine);
            site.daemons.push(Some(daemon));
        }
        let ssh = "Host *\nUser root\nIdentityFile ID\nIdentitiesOnly yes\nUserKnownHostsFile KNOWN\nGlobalKnownHostsFile none\n";
        let named = |path: &str| site.path(path).to_str().unwrap().to_owned();
        let ssh = ssh.replace("ID\n", &format!("{}\n", named("id"))).replace("KNOWN", &named("known_hosts"));
        std::fs::write(site.path("ssh_config"), ssh).unwrap();
        site.know(&[1, 2, 3]);
        site
    }

    /// A file in the scratch folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a pair of keys.
    pub fn key(&self, name: &str) {
        output_of(
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(self.path(name)),
        );
    }

    /// The machine's sshd, once it listens.
    fn daemon(&self, machine: usize) -> Child {
        let own = self.path(&machine.to_string());
        let config = format!(
            "ListenAddress {}\nHostKey {own}/host_key\nPidFile {own}/sshd.pid\nAuthorizedKeysFile {all}/authorized_keys\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nSetEnv WEFT_HOME={own}/w\n",
            self.machines.address(machine),
            own = own.display(),
            all = self.folder.path().display(),
        );
        std::fs::write(own.join("sshd_config"), config).unwrap();
        let mut command = self.machines.command(machine, "/usr/sbin/sshd");
        command.args(["-D", "-E"]).arg(own.join("sshd.log")).arg("-f").arg(own.join("sshd_config"));
        let daemon = command.stdin(Stdio::null()).spawn().unwrap();
        wait_until("sshd listens", || own.join("sshd.pid").exists());
        daemon
    }

    /// Writes down the host keys of these machines.
    pub fn know(&self, machines: &[usize]) {
        let line = |machine: &usize| {
            let key = std::fs::read_to_string(self.path(&format!("{machine}/host_key.pub"))).unwrap();
            format!("{} {key}", self.machines.address(*machine))
        };
        std::fs::write(self.path("known_hosts"), machines.iter().map(line).collect::<String>()).unwrap();
    }

    /// `weft` on the machine where commands are given.
    pub fn weft(&self, arguments: &[&str]) -> Command {
        self.weft_on(HERE, &self.path("w"), arguments)
    }

    /// A program on the machine where commands are given.
    pub fn here(&self, program: &str) -> Command {
        self.machines.command(HERE, program)
    }

    fn weft_on(&self, machine: usize, home: &Path, arguments: &[&str]) -> Command {
        let mut command = self.machines.command(machine, weft_program());
        command.args(arguments).env("WEFT_HOME", home).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// `weft up` over these hosts.
    pub fn up(&self, hosts: &str, options: &[&str]) -> Command {
        let topology = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/ring-4.topo");
        let (topology, config) = (topology.canonicalize().unwrap(), self.path("ssh_config"));
        let config = config.to_str().unwrap();
        let mut command = self.weft(&["--lab", LAB, "up", "--hosts", hosts, "--ssh-config", config]);
        if !options.contains(&"--remote-weft") {
            command.arg("--remote-weft").arg(weft_program());
        }
        command.args(options).arg(topology);
        command
    }

    /// All machines, as `--hosts` takes them.
    pub fn all(&self) -> String {
        self.machines.addresses().join(",")
    }

    /// What a verb prints with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&output_of(&mut self.weft(arguments))).unwrap()
    }

    /// A machine's folder of the laboratory.
    pub fn part(&self, machine: usize) -> PathBuf {
        self.path(&format!("{machine}/w/{LAB}"))
    }

    /// Waits until nothing of the laboratory is left on a machine.
    pub fn is_gone_from(&self, machine: usize) {
        wait_until(&format!("the part on {machine} is gone"), || {
            let left = std::fs::read_dir(self.path(&format!("{machine}/w"))).map(Iterator::count);
            left.unwrap_or(0) == 0
        });
        let home = self.path(&format!("{machine}/w"));
        assert_eq!(processes_in(&home), 0, "processes are left on {machine}");
    }

    /// Nodes that the manager reaches.
    pub fn nodes(&self) -> u64 {
        self.json(&["ask", "sm", "sm-status"])["nodes"].as_u64().unwrap()
    }

    /// Waits until all nodes are there and `check` finds nothing.
    pub fn heals(&self, after: &str) {
        wait_until(after, || self.nodes() == 8);
        wait_until(after, || self.weft(&["check"]).output().unwrap().status.success());
    }
}

impl Drop for SshSite {
    fn drop(&mut self) {
        for machine in 1..=MACHINES {
            self.machines.mend(machine);
        }
        let _ = self.weft(&["down", "--all", "--forget"]).output();
        for machine in 1..=MACHINES {
            let home = self.path(&format!("{machine}/w"));
            let _ = self.weft_on(machine, &home, &["down", "--all"]).output();
        }
        for daemon in self.daemons.iter_mut().flatten() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Processes whose arguments name a folder.
fn processes_in(folder: &Path) -> usize {
    let folder = folder.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(folder)).count()
}

/// Waits until something is so.
#[track_caller]
pub fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    wait_within(PATIENCE, what, is_so);
}

/// Waits longer, or not as long, until something is so.
#[track_caller]
pub fn wait_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < patience, "not within {} s: {what}", patience.as_secs());
        crate::pause();
    }
}
