//! The configuration of an agent: its devices, their cables, its slots of virtual machines, and where it listens. One file of a bundle;
//! it holds no secret and no path. [`AgentPart::check`] refuses what the types cannot.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use weft_device::DeviceConfig;
use weft_host::stack::StackOptions;
use weft_link::{CableEnd, PeerAddress};
use weft_wire::{Guid, NodeType};

/// The liveness time of links when nothing else is said.
pub const LINK_TIMEOUT_MS: u64 = 2000;

/// An agent's configuration, however it is started and wherever: it holds no secret and no path.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPart {
    /// The agent's name in its laboratory.
    pub name: String,
    /// The laboratory's name; peers of another are refused.
    pub lab: String,
    /// The devices it runs.
    pub devices: Vec<DeviceConfig>,
    /// Those of its devices that are slots of virtual machines.
    #[serde(default)]
    pub slots: Vec<SlotConfig>,
    /// The cables of its devices. One whose two ends are both here needs to be listed once only.
    pub cables: Vec<CableConfig>,
    /// Where it listens for its peers.
    pub bind: SocketAddr,
    /// How long a link may be silent before it is down. The same in the whole laboratory. A peer that dies without
    /// a word is noticed when between a half and the whole of this has passed.
    #[serde(default = "link_timeout_ms")]
    pub link_timeout_ms: u64,
    /// What the hosts behind the ports of its adapters are like; there are none without it.
    #[serde(default)]
    pub hosts: Option<StackOptions>,
    /// What a host is like that begins with its first flow; the stack's own defaults without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later_hosts: Option<StackOptions>,
    /// Where it serves `/metrics` for Prometheus; nowhere without it.
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
    /// The SHA-256, in hexadecimal, of the token that it asks for there where that is not on loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_token: Option<String>,
}

fn link_timeout_ms() -> u64 {
    LINK_TIMEOUT_MS
}

/// A device that is a slot of virtual machines: a virtual function of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotConfig {
    /// The NodeGUID of the device, which has one port.
    pub guid: Guid,
    /// Whether it is empty at first, as with dynamic LIDs; otherwise it is plugged in with the device's own identity.
    #[serde(default)]
    pub empty: bool,
}

/// One cable, seen from one of the agent's devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CableConfig {
    /// The end at a device of this agent.
    pub local: CableEnd,
    /// The other end.
    pub remote: CableEnd,
    /// Where the other end's agent listens; `None` when it is this agent.
    pub remote_addr: Option<PeerAddress>,
    /// How long its data lanes take from end to end, in nanoseconds of wall-clock time, beside what QUIC takes.
    #[serde(default)]
    pub delay_ns: u64,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No devices.
    #[error("the agent runs no device")]
    NoDevice,
    /// Two devices with one GUID.
    #[error("two devices have the GUID {0}")]
    DuplicateGuid(Guid),
    /// A cable's local end is at no port of the agent's devices.
    #[error("{0} is no port of this agent's devices")]
    NoSuchPort(CableEnd),
    /// Two cables at one port.
    #[error("two cables end at {0}")]
    CabledTwice(CableEnd),
    /// A cable from a port to itself.
    #[error("{0} is cabled to itself")]
    CabledToItself(CableEnd),
    /// A slot that is no device of the agent, or one with more than one port.
    #[error("slot {0} is no adapter of this agent with one port")]
    NoSuchSlot(Guid),
    /// A link timeout so short that no link could stay up.
    #[error("a link timeout of {0} ms is too short, 100 ms is the least")]
    LinkTimeout(u64),
}

impl AgentPart {
    /// A device with a cable to another agent, if there is one: its certificate names all of those.
    pub fn facing(&self) -> Option<Guid> {
        self.cables.iter().find(|cable| cable.remote_addr.is_some()).map(|cable| cable.local.guid)
    }

    /// Checks what the types cannot say.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.devices.is_empty() {
            return Err(ConfigError::NoDevice);
        }
        if self.link_timeout_ms < 100 {
            return Err(ConfigError::LinkTimeout(self.link_timeout_ms));
        }
        let mut guids = BTreeSet::new();
        for device in &self.devices {
            if !guids.insert(device.guid) {
                return Err(ConfigError::DuplicateGuid(device.guid));
            }
        }
        let is_function = |device: &&DeviceConfig| device.kind != NodeType::Switch && device.ports.len() == 1;
        let functions: BTreeSet<Guid> =
            self.devices.iter().filter(is_function).map(|device| device.guid).collect();
        if let Some(slot) = self.slots.iter().find(|slot| !functions.contains(&slot.guid)) {
            return Err(ConfigError::NoSuchSlot(slot.guid));
        }
        self.check_cables()
    }

    fn check_cables(&self) -> Result<(), ConfigError> {
        let mut taken = BTreeSet::new();
        for cable in self.distinct_cables() {
            if cable.local == cable.remote {
                return Err(ConfigError::CabledToItself(cable.local));
            }
            let far_end = cable.remote_addr.is_none().then_some(cable.remote);
            for end in std::iter::once(cable.local).chain(far_end) {
                if !self.has_port(end) {
                    return Err(ConfigError::NoSuchPort(end));
                }
                if !taken.insert(end) {
                    return Err(ConfigError::CabledTwice(end));
                }
            }
        }
        Ok(())
    }

    /// The cables without those that are listed from their second end too.
    pub fn distinct_cables(&self) -> Vec<CableConfig> {
        let inside = |cable: &&CableConfig| cable.remote_addr.is_none();
        let listed: BTreeSet<_> =
            self.cables.iter().filter(inside).map(|cable| (cable.local, cable.remote)).collect();
        let mirrored = |cable: &CableConfig| {
            cable.remote_addr.is_none()
                && cable.local > cable.remote
                && listed.contains(&(cable.remote, cable.local))
        };
        self.cables.iter().filter(|cable| !mirrored(cable)).cloned().collect()
    }

    fn has_port(&self, end: CableEnd) -> bool {
        let device = self.devices.iter().find(|device| device.guid == end.guid);
        device.is_some_and(|device| (1..=device.ports.len()).contains(&usize::from(end.port.0)))
    }
}
