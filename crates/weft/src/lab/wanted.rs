//! What the user wants of a laboratory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_link::PeerAddress;
use weft_machine::Time;
use weft_sm::LidScheme;
use weft_topology::{Adapter, Fabric, NodeIndex, PortRef, Virtualised};
use weft_wire::{GidPrefix, MKey, SmKey};

use super::hosts::Hosts;
use super::names::SM;
use super::record::standby_name;
use crate::cli::{Attach, DeviceArgs, IbsimPace, Key, Pack, PlanArgs, VfQp0};
use crate::failure::Failure;
use crate::ibsim_process::Listen;
use crate::sm_options::sm_options;

/// A laboratory as it is wanted.
pub(crate) struct Wanted<'a> {
    /// The cabling.
    pub(crate) fabric: &'a Fabric,
    /// Its virtualised adapters, each of which is in one agent.
    pub(crate) adapters: &'a [Adapter],
    /// Whether the slots of virtual functions are empty at first.
    pub(crate) empty_slots: bool,
    /// Whether programs at virtual functions may send SMPs.
    pub(crate) slots_qp0: bool,
    /// Where the cabling comes from, for people.
    pub(crate) topology: String,
    /// The subnet manager, if there is to be one.
    pub(crate) sm: Option<WantedSm>,
    /// The other subnet managers, with the first one's options.
    pub(crate) standbys: Vec<OtherSm>,
    /// Unmodified OpenSM, where it is to manage the subnet.
    pub(crate) opensms: Vec<WantedOpensm>,
    /// Performance managers, if there are to be any, each in another piece of the fabric.
    pub(crate) pms: Vec<WantedPm>,
    /// The ports of VM managers, if there are to be any, each in another piece of the fabric.
    pub(crate) vmms: Vec<PortRef>,
    /// The M_Key that its ports ask for, whoever manages them.
    pub(crate) m_key: MKey,
    /// The key by which subnet administration trusts a request.
    pub(crate) sa_key: SmKey,
    /// Whether every process serves metrics: the first of the TCP ports, 0 for ports that are free.
    pub(crate) metrics: Option<u16>,
    /// The TCP port at which every process serves metrics, where each has a host of its own.
    pub(crate) metrics_port: Option<u16>,
    /// What every device is made with.
    pub(crate) device: DeviceOptions,
    /// What the hosts behind adapters are like; none has one without it.
    pub(crate) hosts: Option<StackOptions>,
    /// How long a cable takes, in wall-clock time, and cables that take another time, by one of their ends.
    pub(crate) cables: (Time, Vec<(PortRef, Time)>),
    /// Devices per agent.
    pub(crate) pack: Pack,
    /// The first of the UDP ports.
    pub(crate) udp_port: Option<u16>,
    /// The link timeout of all agents; by the number of their cables without it.
    pub(crate) link_timeout_ms: Option<u64>,
    /// The hosts that agents run on; this machine without it.
    pub(crate) hosted: Option<Hosts>,
    /// Where processes that are no agents are found over the network, where they are: by name.
    pub(crate) doors: BTreeMap<String, PeerAddress>,
    /// How managers reach their agents.
    pub(crate) attach: Attach,
    /// Where programs under ibsim's library find it.
    pub(crate) ibsim: Option<(Listen, IbsimPace)>,
}

/// A subnet manager as it is wanted.
pub(crate) struct WantedSm {
    /// The port that it is attached to.
    pub(crate) at: PortRef,
    /// What it is told.
    pub(crate) options: weft_sm::Options,
}

/// A subnet manager beside the first: one that stands by, or the first of another piece of the fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherSm {
    /// The port that it is attached to.
    pub(crate) at: PortRef,
    /// Whether it is the first of its piece; else it has a lower priority.
    pub(crate) leads: bool,
    /// The prefix of its subnet, if that is not the first one's.
    pub(crate) subnet_prefix: Option<GidPrefix>,
}

/// Unmodified OpenSM as it is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedOpensm {
    /// The port that it is attached to.
    pub(crate) at: PortRef,
    /// Its priority in elections: the first of a piece has a higher one.
    pub(crate) priority: u8,
    /// The prefix of its subnet, if that is not the first one's.
    pub(crate) subnet_prefix: Option<GidPrefix>,
    /// Milliseconds between two polls of one that stands by, and how many more it tolerates without an answer.
    pub(crate) polls: (u64, u32),
}

/// A performance manager as it is wanted.
pub(crate) struct WantedPm {
    /// The port that it is attached to.
    pub(crate) at: PortRef,
    /// What it is told.
    pub(crate) options: weft_pm::Options,
}

impl<'a> Wanted<'a> {
    /// What the command line asks for.
    pub(crate) fn by(
        cabling: &'a Virtualised,
        (sm_at, pms_at, vmms): (Option<PortRef>, &[PortRef], Vec<PortRef>),
        standbys: Vec<OtherSm>,
        (file, args): (&Path, &PlanArgs),
    ) -> anyhow::Result<Self> {
        let Virtualised { fabric, adapters } = cabling;
        let sa_key = self::sa_key(args)?;
        let sm = |at| -> anyhow::Result<WantedSm> {
            let lids = if args.vfs.is_dynamic() { LidScheme::Dynamic } else { LidScheme::Prepopulated };
            let mut options = sm_options(&args.sm, Some(fabric), (true, lids))?;
            options.sa_key = sa_key;
            if args.standby > 0 && args.sm.election.priority.is_none() {
                options.priority = 1;
            }
            Ok(WantedSm { at, options })
        };
        let device = device_options(&args.devices);
        let m_key = MKey(args.sm.keys.m_key.0);
        let pm = |at| {
            let options = weft_pm::Options { m_key, ..args.pm.options(device.data.dilation) };
            WantedPm { at, options }
        };
        Ok(Self {
            fabric,
            adapters,
            empty_slots: args.vfs.is_dynamic(),
            slots_qp0: args.vfs.vf_qp0 == VfQp0::Allow,
            m_key,
            sa_key,
            vmms,
            pms: pms_at.iter().copied().map(pm).collect(),
            metrics: args.metrics,
            metrics_port: None,
            topology: file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
            sm: sm_at.map(sm).transpose()?,
            standbys,
            opensms: Vec::new(),
            device,
            hosts: None,
            cables: (Time::ZERO, Vec::new()),
            pack: args.pack,
            udp_port: args.udp_port,
            link_timeout_ms: args.link_timeout_ms,
            hosted: None,
            doors: BTreeMap::new(),
            attach: args.attach_managers,
            ibsim: args.ibsim.listen().map(|listen| (listen, args.ibsim.pace.clone())),
        })
    }
}

impl Wanted<'_> {
    /// The virtual functions, which are slots of virtual machines.
    pub(crate) fn slots(&self) -> BTreeSet<NodeIndex> {
        self.adapters.iter().flat_map(|adapter| adapter.vfs.iter().copied()).collect()
    }

    /// The subnet managers of weft's that begin their subnets: their names as processes, and their ports.
    pub(crate) fn leaders(&self) -> Vec<(String, PortRef)> {
        let first = self.sm.iter().map(|sm| (SM.to_owned(), sm.at));
        let others = self.standbys.iter().enumerate().filter(|(_, other)| other.leads);
        first.chain(others.map(|(at, other)| (standby_name(at), other.at))).collect()
    }

    /// How long the cable at a port takes, whichever of its ends that is.
    pub(crate) fn cable_delay(&self, port: PortRef) -> Time {
        let (usual, others) = &self.cables;
        let is_it = |end: &PortRef| *end == port || self.fabric.peer(*end) == Some(port);
        others.iter().find(|(end, _)| is_it(end)).map_or(*usual, |(_, delay)| *delay)
    }
}

/// The key of subnet administration: a random one where virtual machines may move, since 1 is everyone's.
fn sa_key(args: &PlanArgs) -> anyhow::Result<SmKey> {
    match (args.sm.keys.sa_key, args.vfs.is_any()) {
        (Some(Key(1)), true) => Err(Failure::bad_input(
            "--sa-key 1 is known to everyone, and whoever has the key can move virtual machines",
        )
        .hint("leave out --sa-key: with --vfs each laboratory gets a random one")
        .into()),
        (Some(Key(key)), _) => Ok(SmKey(key)),
        (None, true) => Ok(random_sa_key()),
        (None, false) => Ok(SmKey(1)),
    }
}

/// A random key: 0 shows no key, and 1 is everyone's.
pub(crate) fn random_sa_key() -> SmKey {
    SmKey(rand::random_range(2..=u64::MAX))
}

/// What the command line says, as the devices' options.
fn device_options(args: &DeviceArgs) -> DeviceOptions {
    DeviceOptions {
        vl15_buffer_packets: args.vl15_buffer,
        smp_processing: Time::from_micros(args.smp_processing_us),
        trap_interval: Time::from_millis(args.trap_interval_ms),
        trap_limit: args.trap_limit,
        partition_cap: args.p_key_capacity,
        ..DeviceOptions::default()
    }
}
