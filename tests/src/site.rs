//! A fabric with a subnet manager, seen through libibumad's programs: on weft by either way of attaching, or on ibsim.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use weft_routing::{Lids, Routes};
use weft_topology::{Fabric, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

/// No tool takes longer, or it hangs.
const TOOL_TIME_MAX: Duration = Duration::from_secs(60);

/// How a program reaches the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// weft's own libibumad layer.
    Layer,
    /// weft's server of ibsim's protocol, with the stock shim.
    Protocol,
    /// ibsim itself.
    Ibsim,
}

/// What the laboratory itself knows of one port's counters: packets and four-byte words, sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Packets sent.
    pub xmit_packets: u64,
    /// Packets received.
    pub rcv_packets: u64,
    /// Words sent.
    pub xmit_words: u64,
    /// Words received.
    pub rcv_words: u64,
}

/// Reads a port's counters from the laboratory itself, not through any MAD.
pub(crate) type ReadTotals<'a> = &'a dyn Fn(Guid, PortNum) -> Option<Totals>;

/// A fabric that programs can look at, and what is known about it beforehand.
pub struct Site<'a> {
    /// How programs reach it.
    pub way: Way,
    /// Its cabling.
    pub fabric: &'a Fabric,
    /// The LIDs that its subnet manager gave.
    pub lids: Lids,
    /// The tables that its subnet manager wrote.
    pub routes: Routes,
    /// The host that programs are attached to.
    pub host: NodeIndex,
    /// A folder for what tools write.
    pub folder: PathBuf,
    /// A command of `program` at the node.
    pub command: &'a dyn Fn(&str, &Node) -> Command,
    /// The laboratory's own counters.
    pub totals: ReadTotals<'a>,
}

/// What a tool did.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code, -1 when a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// The standard output of a tool that went well.
    pub fn success(self) -> Result<String, String> {
        if self.code == 0 {
            return Ok(self.out);
        }
        let line = self.err.lines().chain(self.out.lines()).find(|line| !line.trim().is_empty());
        Err(format!("exit code {}: {}", self.code, line.unwrap_or("nothing said")))
    }
}

impl Site<'_> {
    /// Runs a tool at a node.
    ///
    /// # Panics
    /// When it cannot be started, or takes longer than a minute.
    pub fn run_at(&self, node: &Node, program: &str, arguments: &[&str]) -> Said {
        let mut command = (self.command)(program, node);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = rustix::process::Pid::from_child(&child);
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        let Ok(output) = receive.recv_timeout(TOOL_TIME_MAX) else {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("{command:?} takes longer than {TOOL_TIME_MAX:?}");
        };
        Said::of(&output.expect("a child's output can be read"))
    }

    /// Runs a tool at the usual host.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Said {
        self.run_at(self.fabric.node(self.host), program, arguments)
    }

    /// The standard output of a tool, run at the usual host, that must go well.
    pub fn read(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        self.run(program, arguments).success()
    }

    /// The LID of a node's first end port.
    ///
    /// # Panics
    /// When the node has none.
    pub fn lid(&self, node: NodeIndex) -> Lid {
        let (port, _) = self.fabric.node(node).end_ports().next().expect("a node has an end port");
        self.lids.of(PortRef::new(node, port)).expect("the subnet manager gave every port a LID").base
    }

    /// The LID of the end port that a port of a node belongs to: a switch's port 0, an HCA's own.
    ///
    /// # Panics
    /// When the port has none.
    pub fn lid_of_port(&self, end: PortRef) -> Lid {
        if self.fabric.node(end.node).is_switch() {
            return self.lid(end.node);
        }
        self.lids.of(end).expect("the subnet manager gave every port a LID").base
    }

    /// Where tools may write.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.folder).join(name)
    }

    /// A switch that the usual host is not cabled to, and a port of it with a cable.
    ///
    /// # Panics
    /// When the fabric has none.
    pub fn far_switch(&self) -> (NodeIndex, PortNum) {
        let near: Vec<NodeIndex> =
            self.fabric.node(self.host).cabled_ports().map(|(_, peer)| peer.node).collect();
        let far = self.fabric.switches().find(|(node, _)| !near.contains(node));
        let (node, switch) = far.expect("the fabric has more than one switch");
        (node, switch.cabled_ports().next().expect("a switch has a cable").0)
    }

    /// A host that is not the usual one, as far from it in the list as can be.
    ///
    /// # Panics
    /// When the fabric has one host only.
    pub fn other_host(&self) -> NodeIndex {
        let other = self.fabric.hosts().filter(|(node, _)| *node != self.host).last();
        other.expect("the fabric has more than one host").0
    }
}

/// The value of `Name:......value` in a tool's output.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix(name)?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        rest.starts_with('.').then(|| rest.trim_start_matches('.'))
    })
}

/// Whether a field has the value wanted.
pub(crate) fn expect_field(text: &str, name: &str, wanted: &str) -> Result<(), String> {
    match field(text, name) {
        Some(value) if value == wanted => Ok(()),
        Some(value) => Err(format!("{name} is {value}, not {wanted}")),
        None => Err(format!("there is no {name}")),
    }
}

/// Whether two things that must be equal are.
pub(crate) fn expect_equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    wanted: &T,
) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, not {wanted:?}")) }
}
