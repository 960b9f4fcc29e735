//! Running ibsim, and infiniband-diags and OpenSM on top of it, as judges of what weft writes and computes.

mod breakage;
mod containers;
mod engines;
mod fabrics;
mod image;
mod lab;
mod machines;
mod manager;
pub mod matrix;
pub mod moves;
pub mod opensm;
mod ports;
mod rivals;
mod routed;
mod seen;
mod shape;
mod site;
mod sshd;
mod stack;
mod way;

pub use breakage::{Breakable, now_ns, pairs_of};
pub use containers::{Containers, wait_for_success};
pub use engines::Engines;
pub use fabrics::{
    broken_three_levels, broken_tree, degraded_324, described, directors, edr_pair, irregular, parallel_tree,
    small_broken_three_levels, tree_324, uneven_cores,
};
pub use image::Image;
pub use lab::{Lab, weft_program};
pub use machines::{HERE, Machines};
pub use manager::OpenSm;
pub use ports::free_port;
pub use rivals::{Outcome, Rivals, Tally, side_by_side};
pub use routed::{RoutedByOpenSm, route_by_opensm, seconds_of};
pub use shape::{differences, shape_of};
pub use site::{Said, Site, Totals, Way};
pub use sshd::{SshSite, wait_until, wait_within};
pub use stack::{STACK, Stack};
pub use way::{Carried, Roughness};

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use weft_ibsim::Address;
use weft_topology::{Fabric, Node, NodeIndex};

/// The production cluster of `topologies/psmn-x5.topo`.
///
/// # Panics
/// When weft cannot read it.
pub fn x5() -> Fabric {
    let text = include_str!("../../topologies/psmn-x5.topo");
    weft_topology::parse("psmn-x5.topo", text).unwrap_or_else(|error| panic!("{error}"))
}

/// The host that programs are attached to where it does not matter: the first one.
///
/// # Panics
/// When the fabric has none.
pub fn first_host(fabric: &Fabric) -> (NodeIndex, &Node) {
    fabric.hosts().next().expect("the fabric has a host")
}

/// An ibsim that simulates one fabric, until dropped.
pub struct Ibsim {
    process: Child,
    folder: TempDir,
    socket: String,
}

impl Ibsim {
    /// Starts ibsim on `fabric`, written as weft writes it, and waits until it serves.
    ///
    /// # Panics
    /// When ibsim is not installed or does not take the file; its output is in the message.
    pub fn start(fabric: &Fabric) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let folder = TempDir::new().expect("a scratch folder can be made");
        let file = folder.path().join("net.topo");
        std::fs::write(&file, fabric.write_ibnetdiscover()).expect("the scratch folder can be written");
        let socket = format!("weft-{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut process = Command::new("ibsim")
            .args(["-s", "-n"])
            .args(limits(fabric))
            .arg(&file)
            .env("IBSIM_SOCKNAME", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("ibsim must be installed: apt-get install ibsim-utils");
        let mut said = String::new();
        let output = BufReader::new(process.stdout.take().expect("piped"));
        for line in output.lines().map_while(Result::ok) {
            said.push_str(&line);
            said.push('\n');
            // This is the last line that it prints before it serves.
            if line.starts_with("MaxMcastCap") {
                // Its sockets are there a moment later.
                let control = Address::named(&socket, "ctl");
                while !control.is_taken() && matches!(process.try_wait(), Ok(None)) {
                    std::thread::yield_now();
                }
                return Self { process, folder, socket };
            }
        }
        let _ = process.wait();
        panic!("ibsim does not take the file:\n{said}");
    }

    /// Its name: `IBSIM_SOCKNAME`.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// A folder of the simulator's own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command that finds the simulated fabric behind the port of `host`.
    pub fn command(&self, program: &str, host: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", host)
            .env("LD_PRELOAD", preload())
            .env("OSM_TMP_DIR", self.folder())
            .env("OSM_CACHE_DIR", self.folder())
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Ibsim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Limits of ibsim for a larger fabric: nodes, switches, ports, entries in a forwarding table.
fn limits(fabric: &Fabric) -> [String; 4] {
    let nodes = fabric.nodes().len();
    let ports: usize = fabric.nodes().iter().map(|node| usize::from(node.port_count()) + 1).sum();
    let at_least = |option: char, least: usize, needed: usize| format!("-{option}{}", least.max(needed));
    [
        at_least('N', 2048, nodes + 1),
        at_least('S', 256, fabric.switches().count() + 1),
        at_least('P', 13_312, ports + 1),
        at_least('L', 30_720, 0xc000.min(nodes * 2)),
    ]
}

/// Where Debian puts the library that stands between libibumad and ibsim.
fn preload() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("/usr/lib can be read").filter_map(Result::ok);
    folders
        .map(|folder| folder.path().join("umad2sim/libumad2sim.so"))
        .find(|library| library.exists())
        .expect("libumad2sim must be installed: apt-get install ibsim-utils")
}

/// A program that `tests/run` installs from PyPI.
///
/// # Panics
/// When it is not there.
pub fn judge(name: &str) -> Command {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/judges/bin").join(name);
    assert!(program.exists(), "no {}: `tests/run` installs it", program.display());
    Command::new(program)
}

/// Whether a Docker engine answers, without which tests of containers are skipped: `tests/run` says so.
///
/// # Panics
/// When none does in continuous integration: there they must not be skipped.
pub fn has_engine() -> bool {
    let asked = Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]).output();
    let answers = asked.as_ref().is_ok_and(|output| output.status.success());
    assert!(answers || !in_ci(), "CI is set, and no Docker engine answers: {asked:?}");
    answers
}

/// Whether this is root, without which tests on several machines are skipped: only root makes network namespaces.
///
/// # Panics
/// When it is not in continuous integration: there they must not be skipped.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    assert!(
        is_root || !in_ci(),
        "CI is set, and only root can make network namespaces: run this test as root"
    );
    if !is_root {
        eprintln!("skipped: only root can make network namespaces; run this test as root");
    }
    is_root
}

/// Whether this is continuous integration. Empty is as good as not set.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

/// The pause between two looks at what no descriptor tells.
#[allow(
    clippy::disallowed_methods,
    reason = "looks without a pause would take the processor from what is looked at"
)]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(50));
}

/// Runs a command and gives its standard output.
///
/// # Panics
/// When it fails; what it said is in the message.
pub fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed: {}\n{out}\n{err}", output.status);
    out.into_owned()
}
