//! What a laboratory consists of, as its launcher wrote it down.

use std::net::SocketAddr;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_wire::{Guid, PortNum, printable_json};

use super::folder::{self, LabFolder, Place};
use super::names::{PM, SM};
use crate::cli::SmpRouting;
use crate::ibsim_process::Listen;
use crate::manager::loopback;

/// `lab.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabRecord {
    /// The version of weft that started it.
    pub(crate) version: String,
    /// The topology file as it was named.
    pub(crate) topology: String,
    /// Its agents, in order of name.
    pub(crate) agents: Vec<AgentRecord>,
    /// Where the subnet manager sits; `None` with `--no-sm`.
    pub(crate) sm: Option<SmPlace>,
    /// Where the subnet managers sit that stand by.
    #[serde(default)]
    pub(crate) standbys: Vec<SmPlace>,
    /// Where the performance manager sits, if there is one.
    #[serde(default)]
    pub(crate) pm: Option<PmPlace>,
    /// The first of the TCP ports that serve metrics, and how many there are.
    #[serde(default)]
    pub(crate) metrics: Option<(u16, u16)>,
    /// Where programs under ibsim's library find the laboratory, if they do.
    #[serde(default)]
    pub(crate) ibsim: Option<Listen>,
    /// The first UDP port and how many follow.
    pub(crate) udp_ports: (u16, u16),
    /// The link timeout of all agents.
    pub(crate) link_timeout_ms: u64,
}

/// One agent process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AgentRecord {
    /// Its name: that of its files.
    pub(crate) name: String,
    /// Where it takes links.
    pub(crate) address: SocketAddr,
    /// Its devices, in the topology's order.
    pub(crate) devices: Vec<DeviceRecord>,
}

/// One device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceRecord {
    /// Its node GUID.
    pub(crate) guid: Guid,
    /// Its id in the topology file.
    pub(crate) id: String,
    /// Its description.
    pub(crate) description: String,
    /// What a person can type for it: the description, or the id where others share the description.
    pub(crate) label: String,
    /// Whether it is a switch.
    pub(crate) switch: bool,
}

/// The port that the subnet manager is attached to, and what it was told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SmPlace {
    /// The agent.
    pub(crate) agent: String,
    /// The node.
    pub(crate) node: Guid,
    /// The port.
    pub(crate) port: PortNum,
    /// How SMPs go.
    pub(crate) smp_routing: SmpRouting,
}

/// The port that the performance manager is attached to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PmPlace {
    /// The agent.
    pub(crate) agent: String,
    /// The node.
    pub(crate) node: Guid,
    /// The port.
    pub(crate) port: PortNum,
}

/// TCP ports that the managers have before the agents: the subnet manager's and the performance manager's, also where
/// there is none, so that what one is does not hang on the other.
pub(crate) const MANAGER_PORTS: u16 = 2;

/// The name of a standby subnet manager among the processes, by its place in the record.
pub(crate) fn standby_name(at: usize) -> String {
    format!("{SM}-{}", at + 2)
}

impl LabRecord {
    /// Reads it.
    pub(crate) fn load(lab: &LabFolder) -> anyhow::Result<Self> {
        let path = lab.place(Place::Record);
        let text = crate::input::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} makes no sense", path.display()))
    }

    /// Writes it.
    pub(crate) fn store(&self, lab: &LabFolder) -> anyhow::Result<()> {
        folder::replace(
            &lab.place(Place::Record),
            printable_json(&serde_json::to_string_pretty(self)?).as_bytes(),
        )
    }

    /// Where a process serves metrics, if it does.
    pub(crate) fn metrics_of(&self, process: &str) -> Option<SocketAddr> {
        let (first, _) = self.metrics?;
        let place = match process {
            SM => 0,
            PM => 1,
            _ => {
                if let Some(standby) = (0..self.standbys.len()).find(|at| standby_name(*at) == process) {
                    let agents = u16::try_from(self.agents.len() + standby).ok()?;
                    return Some(loopback(first.checked_add(agents.checked_add(MANAGER_PORTS)?)?));
                }
                let agent = self.agents.iter().position(|agent| agent.name == process)?;
                u16::try_from(agent).ok()?.checked_add(MANAGER_PORTS)?
            }
        };
        Some(loopback(first.checked_add(place)?))
    }

    /// The subnet managers by their names as processes, the first one first.
    pub(crate) fn subnet_managers(&self) -> impl Iterator<Item = (String, &SmPlace)> {
        let first = self.sm.iter().map(|place| (SM.to_owned(), place));
        let standbys = self.standbys.iter().enumerate();
        first.chain(standbys.map(|(at, place)| (standby_name(at), place)))
    }

    /// The agent that runs a node, and the node.
    pub(crate) fn device(&self, node: Guid) -> Option<(&AgentRecord, &DeviceRecord)> {
        self.agents.iter().find_map(|agent| {
            agent.devices.iter().find(|device| device.guid == node).map(|device| (agent, device))
        })
    }
}
