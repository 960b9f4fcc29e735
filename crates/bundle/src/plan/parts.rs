//! Configurations of a laboratory's processes.

use anyhow::Context;
use weft_agent_config::{AgentPart, CableConfig, SlotConfig};
use weft_device::DeviceConfig;
use weft_link::CableEnd;
use weft_topology::{Adapter, Fabric, PortRef};
use weft_vm::{HostPart, Scheme};

use crate::config::keys::Keys;
use crate::config::managers::{PmPart, QuicPart, RemoteAgent, SeatPart, SmPart, VmmPart};
use crate::names::SM;
use crate::partitions::by_port;
use crate::place::groups::Groups;
use crate::plan::places::Places;
use crate::plan::wanted::{Wanted, WantedPm, WantedSm};
use crate::record::{AgentRecord, LabRecord, OtherPlace, SmPlace};

/// Configuration of an agent.
pub(crate) fn agent(
    index: usize,
    record: &LabRecord,
    wanted: &Wanted<'_>,
    groups: &Groups,
    places: &Places,
) -> anyhow::Result<AgentPart> {
    let fabric = wanted.fabric;
    let missing = "an agent without a place";
    let (agent, place) = record.agents.get(index).zip(places.agents.get(index)).context(missing)?;
    let members = groups.members().get(index).context(missing)?;
    let mut cables = Vec::new();
    for node in members {
        for (port, peer) in fabric.node(*node).cabled_ports() {
            let other = groups.agent_of(peer.node);
            let remote_addr = (other != index).then(|| places.agents.get(other)).flatten();
            let (local, delay) = (PortRef::new(*node, port), wanted.cable_delay(PortRef::new(*node, port)));
            cables.push(CableConfig {
                local: cable_end(fabric, local),
                remote: cable_end(fabric, peer),
                remote_addr: remote_addr.map(|place| place.address.clone()),
                delay_ns: delay.as_nanos(),
            });
        }
    }
    let slots = agent.devices.iter().filter(|device| device.slot);
    let slots: Vec<SlotConfig> =
        slots.map(|slot| SlotConfig { guid: slot.guid, empty: wanted.empty_slots }).collect();
    let mut devices: Vec<DeviceConfig> =
        members.iter().map(|node| weft_node::device_config(fabric, *node, &wanted.device)).collect();
    let is_slot = |device: &&mut DeviceConfig| slots.iter().any(|slot| slot.guid == device.guid);
    devices.iter_mut().filter(is_slot).for_each(|slot| slot.options.programs_qp0 = wanted.slots_qp0);
    Ok(AgentPart {
        slots,
        name: agent.name.clone(),
        lab: record.lab.clone(),
        devices,
        cables,
        bind: place.bind,
        link_timeout_ms: record.link_timeout_ms,
        hosts: wanted.hosts.clone(),
        later_hosts: wanted.later_hosts.clone(),
        metrics: record.metrics_of(&agent.name),
        http_token: record.http_token.clone(),
    })
}

fn cable_end(fabric: &Fabric, port: PortRef) -> CableEnd {
    CableEnd { guid: fabric.node(port.node).guid, port: port.port }
}

/// Where a manager sits.
fn seat(record: &LabRecord, place: OtherPlace, quic: Option<QuicPart>) -> SeatPart {
    let OtherPlace { name, agent, node, port } = place;
    let (lab, metrics, http_token) =
        (record.lab.clone(), record.metrics_of(&name), record.http_token.clone());
    SeatPart { lab, agent, quic, node, port, metrics, http_token }
}

/// Configuration of a subnet manager; those that stand by have a lower priority.
pub(crate) fn sm(
    record: &LabRecord,
    name: &str,
    place: &SmPlace,
    quic: Option<QuicPart>,
    wanted: &WantedSm,
) -> SmPart {
    let mut options = Keys::taken_from(wanted.options.clone());
    if name != SM && !place.leads {
        options.election.priority = options.election.priority.saturating_sub(1);
    }
    options.sa.subnet_prefix = place.subnet_prefix.unwrap_or(options.sa.subnet_prefix);
    let SmPlace { agent, node, port, .. } = place.clone();
    SmPart { seat: seat(record, OtherPlace { name: name.to_owned(), agent, node, port }, quic), options }
}

/// Configuration of the performance manager.
pub(crate) fn pm(
    record: &LabRecord,
    place: &OtherPlace,
    quic: Option<QuicPart>,
    wanted: &WantedPm,
) -> PmPart {
    // Keys are in a file of their own.
    let weft_pm::Options { m_key, sa_key, .. } = weft_pm::Options::default();
    let options = weft_pm::Options { m_key, sa_key, ..wanted.options.clone() };
    PmPart { seat: seat(record, place.clone(), quic), options }
}

/// Configuration of OpenSM's process.
pub(crate) fn opensm(record: &LabRecord, place: &OtherPlace) -> SeatPart {
    SeatPart { metrics: None, http_token: None, ..seat(record, place.clone(), None) }
}

/// Configuration of the VM manager.
pub(crate) fn vmm(
    record: &LabRecord,
    place: &OtherPlace,
    quic: Option<QuicPart>,
    wanted: &Wanted<'_>,
) -> anyhow::Result<VmmPart> {
    let seat = seat(record, place.clone(), quic);
    let scheme = Scheme::of(wanted.empty_slots, wanted.guids_stay());
    let pieces = wanted.fabric.pieces();
    let at = wanted.fabric.by_guid(place.node).map(|node| PortRef::new(node, place.port));
    let piece = at.and_then(|at| pieces.of_seat(at)).context("a VM manager without a port")?;
    // Its moves end with the subnet.
    let here = wanted.adapters.iter().filter(|adapter| pieces.has(piece, adapter.vswitch));
    let hosts = here.map(|adapter| host(record, wanted.fabric, adapter));
    let partitions = wanted.sm.as_ref().and_then(|sm| sm.options.routing.engine.partitions.as_ref());
    let partitions = partitions.map(by_port);
    let hosts = hosts.collect::<anyhow::Result<_>>()?;
    // Without doors all processes share a run folder.
    let agents = record.agents.iter().filter(|_| !record.doors.is_empty());
    let agents = agents.map(remote_agent).collect::<anyhow::Result<_>>()?;
    let polls = wanted.sm.as_ref().filter(|_| !wanted.standbys.is_empty());
    let polls = polls.map(|sm| (sm.options.election.polling_ms, sm.options.election.polling_retries));
    Ok(VmmPart { seat, scheme, hosts, partitions, polls, agents })
}

/// Where the VM manager finds an agent over the network.
fn remote_agent(agent: &AgentRecord) -> anyhow::Result<RemoteAgent> {
    let first = || agent.devices.first().map(|device| device.guid);
    let node = agent.proves.first().copied().or_else(first).context("an agent without a device")?;
    Ok(RemoteAgent { name: agent.name.clone(), quic: QuicPart { address: agent.address.clone(), node } })
}

/// A host with slots.
fn host(record: &LabRecord, fabric: &Fabric, adapter: &Adapter) -> anyhow::Result<HostPart> {
    let pf = fabric.node(adapter.pf).guid;
    let runs = |agent: &&AgentRecord| agent.devices.iter().any(|device| device.guid == pf);
    let agent = record.agents.iter().find(runs).context("an adapter without an agent")?;
    HostPart::of(fabric, adapter, &agent.name).context("an adapter without a cable")
}
