//! From a cabling to what each process of the laboratory is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use weft_device::{DeviceConfig, DeviceOptions, PortConfig};
use weft_machine::Time;
use weft_topology::{Fabric, Node, NodeIndex, PortRef};
use weft_wire::{LinkParameters, PortNum};

use super::folder::{self, Base, LabFolder, Place};
use super::record::{AgentRecord, DeviceRecord, LabRecord, SmPlace};
use super::{launch, ports};
use crate::cli::{Pack, UpArgs};

/// Writes everything that the processes of a laboratory read, and its record.
pub(crate) fn write(
    base: &Base,
    lab: &LabFolder,
    fabric: &Fabric,
    sm_at: Option<NodeIndex>,
    args: &UpArgs,
) -> anyhow::Result<LabRecord> {
    let nodes = fabric.nodes().len();
    let per_agent = match args.pack {
        Pack::All => nodes,
        Pack::Devices(devices) => devices.min(nodes),
    };
    let agents = nodes.div_ceil(per_agent);
    // Two launchers must not choose the same ports: the folder that both look into serves as their lock.
    let base_folder = base.lock()?;
    let first = ports::choose(base, agents, args.udp_port)?;
    let record = LabRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        topology: args.file.display().to_string(),
        agents: agent_records(fabric, per_agent, first),
        sm: sm_at.map(|node| sm_place(fabric, node, per_agent, args)).transpose()?,
        udp_ports: (first, u16::try_from(agents).context("more agents than ports")?),
        link_timeout_ms: args.link_timeout_ms,
    };
    record.store(lab)?;
    drop(base_folder);
    folder::write(&lab.place(Place::Topology), fabric.write_ibnetdiscover().as_bytes())?;
    write_agents(lab, fabric, &record, per_agent, args)?;
    Ok(record)
}

fn agent_name(index: usize) -> String {
    format!("a{index:04}")
}

fn agent_records(fabric: &Fabric, per_agent: usize, first_port: u16) -> Vec<AgentRecord> {
    let chunks = fabric.nodes().chunks(per_agent).zip(first_port..).enumerate();
    chunks
        .map(|(index, (nodes, port))| AgentRecord {
            name: agent_name(index),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            devices: nodes
                .iter()
                .map(|node| DeviceRecord {
                    guid: node.guid,
                    id: node.id.clone(),
                    description: node.description.clone(),
                    switch: node.is_switch(),
                })
                .collect(),
        })
        .collect()
}

fn sm_place(fabric: &Fabric, index: NodeIndex, per_agent: usize, args: &UpArgs) -> anyhow::Result<SmPlace> {
    let node = fabric.node(index);
    let cabled = node.cabled_ports().map(|(port, _)| port).next();
    Ok(SmPlace {
        agent: agent_name(index.index() / per_agent),
        node: node.guid,
        port: if node.is_switch() { PortNum::ZERO } else { cabled.unwrap_or(PortNum(1)) },
        smp_routing: args.sm.smp_routing,
    })
}

/// A node of the cabling as a device.
pub(crate) fn device(node: &Node, options: &DeviceOptions) -> DeviceConfig {
    let ports = node.external_ports().map(|(_, port)| PortConfig {
        guid: port.guid,
        link: LinkParameters {
            width: port.enabled.width,
            speed: port.enabled.speed,
            speed_ext: port.enabled.speed_ext,
        },
    });
    DeviceConfig {
        kind: node.kind,
        guid: node.guid,
        system_image_guid: node.system_image_guid,
        description: node.description.clone(),
        vendor_id: node.vendor_id,
        device_id: node.device_id,
        enhanced_port0: node.enhanced_port0,
        ports: ports.collect(),
        options: options.clone(),
    }
}
