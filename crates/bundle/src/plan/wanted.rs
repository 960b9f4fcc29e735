//! The laboratory that a user wants: its cabling, its managers and their ports, and the options of all of them.

use std::collections::{BTreeMap, BTreeSet};

use weft_device::DeviceOptions;
pub use weft_host::stack::{Guids, Notices, StackOptions};
use weft_link::PeerAddress;
use weft_machine::Time;
use weft_topology::{Adapter, Fabric, NodeIndex, PortRef};
use weft_wire::{GidPrefix, MKey, SmKey};

use crate::config::managers::IbsimPart;
use crate::names::SM;
use crate::place::groups::Pack;
use crate::place::hosts::Hosts;
use crate::record::standby_name;

/// A way from a manager to its agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// By the agent's socket.
    #[default]
    Unix,
    /// At the UDP port of the agent's links.
    Quic,
}

/// A laboratory as it is wanted.
pub struct Wanted<'a> {
    /// The cabling.
    pub fabric: &'a Fabric,
    /// Its virtualised adapters, each of which is in one agent.
    pub adapters: &'a [Adapter],
    /// Whether the slots of virtual functions are empty at first.
    pub empty_slots: bool,
    /// Whether programs at virtual functions may send SMPs.
    pub slots_qp0: bool,
    /// Where the cabling comes from, for people.
    pub topology: String,
    /// The subnet manager, if there is to be one.
    pub sm: Option<WantedSm>,
    /// The other subnet managers, with the first one's options.
    pub standbys: Vec<OtherSm>,
    /// Unmodified OpenSM, where it is to manage the subnet.
    pub opensms: Vec<WantedOpensm>,
    /// Performance managers, if there are to be any, each in another piece of the fabric.
    pub pms: Vec<WantedPm>,
    /// The ports of VM managers, if there are to be any, each in another piece of the fabric.
    pub vmms: Vec<PortRef>,
    /// The M_Key that its ports ask for, whoever manages them.
    pub m_key: MKey,
    /// The key by which subnet administration trusts a request.
    pub sa_key: SmKey,
    /// Whether every process serves metrics: the first of the TCP ports, 0 for ports that are free.
    pub metrics: Option<u16>,
    /// The TCP port at which every process serves metrics, where each has a host of its own.
    pub metrics_port: Option<u16>,
    /// What every device is made with.
    pub device: DeviceOptions,
    /// What the hosts behind adapters are like; none has one without it.
    pub hosts: Option<StackOptions>,
    /// What a host is like that begins with its first flow; the stack's own defaults without it.
    pub later_hosts: Option<StackOptions>,
    /// How long a cable takes, in wall-clock time, and cables that take another time, by one of their ends.
    pub cables: (Time, Vec<(PortRef, Time)>),
    /// Devices per agent.
    pub pack: Pack,
    /// The first of the UDP ports.
    pub udp_port: Option<u16>,
    /// The link timeout of all agents; by the number of their cables without it.
    pub link_timeout_ms: Option<u64>,
    /// The hosts that agents run on; this machine without it.
    pub hosted: Option<Hosts>,
    /// Where processes that are no agents are found over the network, where they are: by name.
    pub doors: BTreeMap<String, PeerAddress>,
    /// How managers reach their agents.
    pub attach: Attach,
    /// Where programs under ibsim's library find it.
    pub ibsim: Option<IbsimPart>,
}

/// A subnet manager as it is wanted.
pub struct WantedSm {
    /// The port that it is attached to.
    pub at: PortRef,
    /// Its options.
    pub options: weft_sm::Options,
    /// The text of the partitions file that the partitions in them are from, if they are from one.
    pub partitions: Option<String>,
}

/// A subnet manager beside the first: one that stands by, or the first of another piece of the fabric.
#[derive(Clone, Copy, Debug)]
pub struct OtherSm {
    /// The port that it is attached to.
    pub at: PortRef,
    /// Whether it is the first of its piece; else it has a lower priority.
    pub leads: bool,
    /// The prefix of its subnet, if that is not the first one's.
    pub subnet_prefix: Option<GidPrefix>,
}

/// Unmodified OpenSM as it is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedOpensm {
    /// The port that it is attached to.
    pub at: PortRef,
    /// Its priority in elections: the first of a piece has a higher one.
    pub priority: u8,
    /// The prefix of its subnet, if that is not the first one's.
    pub subnet_prefix: Option<GidPrefix>,
    /// Milliseconds between two polls of one that stands by, and how many more it tolerates without an answer.
    pub polls: (u64, u32),
}

/// A performance manager as it is wanted.
pub struct WantedPm {
    /// The port that it is attached to.
    pub at: PortRef,
    /// Its options.
    pub options: weft_pm::Options,
}

impl<'a> Wanted<'a> {
    /// Whether GUIDs stay with virtual functions, so that machines are found by name.
    pub fn guids_stay(&self) -> bool {
        self.hosts.as_ref().is_some_and(|stack| stack.guids == Guids::Dynamic)
    }

    /// The nodes of a cabling and nothing beside them, with the usual options: an agent for each device, and no manager.
    pub fn bare(fabric: &'a Fabric, topology: impl Into<String>) -> Self {
        Self {
            fabric,
            adapters: &[],
            empty_slots: false,
            slots_qp0: true,
            topology: topology.into(),
            sm: None,
            standbys: Vec::new(),
            opensms: Vec::new(),
            pms: Vec::new(),
            vmms: Vec::new(),
            m_key: MKey(0),
            sa_key: SmKey(1),
            metrics: None,
            metrics_port: None,
            device: DeviceOptions::default(),
            hosts: None,
            later_hosts: None,
            cables: (Time::ZERO, Vec::new()),
            pack: Pack::Devices(1),
            udp_port: None,
            link_timeout_ms: None,
            hosted: None,
            doors: BTreeMap::new(),
            attach: Attach::Unix,
            ibsim: None,
        }
    }
}

impl Wanted<'_> {
    /// The virtual functions, which are slots of virtual machines.
    pub fn slots(&self) -> BTreeSet<NodeIndex> {
        self.adapters.iter().flat_map(|adapter| adapter.vfs.iter().copied()).collect()
    }

    /// The subnet managers of weft's that begin their subnets: their names as processes, and their ports.
    pub fn leaders(&self) -> Vec<(String, PortRef)> {
        let first = self.sm.iter().map(|sm| (SM.to_owned(), sm.at));
        let others = self.standbys.iter().enumerate().filter(|(_, other)| other.leads);
        first.chain(others.map(|(at, other)| (standby_name(at), other.at))).collect()
    }

    /// How long the cable at a port takes, whichever of its ends that is.
    pub fn cable_delay(&self, port: PortRef) -> Time {
        let (usual, others) = &self.cables;
        let is_it = |end: &PortRef| *end == port || self.fabric.peer(*end) == Some(port);
        others.iter().find(|(end, _)| is_it(end)).map_or(*usual, |(_, delay)| *delay)
    }
}

/// A random key: 0 shows no key, and 1 is everyone's.
pub fn random_sa_key() -> SmKey {
    SmKey(rand::random_range(2..=u64::MAX))
}
