//! Plans the configuration of each process of the laboratory from a cabling.

pub mod destination;
pub(crate) mod parts;
pub mod places;
pub mod seats;
pub(crate) mod silence;
pub mod vfs;
pub mod wanted;

use anyhow::Context;
use weft_link::Destination;
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, MKey};

use crate::config::keys::Keys;
use crate::config::managers::QuicPart;
use crate::folder::bundle::{self, Bundle};
use crate::folder::{self};
use crate::identity::issue;
use crate::names::{IBSIM, OPENSM, PM, VMM, agent_name, numbered};
use crate::place::groups::Groups;
use crate::place::hosts::Hosts;
use crate::plan::destination::destination;
use crate::plan::places::Places;
use crate::plan::wanted::{Attach, OtherSm, Wanted, WantedOpensm, WantedSm};
use crate::record::{AgentRecord, DeviceRecord, LabRecord, Metrics, OtherPlace, SmPlace};

/// Writes the bundle of a laboratory of that name into a folder that is there.
pub fn write(
    bundle: &Bundle,
    lab: &str,
    wanted: &Wanted<'_>,
    groups: &Groups,
    places: &Places,
) -> anyhow::Result<LabRecord> {
    let fabric = wanted.fabric;
    let sm = |sm: &WantedSm, other: OtherSm| sm_place(fabric, other, &sm.options, groups);
    let first = |at| OtherSm { at, leads: false, subnet_prefix: None };
    let cables = || groups.cables_between(fabric);
    bundle.make_folders()?;
    let mut record = LabRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        lab: lab.to_owned(),
        topology: wanted.topology.clone(),
        dilation: wanted.device.data.shaped.then_some(wanted.device.data.dilation),
        vfs: wanted.adapters.iter().map(|adapter| adapter.vfs.len()).min(),
        empty_slots: wanted.empty_slots,
        guids_stay: wanted.guids_stay(),
        qp0_denied: !wanted.slots_qp0,
        agents: agent_records(wanted, groups, places),
        sm: wanted.sm.as_ref().map(|wanted| sm(wanted, first(wanted.at))),
        standbys: wanted
            .sm
            .iter()
            .flat_map(|first| wanted.standbys.iter().map(|other| sm(first, *other)))
            .collect(),
        pms: others(PM, wanted.pms.iter().map(|pm| pm.at), fabric, groups),
        opensms: others(OPENSM, wanted.opensms.iter().map(|opensm| opensm.at), fabric, groups),
        vmms: others(VMM, wanted.vmms.iter().copied(), fabric, groups),
        metrics: match (places.metrics, wanted.metrics_port) {
            (Some(block), _) => Some(Metrics::Ports(block)),
            (None, Some(port)) => Some(Metrics::Port(port)),
            (None, None) => wanted.metrics.filter(|_| wanted.hosted.is_some()).map(|_| Metrics::UdpPort),
        },
        http_token: Some(crate::identity::token::choose_token(bundle)?),
        ibsim: wanted.ibsim.as_ref().map(|part| part.listen.clone()),
        udp_ports: places.udp,
        doors: wanted.doors.clone(),
        link_timeout_ms: wanted.link_timeout_ms.unwrap_or_else(|| silence::link_timeout_ms(cables())),
        planned: None,
        named: None,
    };
    if let Some(Hosts::Listed(_)) = &wanted.hosted {
        record.doors = places::doors(&record)?;
    }
    folder::write(&bundle.topology(), fabric.write_ibnetdiscover().as_bytes())?;
    if let Some(text) = wanted.sm.as_ref().and_then(|sm| sm.partitions.as_ref()) {
        folder::write(&bundle.partitions(), text.as_bytes())?;
    }
    let issuer = issue::Issuer::begin(bundle, lab)?;
    for agent in 0..record.agents.len() {
        let part = parts::agent(agent, &record, wanted, groups, places)?;
        bundle::store(&bundle.agent(&part.name), &part)?;
        record.agents[agent].proves = issuer.issue_agent(&part)?;
    }
    record.store(bundle)?;
    write_managers(bundle, &record, wanted)?;
    issuer.issue_roles(&record)?;
    Ok(record)
}

/// Writes the configurations of the processes that are no agents.
fn write_managers(bundle: &Bundle, record: &LabRecord, wanted: &Wanted<'_>) -> anyhow::Result<()> {
    let way = |agent: &str| match wanted.attach {
        Attach::Unix => Ok(None),
        Attach::Quic => quic_part(bundle, record, agent).map(Some),
    };
    if let Some(sm) = &wanted.sm {
        for (name, place) in record.subnet_managers() {
            let part = parts::sm(record, &name, place, way(&place.agent)?, sm);
            bundle::store(&bundle.manager(&name), &part)?;
        }
    }
    for (place, pm) in record.pms.iter().zip(&wanted.pms) {
        bundle::store(&bundle.manager(&place.name), &parts::pm(record, place, way(&place.agent)?, pm))?;
    }
    for place in &record.vmms {
        let part = parts::vmm(record, place, way(&place.agent)?, wanted)?;
        bundle::store(&bundle.manager(&place.name), &part)?;
    }
    if let Some(part) = &wanted.ibsim {
        bundle::store(&bundle.manager(IBSIM), part)?;
    }
    let options = wanted.sm.as_ref().map_or_else(weft_sm::Options::default, |sm| sm.options.clone());
    let keys = Keys { m_key: wanted.m_key, sa_key: wanted.sa_key, ..Keys::of(&options) };
    for (place, opensm) in record.opensms.iter().zip(&wanted.opensms) {
        bundle::store(&bundle.manager(&place.name), &parts::opensm(record, place))?;
        let guid = wanted.fabric.port(opensm.at).map_or(place.node, |port| port.guid);
        folder::write(
            &bundle.opensm_options(&place.name),
            opensm_options(keys.m_key, guid, opensm).as_bytes(),
        )?;
    }
    bundle::store(&bundle.keys(), &keys)
}

/// The options that OpenSM reads: it writes lines at once, locks ports and stands by as weft's manager would, and manages from the
/// port of this GUID. Without one it takes a port with a link, which may be in another piece of the fabric.
fn opensm_options(m_key: MKey, port: Guid, wanted: &WantedOpensm) -> String {
    let WantedOpensm { priority, subnet_prefix, polls: (polling_ms, retries), .. } = wanted;
    let mut text = format!(
        "force_log_flush TRUE\nm_key {:#018x}\nguid {:#018x}\nsm_priority {priority}\n\
         sminfo_polling_timeout {polling_ms}\npolling_retry_number {retries}\n",
        m_key.0, port.0
    );
    if let Some(prefix) = subnet_prefix {
        text += &format!("subnet_prefix {:#018x}\n", prefix.0);
    }
    text
}

/// Where a manager finds an agent over the network. The agent's configuration has been written.
fn quic_part(bundle: &Bundle, record: &LabRecord, agent: &str) -> anyhow::Result<QuicPart> {
    let agent = record.agents.iter().find(|known| known.name == agent).context("an agent without a place")?;
    let Destination { address, node } = destination(bundle, agent)?;
    Ok(QuicPart { address, node })
}

fn agent_records(wanted: &Wanted<'_>, groups: &Groups, places: &Places) -> Vec<AgentRecord> {
    let fabric = wanted.fabric;
    let slots = wanted.slots();
    let agents = groups.members().iter().zip(&places.agents).enumerate();
    agents
        .map(|(index, (nodes, place))| AgentRecord {
            name: agent_name(index),
            address: place.address.clone(),
            proves: Vec::new(),
            metrics: None,
            devices: nodes.iter().map(|at| DeviceRecord::of(fabric, *at, slots.contains(at))).collect(),
        })
        .collect()
}

fn sm_place(fabric: &Fabric, other: OtherSm, options: &weft_sm::Options, groups: &Groups) -> SmPlace {
    let OtherSm { at, leads, subnet_prefix } = other;
    SmPlace {
        agent: agent_name(groups.agent_of(at.node)),
        node: fabric.node(at.node).guid,
        port: at.port,
        smp_routing: options.smps.smp_routing,
        name: None,
        leads,
        subnet_prefix,
    }
}

/// The places of managers of a kind, named after the first.
fn others(
    first: &str,
    seats: impl Iterator<Item = PortRef>,
    fabric: &Fabric,
    groups: &Groups,
) -> Vec<OtherPlace> {
    let place = |(at, seat): (usize, PortRef)| OtherPlace {
        name: numbered(first, at),
        agent: agent_name(groups.agent_of(seat.node)),
        node: fabric.node(seat.node).guid,
        port: seat.port,
    };
    seats.enumerate().map(place).collect()
}
