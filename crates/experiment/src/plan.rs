//! One run, with every name resolved: the input of a runner.
//!
//! A plan's clock begins when the fabric is up: every port that a sweep can bring up is Active, the subnet manager is
//! idle, the performance manager is attached where there is one, and the hosts have taken [`Plan::setup`]. All times
//! are machine time from that moment, which is wall-clock time in a live run and virtual time in a simulated one.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weft_device::DeviceOptions;
use weft_fault::{Fault, Impaired, Nodes, Presented, Process};
use weft_host::stack::StackOptions;
use weft_host::traffic::{Command, FlowId, Transport, Work};
use weft_machine::Time;
use weft_topology::{Adapter, Fabric, Node, NodeIndex, PortRef};
use weft_vm::{Create, HostName, Migrate, VmName};
use weft_wire::{Guid, PortNum};

use crate::spec::VM_PREFIX;
use crate::{CongestionSpec, Span};

/// Which of an experiment's runs: the choice of each axis of variants, and the seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId {
    /// By axis, in the order of the file, the label of what is chosen.
    pub choices: Vec<(String, String)>,
    /// The seed.
    pub seed: u64,
}

impl RunId {
    /// Letters, digits and `-`, for names of files: `pm-on-lanes-2-seed-1`.
    pub fn slug(&self) -> String {
        let parts = self.choices.iter().map(|(axis, label)| format!("{axis}-{label}"));
        let text = parts.chain([format!("seed-{}", self.seed)]).collect::<Vec<_>>().join("-");
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
    }
}

impl fmt::Display for RunId {
    /// `pm=on, lanes=2, seed 1`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, label) in &self.choices {
            write!(f, "{axis}={label}, ")?;
        }
        write!(f, "seed {}", self.seed)
    }
}

/// Everything that a runner does in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The experiment's file, as it was named.
    pub file: String,
    /// Its title.
    pub title: String,
    /// Which of its runs.
    pub run: RunId,
    /// Whether live processes may run it.
    pub live: bool,
    /// Whether it may be run in virtual time.
    pub simulated: bool,
    /// The cabling.
    pub fabric: Arc<Fabric>,
    /// What every device is made with: lanes, MTU, rates, buffers.
    pub device: DeviceOptions,
    /// What every host is made with.
    pub stack: StackOptions,
    /// How long a packet takes over a cable, in machine time; zero where cables have no length.
    pub cable_delay: Time,
    /// Cables on which it takes another time.
    pub cable_delays: Vec<(PortRef, Time)>,
    /// Options of the subnet manager: engines, lanes, arbitration, lifetimes.
    pub sm: weft_sm::Options,
    /// The port that it is attached to.
    pub sm_at: PortRef,
    /// The performance manager, where there is one.
    pub pm: Option<weft_pm::Options>,
    /// The port that it is attached to.
    pub pm_at: PortRef,
    /// Management's own service level and lane, where it has them. They are in [`Plan::sm`] and [`Plan::stack`] already
    /// as far as those know them.
    pub management: Option<ManagementLane>,
    /// Settings of congestion control in switches and hosts, where it is on.
    pub congestion: Option<CongestionSpec>,
    /// What an oracle knows.
    pub oracle: Option<Oracle>,
    /// Service levels given by hand: the runner puts them into the hosts' path caches (`Command::LearnPaths`) before the
    /// clock begins, and after any other path that it puts there.
    pub levels: Vec<GivenLevel>,
    /// Whether the runner fills the path caches (`Command::LearnPaths`) before the clock begins, with what path records
    /// would say; with an oracle, hot spots get its service level there.
    pub learn_paths: bool,
    /// Commands to hosts before the clock begins, in this order; each is an `Expect` or a `HeedRepath`.
    pub setup: Vec<(NodeIndex, Command)>,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
    /// The flows, in order of their numbers.
    pub flows: Vec<FlowPlan>,
    /// Virtual machines, where adapters are virtualised. They run before the clock begins.
    pub vms: Option<VmsPlan>,
    /// The end.
    pub duration: Time,
    /// The named spans of time.
    pub windows: Vec<Span>,
    /// From one sample to the next; the first is at zero, the last at the end.
    pub sample_interval: Time,
    /// The ports whose counters are sampled.
    pub ports: Vec<PortPlace>,
}

impl Plan {
    /// The virtual machine that starts in a function.
    pub fn born_in(&self, function: NodeIndex) -> Option<&VmPlan> {
        self.machines().iter().find(|vm| vm.born == function)
    }

    /// All virtual machines.
    pub fn machines(&self) -> &[VmPlan] {
        self.vms.as_ref().map(|plan| plan.vms.as_slice()).unwrap_or_default()
    }

    /// The end of flows that has a port: a machine as `vm:NAME`, wherever it is, or a host.
    pub fn end_with_port(&self, port: Guid) -> String {
        if let Some(vm) = self.machines().iter().find(|vm| vm.port_guid == port) {
            return format!("{VM_PREFIX}{}", vm.name);
        }
        let has_it = |node: &Node| node.external_ports().any(|(_, own)| own.guid == port);
        let owner = self.fabric.iter().find(|(_, node)| has_it(node));
        owner.map_or_else(|| port.to_string(), |(index, _)| self.fabric.label(index))
    }

    /// Whether a name of the file means the end that [`Self::end_with_port`] calls so.
    pub(crate) fn is_called(&self, name: &str, end: &str) -> bool {
        name == end || self.fabric.find(name).is_ok_and(|node| self.fabric.label(node) == end)
    }

    /// Describes a fault or repair: `cable A/4 - R/2 is cut`. None for commands to hosts.
    pub fn event(&self, action: &Action) -> Option<String> {
        let node = |index: &NodeIndex| self.fabric.name(*index).to_owned();
        let cable = |port: &PortRef| {
            let end = |port: PortRef| format!("{}/{}", node(&port.node), port.port);
            let peer = self.fabric.peer(*port).map(end);
            format!("{} - {}", end(*port), peer.unwrap_or_default())
        };
        let of = |process: &Process<NodeIndex>| match process {
            Process::Agent(index) => node(index),
            Process::Sm => "the subnet manager".to_owned(),
            Process::Standby(_) => format!("the subnet manager {}", process.map(|index| node(&index))),
            Process::Pm => "the performance manager".to_owned(),
            Process::Vmm => "the VM manager".to_owned(),
            Process::Hub => "the hub".to_owned(),
            Process::Ibsim => "the server for ibsim's programs".to_owned(),
            Process::Opensm => "OpenSM".to_owned(),
            Process::Further(..) => process.map(|index| node(&index)).to_string(),
        };
        let list = |nodes: &Nodes<NodeIndex>| nodes.0.iter().map(node).collect::<Vec<_>>().join(", ");
        Some(match action {
            Action::Host(..) => return None,
            Action::Migrate(migrate) => format!("{} leaves for {}", migrate.vm, migrate.host),
            Action::Fault(Fault::LinkDown(port)) => format!("cable {} is cut", cable(port)),
            Action::Fault(Fault::LinkUp(port)) => format!("cable {} is whole again", cable(port)),
            Action::Fault(Fault::Freeze(process)) => format!("{} is frozen", of(process)),
            Action::Fault(Fault::Thaw(process)) => format!("{} goes on", of(process)),
            Action::Fault(Fault::Partition(nodes)) => format!("{} apart from the others", list(nodes)),
            Action::Fault(Fault::Heal(nodes)) => format!("{} with the others again", list(nodes)),
            Action::Fault(Fault::BadIdentity(Presented { node: index, identity })) => {
                format!("{} has a bad identity ({identity})", node(index))
            }
            Action::Fault(Fault::GoodIdentity(index)) => {
                format!("{} has its own identity again", node(index))
            }
            Action::Fault(Fault::Impair(Impaired { at, way, how, .. })) => {
                format!("cable {}: {how} {}", cable(at), way.name())
            }
            Action::Fault(Fault::Clear(Impaired { at, way, how, .. })) => {
                format!("cable {}: {how} {} has ended", cable(at), way.name())
            }
            Action::Fault(Fault::Kill(process)) => format!("{} is killed", of(process)),
            Action::Fault(Fault::Restart(process)) => format!("{} is started", of(process)),
        })
    }
}

/// Something that happens at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub at: Time,
    /// What.
    pub action: Action,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A host gets a command.
    Host(NodeIndex, Command),
    /// Something goes wrong, or is put right.
    Fault(Fault<NodeIndex, PortRef>),
    /// The VM manager is asked to move a virtual machine.
    Migrate(Box<Migrate>),
}

/// Virtual machines on virtualised adapters.
#[derive(Clone, Debug, PartialEq)]
pub struct VmsPlan {
    /// The adapters.
    pub adapters: Vec<Adapter>,
    /// Whether a function has a LID only while a machine is in it.
    pub is_dynamic: bool,
    /// The machines.
    pub vms: Vec<VmPlan>,
    /// The port that the VM manager is attached to.
    pub vmm_at: PortRef,
}

/// A virtual machine. Flows and commands name it by the function that it starts in, wherever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmPlan {
    /// Its name.
    pub name: VmName,
    /// Its first host.
    pub host: HostName,
    /// The function there, counted from 1.
    pub vf: u8,
    /// The same as a node of the cabling.
    pub born: NodeIndex,
    /// The GUID of its port.
    pub port_guid: Guid,
    /// The GUID that the VM manager is asked to give; none where the function has one.
    pub given: Option<Guid>,
}

impl VmPlan {
    /// What the VM manager is asked for, to start it.
    pub fn create(&self) -> Create {
        let (vf, guid) = (Some(self.vf), self.given);
        Create { vf, guid, ..Create::new(self.name.clone(), Some(self.host.clone())) }
    }
}

/// Management's own service level and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ManagementLane {
    /// The service level.
    pub sl: u8,
    /// The lane that it is mapped to: the one above those of traffic.
    pub lane: u8,
}

/// A service level given by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GivenLevel {
    /// The sender.
    pub host: NodeIndex,
    /// The destination's port.
    pub to: Guid,
    /// The service level.
    pub sl: u8,
}

/// What an oracle knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Oracle {
    /// The ports to which packets take the slow lane, by GUID.
    pub hot_spots: Vec<Guid>,
    /// The slow lane's service level.
    pub slow_sl: u8,
}

/// A flow, for the report. A mix is one flow of many senders and receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// Its number.
    pub flow: FlowId,
    /// Its name.
    pub name: String,
    /// The pattern or mix that it belongs to.
    pub group: Option<String>,
    /// Senders.
    pub senders: Vec<NodeIndex>,
    /// Receivers.
    pub receivers: Vec<NodeIndex>,
    /// How it is carried.
    pub transport: Transport,
    /// What it does.
    pub work: Work,
    /// Bytes of a message.
    pub message_bytes: u32,
    /// When it begins.
    pub start: Time,
    /// When it stops.
    pub stop: Time,
    /// What it measures for a latency and bandwidth test.
    pub beff: Option<BeffTag>,
    /// With which others it is compared between live and virtual time.
    pub agree_as: Option<String>,
}

impl FlowPlan {
    /// Bytes of a packet beside its body, as [`Transport::overhead`] has them.
    pub fn overhead(&self) -> u64 {
        self.transport.overhead()
    }
}

/// What a flow measures for a latency and bandwidth test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeffTag {
    /// The test's name.
    pub test: String,
    /// The part.
    pub part: BeffPart,
    /// Whether it is about bandwidth rather than latency.
    pub bandwidth: bool,
}

/// A part of a latency and bandwidth test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BeffPart {
    /// One pair at a time.
    PingPong,
    /// Every host with its neighbours in natural order, all at the same time.
    NaturalRing,
    /// The same in random order.
    RandomRing,
}

/// A port with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlace {
    /// `node/port`, as the file names it.
    pub name: String,
    /// Where it is.
    pub port: PortRef,
}

impl PortPlace {
    /// Its number on its node.
    pub fn number(&self) -> PortNum {
        self.port.port
    }
}
