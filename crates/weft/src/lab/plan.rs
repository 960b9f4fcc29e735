//! From a cabling to what each process of the laboratory is told.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use weft_agent::{AgentConfig, CableConfig};
use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_link::{Authority, CableEnd};
use weft_machine::Time;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, MKey, printable_json};

use super::folder::{self, Base, LabFolder, Place};
use super::names::{PM, SM};
use super::ports::{self, Claim, Transport};
use super::record::{AgentRecord, DeviceRecord, LabRecord, MANAGER_PORTS, PmPlace, SmPlace};
use super::silence;
use crate::cli::{DeviceArgs, IbsimPace, Pack, SmpRouting, UpArgs};
use crate::failure::Failure;
use crate::ibsim_process::{IbsimConfig, Listen};
use crate::manager::{self, Seat};
use crate::pm_process::PmConfig;
use crate::sm_options::sm_options;
use crate::sm_process::SmConfig;

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
    /// The folder in which every agent records what it is fed.
    pub(crate) record: Option<PathBuf>,
    /// Where programs under ibsim's library find it.
    pub(crate) ibsim: Option<(Listen, IbsimPace)>,
}

/// A subnet manager as it is wanted.
pub(crate) struct WantedSm {
    /// The port that it is attached to.
    pub(crate) at: PortRef,
    /// What it is told.
    pub(crate) options: weft_sm::Options,
    /// Where it keeps LIDs; by default in the laboratory's folder.
    pub(crate) guid2lid: Option<PathBuf>,
}

/// A performance manager as it is wanted.
pub(crate) struct WantedPm {
    /// The port that it is attached to.
    pub(crate) at: PortRef,
    /// What it is told.
    pub(crate) options: weft_pm::Options,
}

impl<'a> Wanted<'a> {
    /// What `up` asks for.
    pub(crate) fn by_up(
        fabric: &'a Fabric,
        (sm_at, pm_at): (Option<PortRef>, Option<PortRef>),
        standbys: Vec<PortRef>,
        args: &UpArgs,
    ) -> anyhow::Result<Self> {
        let sm = |at| -> anyhow::Result<WantedSm> {
            let guid2lid = args.guid2lid.as_ref().map(|path| {
                std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
            });
            let mut options = sm_options(&args.sm, Some(fabric), true)?;
            if args.standby > 0 && args.sm.election.priority.is_none() {
                options.priority = 1;
            }
            Ok(WantedSm { at, options, guid2lid: guid2lid.transpose()? })
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
            topology: args.file.display().to_string(),
            sm: sm_at.map(sm).transpose()?,
            standbys,
            device,
            hosts: None,
            cables: (Time::ZERO, Vec::new()),
            pack: args.pack,
            udp_port: args.udp_port,
            link_timeout_ms: args.link_timeout_ms,
            record: args.record.clone(),
            ibsim: args.ibsim.listen().map(|listen| (listen, args.ibsim.pace.clone())),
        })
    }
}

impl Wanted<'_> {
    /// How long the cable at a port takes, whichever of its ends that is.
    fn cable_delay(&self, port: PortRef) -> Time {
        let (usual, others) = &self.cables;
        let is_it = |end: &PortRef| *end == port || self.fabric.peer(*end) == Some(port);
        others.iter().find(|(end, _)| is_it(end)).map_or(*usual, |(_, delay)| *delay)
    }
}

/// Writes everything that the processes of a laboratory read, and its record. The ports stay claimed until the
/// claim is dropped.
pub(crate) fn write(
    base: &Base,
    unfinished: &LabFolder,
    wanted: &Wanted<'_>,
) -> anyhow::Result<(LabRecord, Vec<Claim>)> {
    let fabric = wanted.fabric;
    let nodes = fabric.nodes().len();
    let per_agent = match wanted.pack {
        Pack::All => nodes,
        Pack::Devices(devices) => devices.min(nodes),
    };
    let agents = nodes.div_ceil(per_agent);
    let count = u16::try_from(agents).context("more agents than ports")?;
    let mut claims = vec![ports::claim(base, Transport::Udp, count, wanted.udp_port)?];
    let first = claims[0].first;
    let metrics = match wanted.metrics {
        Some(pinned) => {
            let standbys = u16::try_from(wanted.standbys.len()).unwrap_or(u16::MAX);
            let count = count.saturating_add(MANAGER_PORTS).saturating_add(standbys);
            claims.push(ports::claim(base, Transport::Tcp, count, Some(pinned).filter(|port| *port != 0))?);
            Some((claims[1].first, count))
        }
        None => None,
    };
    let record = LabRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        topology: wanted.topology.clone(),
        agents: agent_records(fabric, per_agent, first),
        sm: wanted.sm.as_ref().map(|sm| sm_place(fabric, sm.at, &sm.options, per_agent)),
        standbys: wanted
            .sm
            .iter()
            .flat_map(|sm| wanted.standbys.iter().map(|at| sm_place(fabric, *at, &sm.options, per_agent)))
            .collect(),
        pm: wanted.pm.as_ref().map(|pm| pm_place(fabric, pm.at, per_agent)),
        metrics,
        ibsim: wanted.ibsim.as_ref().map(|(listen, _)| listen.clone()),
        udp_ports: (first, count),
        link_timeout_ms: wanted
            .link_timeout_ms
            .unwrap_or_else(|| silence::link_timeout_ms(fabric, per_agent)),
    };
    record.store(unfinished)?;
    unfinished.keep_m_key(wanted.m_key)?;
    folder::write(&unfinished.place(Place::Topology), fabric.write_ibnetdiscover().as_bytes())?;
    // The paths that processes are told are those of the folder under its real name.
    let lab = base.lab(unfinished.name())?;
    write_agents(unfinished, &lab, &record, wanted)?;
    if let Some(sm) = &wanted.sm {
        for (name, place) in record.subnet_managers() {
            write_sm((unfinished, &lab), (&record, &name, place), sm)?;
        }
    }
    if let (Some(place), Some(pm)) = (&record.pm, &wanted.pm) {
        write_pm((unfinished, &lab), (&record, place), pm)?;
    }
    if record.metrics.is_some() {
        let scrape = super::scrape::prometheus_yml(lab.name(), &record);
        folder::write(&unfinished.place(Place::Prometheus), scrape.as_bytes())?;
    }
    if let Some((listen, pace)) = &wanted.ibsim {
        let config = ibsim_config(&lab, listen.clone(), pace);
        folder::write(&unfinished.place(Place::IbsimConfig), &serde_json::to_vec_pretty(&config)?)?;
        folder::write(&unfinished.place(Place::IbsimLock), b"")?;
    }
    Ok((record, claims))
}

/// Writes what the agents are told, their certificates among it, and makes their locks.
fn write_agents(
    unfinished: &LabFolder,
    lab: &LabFolder,
    record: &LabRecord,
    wanted: &Wanted<'_>,
) -> anyhow::Result<()> {
    let fabric = wanted.fabric;
    let authority = Authority::new(lab.name()).context("cannot make the laboratory's authority")?;
    let per_agent = record.agents.first().map_or(1, |agent| agent.devices.len());
    let mut start = 0;
    for agent in &record.agents {
        let indices = start..start + agent.devices.len();
        start = indices.end;
        let device = |index| weft_sim::device_config(fabric, NodeIndex(index as u32), &wanted.device);
        let own = |node: NodeIndex| indices.contains(&node.index());
        let mut cables = Vec::new();
        for (index, node) in fabric.iter().filter(|(index, _)| own(*index)) {
            for (port, peer) in node.cabled_ports() {
                let remote_addr = match own(peer.node) {
                    true => None,
                    false => record.agents.get(peer.node.index() / per_agent).map(|agent| agent.address),
                };
                let local = cable_end(fabric, PortRef::new(index, port));
                let delay_ns = wanted.cable_delay(PortRef::new(index, port)).as_nanos();
                cables.push(CableConfig { local, remote: cable_end(fabric, peer), remote_addr, delay_ns });
            }
        }
        let guids = facing(&agent.name, agent.devices.first().map(|device| device.guid), &cables)?;
        let config = AgentConfig {
            name: agent.name.clone(),
            lab: lab.name().to_owned(),
            devices: indices.clone().map(device).collect(),
            cables,
            bind: agent.address,
            identity: authority.issue(&guids).context("cannot issue a certificate")?,
            link_timeout_ms: record.link_timeout_ms,
            hosts: wanted.hosts.clone(),
            control_socket: lab.control(&agent.name),
            faults_file: Some(lab.faults(&agent.name)),
            attach_socket: lab.agent_socket(&agent.name),
            lock_file: lab.agent_lock(&agent.name),
            events_file: Some(lab.place(Place::Events)),
            record_file: wanted.record.as_deref().map(|to| recording_of(to, &agent.name)).transpose()?,
            record_bytes_max: weft_agent::RECORD_BYTES_MAX,
            launch_socket: None,
            metrics: record.metrics_of(&agent.name),
        };
        write_agent(&unfinished.agent_config(&agent.name), &config)?;
        folder::write(&unfinished.agent_lock(&agent.name), b"")?;
    }
    Ok(())
}

/// Writes what an agent is told.
pub(crate) fn write_agent(path: &Path, config: &AgentConfig) -> anyhow::Result<()> {
    folder::write(path, printable_json(&serde_json::to_string(config)?).as_bytes())
}

/// The file in which an agent records; the folder is made if it is not there.
pub(crate) fn recording_of(folder: &Path, agent: &str) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()))?;
    Ok(folder.join(format!("{agent}.rec")))
}

/// The most nodes that a certificate names: TLS refuses those of more than 64 KiB.
const CERTIFIED_MAX: usize = 2000;

/// The nodes that an agent must prove to be: those with a cable to another agent, or else any one.
fn facing(agent: &str, first: Option<Guid>, cables: &[CableConfig]) -> anyhow::Result<Vec<Guid>> {
    let remote = cables.iter().filter(|cable| cable.remote_addr.is_some()).map(|cable| cable.local.guid);
    let mut guids: Vec<Guid> = remote.collect::<BTreeSet<_>>().into_iter().collect();
    if guids.len() > CERTIFIED_MAX {
        let count = guids.len();
        return Err(Failure::new(format!("{agent} would have {count} devices with cables to other agents"))
            .hint(format!("at most {CERTIFIED_MAX} can be: use `--pack all`, or a smaller number"))
            .into());
    }
    if guids.is_empty() {
        guids.extend(first);
    }
    Ok(guids)
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

fn cable_end(fabric: &Fabric, port: PortRef) -> CableEnd {
    CableEnd { guid: fabric.node(port.node).guid, port: port.port }
}

fn write_sm(
    (unfinished, lab): (&LabFolder, &LabFolder),
    (record, name, place): (&LabRecord, &str, &SmPlace),
    wanted: &WantedSm,
) -> anyhow::Result<()> {
    let (files, is_first) = (lab.sm_files(name), name == SM);
    let mut options = wanted.options.clone();
    if !is_first {
        options.priority = options.priority.saturating_sub(1);
    }
    let seat = Seat {
        lock: Some(files.lock),
        attach: manager::Place::Agent {
            socket: lab.agent_socket(&place.agent),
            node: place.node,
            port: place.port,
        },
        launch: None,
        events: Some(lab.place(Place::Events)),
        lab: lab.name().to_owned(),
        control: Some(lab.control(name)),
        metrics: record.metrics_of(name),
    };
    // The file that the user names is the first manager's: who stands by learns the LIDs from the ports.
    let guid2lid = wanted.guid2lid.clone().filter(|_| is_first).unwrap_or(files.guid2lid);
    let config = SmConfig {
        seat,
        name: name.to_owned(),
        guid2lid: Some(guid2lid),
        announce: false,
        once: false,
        options,
    };
    let files = unfinished.sm_files(name);
    folder::write(&files.config, &serde_json::to_vec_pretty(&config)?)?;
    folder::write(&files.lock, b"")
}

fn write_pm(
    (unfinished, lab): (&LabFolder, &LabFolder),
    (record, place): (&LabRecord, &PmPlace),
    wanted: &WantedPm,
) -> anyhow::Result<()> {
    let seat = Seat {
        lock: Some(lab.place(Place::PmLock)),
        attach: manager::Place::Agent {
            socket: lab.agent_socket(&place.agent),
            node: place.node,
            port: place.port,
        },
        launch: None,
        events: Some(lab.place(Place::Events)),
        lab: lab.name().to_owned(),
        control: Some(lab.control(PM)),
        metrics: record.metrics_of(PM),
    };
    let config = PmConfig { seat, options: wanted.options.clone() };
    folder::write(&unfinished.place(Place::PmConfig), &serde_json::to_vec_pretty(&config)?)?;
    folder::write(&unfinished.place(Place::PmLock), b"")
}

/// What a laboratory's server of ibsim's protocol is told.
pub(crate) fn ibsim_config(lab: &LabFolder, listen: Listen, pace: &IbsimPace) -> IbsimConfig {
    IbsimConfig {
        lock: lab.place(Place::IbsimLock),
        listen,
        record: lab.place(Place::Record),
        topology: lab.place(Place::Topology),
        sockets: lab.sockets(),
        events: lab.place(Place::Events),
        timeout_ms: pace.ibsim_timeout_ms,
        retries: pace.ibsim_retries,
        bound: false,
    }
}

/// Runs an agent until it is told to stop. What goes wrong before that, the launcher is told.
pub(crate) fn run_agent(
    path: &Path,
    launch: Option<PathBuf>,
    metrics_port: Option<u16>,
) -> anyhow::Result<()> {
    let mut config: AgentConfig = manager::load_config(path)?;
    config.launch_socket = launch.or(config.launch_socket);
    config.metrics = metrics_port.map(manager::loopback).or(config.metrics);
    let _kept = ports::keep_port(Transport::Udp, config.bind.port().into()).ok().flatten();
    Ok(weft_agent::run(&config)?)
}

fn agent_name(index: usize) -> String {
    format!("a{index:04}")
}

fn agent_records(fabric: &Fabric, per_agent: usize, first_port: u16) -> Vec<AgentRecord> {
    let nodes: Vec<_> = fabric.iter().collect();
    let chunks = nodes.chunks(per_agent).zip(first_port..).enumerate();
    chunks
        .map(|(index, (nodes, port))| AgentRecord {
            name: agent_name(index),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            devices: nodes
                .iter()
                .map(|(place, node)| DeviceRecord {
                    label: fabric.label(*place),
                    guid: node.guid,
                    id: node.id.clone(),
                    description: node.description.clone(),
                    switch: node.is_switch(),
                })
                .collect(),
        })
        .collect()
}

fn sm_place(fabric: &Fabric, at: PortRef, options: &weft_sm::Options, per_agent: usize) -> SmPlace {
    SmPlace {
        agent: agent_name(at.node.index() / per_agent),
        node: fabric.node(at.node).guid,
        port: at.port,
        smp_routing: match options.smp_routing {
            weft_sm::SmpRouting::Directed => SmpRouting::Directed,
            weft_sm::SmpRouting::Lid => SmpRouting::Lid,
        },
    }
}

fn pm_place(fabric: &Fabric, at: PortRef, per_agent: usize) -> PmPlace {
    PmPlace { agent: agent_name(at.node.index() / per_agent), node: fabric.node(at.node).guid, port: at.port }
}

#[cfg(test)]
mod tests {
    use weft_wire::PortNum;

    use super::*;

    #[test]
    fn an_agent_proves_to_be_those_that_others_see() {
        let remote = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000)));
        let cable = |guid, remote_addr| {
            let end = |guid| CableEnd { guid: Guid(guid), port: PortNum(1) };
            CableConfig { local: end(guid), remote: end(9), remote_addr, delay_ns: 0 }
        };
        let cables = [cable(5, None), cable(3, remote), cable(3, remote), cable(2, remote)];
        assert_eq!(facing("a", Some(Guid(5)), &cables).unwrap(), [Guid(2), Guid(3)]);
        assert_eq!(facing("a", Some(Guid(5)), &cables[..1]).unwrap(), [Guid(5)]);
        let many: Vec<_> = (1..=2001).map(|guid| cable(guid, remote)).collect();
        assert!(facing("a", None, &many[1..]).is_ok());
        let refused = facing("a0007", None, &many).unwrap_err().to_string();
        assert_eq!(refused, "a0007 would have 2001 devices with cables to other agents");
    }
}
