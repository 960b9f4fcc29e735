//! The record of a laboratory, as its launcher wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_control::process::ProcessKind;
use weft_link::PeerAddress;
use weft_sm::SmpRouting;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{GidPrefix, Guid, PortNum};

use crate::config::managers::Listen;
use crate::failure::Failure;
use crate::folder::LabFolder;
use crate::folder::bundle::{self, Bundle};
use crate::names::{IBSIM, OPENSM, PM, SM, agent_name, is_of, number_of, numbered};
use crate::place::block::Block;
use crate::place::hosts::listen_at;

/// `lab.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabRecord {
    /// The version of weft that planned it.
    pub version: String,
    /// Its name, which its processes tell each other.
    pub lab: String,
    /// The topology file's name.
    pub topology: String,
    /// Wall-clock nanoseconds in one nanosecond of fabric time, where packets take time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dilation: Option<u32>,
    /// Virtual functions of the virtualised adapter that has the fewest, if adapters are virtualised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vfs: Option<usize>,
    /// Whether the slots of virtual functions are empty at first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_slots: bool,
    /// Whether GUIDs stay with virtual functions, so that machines are found by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guids_stay: bool,
    /// Whether SMPs of programs at virtual functions are dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub qp0_denied: bool,
    /// Its agents, in order of name.
    pub agents: Vec<AgentRecord>,
    /// Where the subnet manager sits; `None` with `--no-sm`.
    pub sm: Option<SmPlace>,
    /// Where the subnet managers sit that stand by.
    #[serde(default)]
    pub standbys: Vec<SmPlace>,
    /// Where performance managers sit, if there are any: each in another piece of the fabric.
    #[serde(default)]
    pub pms: Vec<OtherPlace>,
    /// Where unmodified OpenSM sits, if it manages the subnet: in several pieces of the fabric, or twice in one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opensms: Vec<OtherPlace>,
    /// Where VM managers sit, if there are any: each in another piece of the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vmms: Vec<OtherPlace>,
    /// Where processes serve metrics, if they do.
    pub metrics: Option<Metrics>,
    /// The SHA-256 of the token that HTTP asks for on addresses other than loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_token: Option<String>,
    /// Where programs under ibsim's library find the laboratory, if they do.
    pub ibsim: Option<Listen>,
    /// The UDP ports of this machine; none where agents run on hosts that the user named.
    pub udp_ports: Option<Block>,
    /// Where processes that are no agents are found over the network, where they are: by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub doors: BTreeMap<String, PeerAddress>,
    /// The link timeout of all agents.
    pub link_timeout_ms: u64,
    /// How many agents there were before any was added or removed; none where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<usize>,
    /// Names that agents have had since, also those that were removed: none is given twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<usize>,
}

/// Where processes serve metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metrics {
    /// At TCP ports of this machine, one for each process.
    Ports(Block),
    /// All at this TCP port: each has a host of its own.
    Port(u16),
    /// Each on its host, at the TCP port with the number of its UDP port.
    UdpPort,
}

/// One agent process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "StoredAgent", into = "StoredAgent")]
pub struct AgentRecord {
    /// Its name: that of its files.
    pub name: String,
    /// Where its peers find it.
    pub address: PeerAddress,
    /// Its devices, in the topology's order.
    pub devices: Vec<DeviceRecord>,
    /// The nodes that its certificate names.
    pub proves: Vec<Guid>,
    /// Where it serves metrics, if it was added later and does.
    pub metrics: Option<SocketAddr>,
}

/// The same in a file, of which a hub gets hundreds.
#[derive(Serialize, Deserialize)]
struct StoredAgent {
    name: String,
    address: PeerAddress,
    devices: Vec<DeviceRecord>,
    /// None if these are its devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proves: Option<Vec<Guid>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
}

/// The nodes of devices, in the order of their GUIDs.
fn guids(devices: &[DeviceRecord]) -> Vec<Guid> {
    let guids: BTreeSet<Guid> = devices.iter().map(|device| device.guid).collect();
    guids.into_iter().collect()
}

impl From<AgentRecord> for StoredAgent {
    fn from(agent: AgentRecord) -> Self {
        let AgentRecord { name, address, devices, proves, metrics } = agent;
        let proves = Some(proves).filter(|proves| *proves != guids(&devices));
        Self { name, address, devices, proves, metrics }
    }
}

impl From<StoredAgent> for AgentRecord {
    fn from(stored: StoredAgent) -> Self {
        let StoredAgent { name, address, devices, proves, metrics } = stored;
        let proves = proves.unwrap_or_else(|| guids(&devices));
        Self { name, address, devices, proves, metrics }
    }
}

/// One device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Its node GUID.
    pub guid: Guid,
    /// Its id in the topology file.
    pub id: String,
    /// Its description.
    pub description: String,
    /// What a person can type for it: the description, or the id where others share the description.
    pub label: String,
    /// Whether it is a switch.
    pub switch: bool,
    /// Whether it is a slot of virtual machines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slot: bool,
}

impl DeviceRecord {
    /// That of a node.
    #[must_use]
    pub fn of(fabric: &Fabric, index: NodeIndex, slot: bool) -> Self {
        let node = fabric.node(index);
        Self {
            guid: node.guid,
            id: node.id.clone(),
            description: node.description.clone(),
            label: fabric.label(index),
            switch: node.is_switch(),
            slot,
        }
    }
}

/// The port that the subnet manager is attached to, and its configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SmPlace {
    /// The agent.
    pub agent: String,
    /// The node.
    pub node: Guid,
    /// The port.
    pub port: PortNum,
    /// How SMPs go.
    pub smp_routing: SmpRouting,
    /// Its name, in a part of a laboratory: there its place in the list does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it is the first of another piece of the fabric, and stands by for no one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leads: bool,
    /// The prefix of its subnet, if that is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_prefix: Option<GidPrefix>,
}

/// The port that a performance manager, a VM manager or OpenSM is attached to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OtherPlace {
    /// Its name among the processes.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// The node.
    pub node: Guid,
    /// The port.
    pub port: PortNum,
}

/// TCP ports that the managers have before the agents: the subnet manager's and the performance manager's, also where
/// there is none, so that what one is does not hang on the other. Behind the agents are standbys, VM managers, and further performance
/// managers.
pub const MANAGER_PORTS: u32 = 2;

/// The name of a standby subnet manager among the processes, by its place in the record.
pub fn standby_name(at: usize) -> String {
    numbered(SM, at + 1)
}

impl LabRecord {
    /// A running laboratory's.
    pub fn load(lab: &LabFolder) -> anyhow::Result<Self> {
        Self::read(&Bundle::at(lab.path()).record())
    }

    /// Reads it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        bundle::load(path)
    }

    /// That of a bundle, which another version of weft may have planned.
    pub fn of_bundle(bundle: &Bundle) -> anyhow::Result<Self> {
        let path = bundle.record();
        let text = crate::input::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("cannot use the bundle {}", bundle.path().display()))
    }

    /// The same from its text.
    pub fn parse(text: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            version: String,
            lab: String,
        }
        let own = env!("CARGO_PKG_VERSION");
        // First, since a record of another version may have other fields.
        let head: Option<Head> = serde_json::from_slice(text).ok();
        if let Some(Head { version, lab }) = head.filter(|head| head.version != own) {
            let message = format!("`{lab}` was planned by weft {version}, and this is weft {own}");
            return Err(Failure::new(message)
                .hint(format!("install weft {version} here, or plan it again with weft {own}")));
        }
        serde_json::from_slice(text).map_err(|error| {
            Failure::bad_input(format!("lab.json is invalid: {error}"))
                .hint("it is of another version of weft, or was cut short: plan it again with `weft plan`")
        })
    }

    /// Writes it into a bundle.
    pub fn store(&self, bundle: &Bundle) -> anyhow::Result<()> {
        bundle::store(&bundle.record(), self)
    }

    /// The TCP ports of this machine that serve metrics.
    pub fn metrics_ports(&self) -> Option<Block> {
        match self.metrics? {
            Metrics::Ports(block) => Some(block),
            Metrics::Port(_) | Metrics::UdpPort => None,
        }
    }

    /// The TCP port at which every process serves metrics, where each has a host of its own.
    pub fn metrics_port(&self) -> Option<u16> {
        match self.metrics? {
            Metrics::Port(port) => Some(port),
            Metrics::Ports(_) | Metrics::UdpPort => None,
        }
    }

    /// Where a process serves metrics, if it does.
    pub fn metrics_of(&self, process: &str) -> Option<SocketAddr> {
        let agent = self.agents.iter().find(|agent| agent.name == process);
        if let Some(metrics) = agent.and_then(|agent| agent.metrics) {
            return Some(metrics);
        }
        let block = match self.metrics? {
            Metrics::Ports(block) => block,
            Metrics::Port(port) => return Some((Ipv4Addr::UNSPECIFIED, port).into()),
            Metrics::UdpPort => {
                let place = agent.map(|agent| &agent.address).or_else(|| self.doors.get(process))?;
                return Some((listen_at(&place.host()), place.port()).into());
            }
        };
        let planned = self.planned();
        let place = match process {
            SM => 0,
            PM => 1,
            _ => {
                let standbys = (0..self.standbys.len()).map(standby_name);
                let named = |places: &[OtherPlace]| places.iter().map(|place| place.name.clone()).collect();
                let [vmms, pms]: [Vec<String>; 2] = [named(&self.vmms), named(&self.pms)];
                let mut behind = standbys.chain(vmms).chain(pms.into_iter().skip(1));
                let agent = || number_of(process).filter(|number| *number < planned);
                let behind = behind.position(|name| name == process).map(|at| planned + at).or_else(agent)?;
                u32::try_from(behind).ok()?.checked_add(MANAGER_PORTS)?
            }
        };
        block.place(place)
    }

    /// How many agents it was planned with.
    fn planned(&self) -> usize {
        self.planned.unwrap_or(self.agents.len())
    }

    /// A name for another agent, which no agent has had.
    pub fn name_next(&mut self) -> String {
        self.planned = Some(self.planned());
        let named = self.named.unwrap_or_else(|| self.planned());
        self.named = Some(named + 1);
        agent_name(named)
    }

    /// An agent is gone.
    pub fn forget(&mut self, agent: &str) {
        self.planned = Some(self.planned());
        self.named = Some(self.named.unwrap_or_else(|| self.planned()));
        self.agents.retain(|known| known.name != agent);
    }

    /// The manager that sits at an agent, if one does.
    pub fn manager_at(&self, agent: &str) -> Option<&'static str> {
        let sits = |places: &[OtherPlace]| places.iter().any(|place| place.agent == agent);
        if self.subnet_managers().any(|(_, place)| place.agent == agent) {
            return Some("a subnet manager");
        }
        let others =
            [(&self.opensms, "OpenSM"), (&self.pms, "a performance manager"), (&self.vmms, "a VM manager")];
        others.into_iter().find(|(places, _)| sits(places)).map(|(_, what)| what)
    }

    /// Agents' hosts, each once.
    pub fn hosts(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let hosts = self.agents.iter().map(|agent| agent.address.host());
        hosts.filter(|host| seen.insert(host.clone())).collect()
    }

    /// What of it runs on one host: its agents, and the managers that attach to them. `None` where that is nothing.
    pub fn part(&self, host: &str) -> Option<Self> {
        let agents: Vec<AgentRecord> =
            self.agents.iter().filter(|agent| agent.address.host() == host).cloned().collect();
        if agents.is_empty() {
            return None;
        }
        let is_here = |agent: &String| agents.iter().any(|own| own.name == *agent);
        let standbys = self.subnet_managers().skip(usize::from(self.sm.is_some()));
        let standbys = standbys.filter(|(_, place)| is_here(&place.agent));
        let places =
            |places: &[OtherPlace]| places.iter().filter(|place| is_here(&place.agent)).cloned().collect();
        Some(Self {
            sm: self.sm.clone().filter(|place| is_here(&place.agent)),
            standbys: standbys.map(|(name, place)| SmPlace { name: Some(name), ..place.clone() }).collect(),
            pms: places(&self.pms),
            opensms: places(&self.opensms),
            vmms: places(&self.vmms),
            ibsim: None,
            doors: BTreeMap::new(),
            planned: Some(self.planned()),
            agents,
            ..self.clone()
        })
    }

    /// The names of all processes that it is started with.
    pub fn processes(&self) -> impl Iterator<Item = String> {
        self.kinds().map(|(name, _)| name)
    }

    /// The same with their kinds.
    pub fn kinds(&self) -> impl Iterator<Item = (String, ProcessKind)> {
        let agents = self.agents.iter().map(|agent| (agent.name.clone(), ProcessKind::Agent));
        agents.chain(self.others())
    }

    /// Those that are no agents.
    pub fn others(&self) -> impl Iterator<Item = (String, ProcessKind)> {
        let of = |kind| move |place: &OtherPlace| (place.name.clone(), kind);
        let managers = self.subnet_managers().map(|(name, _)| (name, ProcessKind::Sm));
        let opensms = self.own_opensms().iter().map(of(ProcessKind::Opensm));
        let pms = self.pms.iter().map(of(ProcessKind::Pm));
        let vmms = self.vmms.iter().map(of(ProcessKind::Vmm));
        let ibsim = self.ibsim.iter().map(|_| (IBSIM.to_owned(), ProcessKind::Ibsim));
        managers.chain(opensms).chain(pms).chain(vmms).chain(ibsim)
    }

    /// Where OpenSM sits, if it is a process of the laboratory; in containers it is a program beside an agent's.
    pub fn own_opensms(&self) -> &[OtherPlace] {
        let is_own = self.doors.is_empty() || self.doors.keys().any(|name| is_of(name, OPENSM));
        if is_own { &self.opensms } else { &[] }
    }

    /// The subnet managers by their names as processes, the first one first.
    pub fn subnet_managers(&self) -> impl Iterator<Item = (String, &SmPlace)> {
        let own = |place: &SmPlace| place.name.clone().unwrap_or_else(|| SM.to_owned());
        let first = self.sm.iter().map(move |place| (own(place), place));
        let standbys = self.standbys.iter().enumerate();
        let name = |at, place: &SmPlace| place.name.clone().unwrap_or_else(|| standby_name(at));
        first.chain(standbys.map(move |(at, place)| (name(at, place), place)))
    }

    /// The subnet managers that begin their subnets: that of the first piece, and those of others.
    pub fn leaders(&self) -> impl Iterator<Item = (String, &SmPlace)> {
        let first = usize::from(self.sm.is_some());
        let all = self.subnet_managers().enumerate();
        all.filter(move |(at, (_, place))| *at < first || place.leads).map(|(_, manager)| manager)
    }

    /// The same by their ports in the cabling.
    pub fn leaders_in(&self, fabric: &Fabric) -> Vec<(String, PortRef)> {
        let seat = |place: &SmPlace| Some(PortRef::new(fabric.by_guid(place.node)?, place.port));
        self.leaders().filter_map(|(name, place)| Some((name, seat(place)?))).collect()
    }

    /// The slots of virtual machines, each with its agent.
    pub fn slots(&self) -> impl Iterator<Item = (&AgentRecord, &DeviceRecord)> {
        self.agents.iter().flat_map(|agent| {
            agent.devices.iter().filter(|device| device.slot).map(move |device| (agent, device))
        })
    }

    /// Whether programs at a node may send no SMPs.
    pub fn denies_qp0(&self, node: Guid) -> bool {
        self.qp0_denied && self.slots().any(|(_, slot)| slot.guid == node)
    }

    /// Slots have other identities now: by the GUIDs that they began with. Each is renamed once, as two may have swapped theirs.
    pub fn rename(&mut self, slots: &BTreeMap<Guid, Guid>) {
        let devices = self.agents.iter_mut().flat_map(|agent| &mut agent.devices);
        for device in devices.filter(|device| device.slot) {
            device.guid = slots.get(&device.guid).copied().unwrap_or(device.guid);
        }
    }

    /// The agent that runs a node, and the node.
    pub fn device(&self, node: Guid) -> Option<(&AgentRecord, &DeviceRecord)> {
        self.agents.iter().find_map(|agent| {
            agent.devices.iter().find(|device| device.guid == node).map(|device| (agent, device))
        })
    }
}
