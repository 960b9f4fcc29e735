//! What the user wants of a laboratory.

use std::collections::BTreeSet;
use std::path::Path;

use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_machine::Time;
use weft_topology::{Adapter, Fabric, NodeIndex, PortRef, Virtualised};
use weft_wire::MKey;

use super::hosts::Hosts;
use crate::cli::{Attach, DeviceArgs, IbsimPace, Pack, PlanArgs};
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
    /// Where the cabling comes from, for people.
    pub(crate) topology: String,
    /// The subnet manager, if there is to be one.
    pub(crate) sm: Option<WantedSm>,
    /// Where subnet managers stand by, with the first one's options but a lower priority.
    pub(crate) standbys: Vec<PortRef>,
    /// The performance manager, if there is to be one.
    pub(crate) pm: Option<WantedPm>,
    /// The M_Key that its ports ask for, whoever manages them.
    pub(crate) m_key: MKey,
    /// Whether every process serves metrics: the first of the TCP ports, 0 for ports that are free.
    pub(crate) metrics: Option<u16>,
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
        (sm_at, pm_at): (Option<PortRef>, Option<PortRef>),
        standbys: Vec<PortRef>,
        (file, args): (&Path, &PlanArgs),
    ) -> anyhow::Result<Self> {
        let Virtualised { fabric, adapters } = cabling;
        let sm = |at| -> anyhow::Result<WantedSm> {
            let mut options = sm_options(&args.sm, Some(fabric), true)?;
            if args.vfs.is_dynamic() {
                options.lids = weft_sm::LidScheme::Dynamic;
            }
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
            m_key,
            pm: pm_at.map(pm),
            metrics: args.metrics,
            topology: file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
            sm: sm_at.map(sm).transpose()?,
            standbys,
            device,
            hosts: None,
            cables: (Time::ZERO, Vec::new()),
            pack: args.pack,
            udp_port: args.udp_port,
            link_timeout_ms: args.link_timeout_ms,
            hosted: None,
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

    /// How long the cable at a port takes, whichever of its ends that is.
    pub(crate) fn cable_delay(&self, port: PortRef) -> Time {
        let (usual, others) = &self.cables;
        let is_it = |end: &PortRef| *end == port || self.fabric.peer(*end) == Some(port);
        others.iter().find(|(end, _)| is_it(end)).map_or(*usual, |(_, delay)| *delay)
    }
}

/// What the command line says, as the devices' options.
fn device_options(args: &DeviceArgs) -> DeviceOptions {
    DeviceOptions {
        vl15_buffer_packets: args.vl15_buffer,
        smp_processing: Time::from_micros(args.smp_processing_us),
        trap_interval: Time::from_millis(args.trap_interval_ms),
        trap_limit: args.trap_limit,
        ..DeviceOptions::default()
    }
}
