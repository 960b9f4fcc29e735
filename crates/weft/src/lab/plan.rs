//! From a cabling to what each process of the laboratory is told.

use std::path::Path;

use anyhow::Context;
use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_link::Destination;
use weft_machine::Time;
use weft_topology::{Fabric, PortRef};
use weft_wire::MKey;

use super::bundle::{self, Bundle};
use super::folder;
use super::groups::Groups;
use super::issue;
use super::keys::Keys;
use super::names::{IBSIM, PM};
use super::parts;
use super::places::{Hosts, Places};
use super::record::{AgentRecord, DeviceRecord, LabRecord, PmPlace, SmPlace};
use super::{remote, silence};
use crate::cli::{Attach, DeviceArgs, IbsimPace, Pack, PlanArgs, SmpRouting};
use crate::ibsim_process::{IbsimPart, Listen};
use crate::manager::QuicPart;
use crate::sm_options::sm_options;

/// A laboratory as it is wanted.
pub(crate) struct Wanted<'a> {
    /// The cabling.
    pub(crate) fabric: &'a Fabric,
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
        fabric: &'a Fabric,
        (sm_at, pm_at): (Option<PortRef>, Option<PortRef>),
        standbys: Vec<PortRef>,
        (file, args): (&Path, &PlanArgs),
    ) -> anyhow::Result<Self> {
        let sm = |at| -> anyhow::Result<WantedSm> {
            let mut options = sm_options(&args.sm, Some(fabric), true)?;
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
    /// How long the cable at a port takes, whichever of its ends that is.
    pub(crate) fn cable_delay(&self, port: PortRef) -> Time {
        let (usual, others) = &self.cables;
        let is_it = |end: &PortRef| *end == port || self.fabric.peer(*end) == Some(port);
        others.iter().find(|(end, _)| is_it(end)).map_or(*usual, |(_, delay)| *delay)
    }
}

/// Writes the bundle of a laboratory of that name into a folder that is there.
pub(crate) fn write(
    bundle: &Bundle,
    lab: &str,
    wanted: &Wanted<'_>,
    (groups, places): (&Groups, &Places),
) -> anyhow::Result<LabRecord> {
    let fabric = wanted.fabric;
    let sm = |sm: &WantedSm, at| sm_place(fabric, at, &sm.options, groups);
    let cables = || groups.cables_between(fabric);
    let record = LabRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        lab: lab.to_owned(),
        topology: wanted.topology.clone(),
        agents: agent_records(fabric, groups, places),
        sm: wanted.sm.as_ref().map(|wanted| sm(wanted, wanted.at)),
        standbys: wanted
            .sm
            .iter()
            .flat_map(|first| wanted.standbys.iter().map(|at| sm(first, *at)))
            .collect(),
        pm: wanted.pm.as_ref().map(|pm| pm_place(fabric, pm.at, groups)),
        metrics: places.metrics,
        ibsim: wanted.ibsim.as_ref().map(|(listen, _)| listen.clone()),
        udp_ports: places.udp,
        link_timeout_ms: wanted.link_timeout_ms.unwrap_or_else(|| silence::link_timeout_ms(cables())),
    };
    bundle.make_folders()?;
    record.store(bundle)?;
    folder::write(&bundle.topology(), fabric.write_ibnetdiscover().as_bytes())?;
    let issuer = issue::Issuer::begin(bundle, lab)?;
    for agent in 0..record.agents.len() {
        let part = parts::agent(agent, &record, wanted, (groups, places))?;
        bundle::store(&bundle.agent(&part.name), &part)?;
        issuer.issue_agent(&part)?;
    }
    write_managers(bundle, &record, wanted)?;
    issuer.issue_roles(&record)?;
    Ok(record)
}

/// Writes what the processes are told that are no agents.
fn write_managers(bundle: &Bundle, record: &LabRecord, wanted: &Wanted<'_>) -> anyhow::Result<()> {
    let way = |agent: &str| match wanted.attach {
        Attach::Unix => Ok(None),
        Attach::Quic => quic_part(bundle, record, agent).map(Some),
    };
    if let Some(sm) = &wanted.sm {
        for (name, place) in record.subnet_managers() {
            let part = parts::sm(record, (&name, place), way(&place.agent)?, sm);
            bundle::store(&bundle.manager(&name), &part)?;
        }
    }
    if let (Some(place), Some(pm)) = (&record.pm, &wanted.pm) {
        bundle::store(&bundle.manager(PM), &parts::pm(record, place, way(&place.agent)?, pm))?;
    }
    if let Some((listen, pace)) = &wanted.ibsim {
        bundle::store(&bundle.manager(IBSIM), &IbsimPart::new(listen.clone(), pace))?;
    }
    let options = wanted.sm.as_ref().map_or_else(weft_sm::Options::default, |sm| sm.options.clone());
    bundle::store(&bundle.keys(), &Keys { m_key: wanted.m_key, ..Keys::of(&options) })
}

/// Where a manager finds an agent over the network. What the agent is told has been written.
fn quic_part(bundle: &Bundle, record: &LabRecord, agent: &str) -> anyhow::Result<QuicPart> {
    let agent = record.agents.iter().find(|known| known.name == agent).context("an agent without a place")?;
    let Destination { address, node } = remote::destination(bundle, agent)?;
    Ok(QuicPart { address, node })
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

/// The name of an agent, by its place in the record.
pub(crate) fn agent_name(index: usize) -> String {
    format!("a{index:04}")
}

fn agent_records(fabric: &Fabric, groups: &Groups, places: &Places) -> Vec<AgentRecord> {
    let agents = groups.members().iter().zip(&places.agents).enumerate();
    agents
        .map(|(index, (nodes, place))| AgentRecord {
            name: agent_name(index),
            address: place.address.clone(),
            devices: nodes
                .iter()
                .map(|index| {
                    let node = fabric.node(*index);
                    DeviceRecord {
                        label: fabric.label(*index),
                        guid: node.guid,
                        id: node.id.clone(),
                        description: node.description.clone(),
                        switch: node.is_switch(),
                    }
                })
                .collect(),
        })
        .collect()
}

fn sm_place(fabric: &Fabric, at: PortRef, options: &weft_sm::Options, groups: &Groups) -> SmPlace {
    SmPlace {
        agent: agent_name(groups.agent_of(at.node)),
        node: fabric.node(at.node).guid,
        port: at.port,
        smp_routing: match options.smp_routing {
            weft_sm::SmpRouting::Directed => SmpRouting::Directed,
            weft_sm::SmpRouting::Lid => SmpRouting::Lid,
        },
    }
}

fn pm_place(fabric: &Fabric, at: PortRef, groups: &Groups) -> PmPlace {
    PmPlace { agent: agent_name(groups.agent_of(at.node)), node: fabric.node(at.node).guid, port: at.port }
}
