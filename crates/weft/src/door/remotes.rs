//! Where the processes of a laboratory are found that each run on a host of their own.

use std::collections::BTreeSet;

use anyhow::Context;
use weft_link::Peer;
use weft_topology::Fabric;
use weft_wire::Guid;

use super::reach::Remote;
use crate::lab::LabRecord;
use crate::lab::names::{HUB, SM};
use crate::lab::record::AgentRecord;

/// Where all processes are found: agents at the port of their links, others at their doors.
pub(crate) fn remotes(record: &LabRecord, fabric: &Fabric) -> anyhow::Result<Vec<Remote>> {
    let mut remotes = Vec::new();
    for agent in &record.agents {
        let node = facing(agent, fabric).or_else(|| agent.devices.first().map(|device| device.guid));
        let peer = Peer::Node(node.with_context(|| format!("agent {} runs no device", agent.name))?);
        remotes.push(Remote { name: agent.name.clone(), address: agent.address.clone(), peer });
    }
    for (name, address) in record.doors.iter().filter(|(name, _)| *name != HUB) {
        // Standby managers have the role of the first.
        let is_sm = record.subnet_managers().any(|(manager, _)| manager == *name);
        let role = if is_sm { SM.to_owned() } else { name.clone() };
        remotes.push(Remote { name: name.clone(), address: address.clone(), peer: Peer::Role(role) });
    }
    Ok(remotes)
}

/// A node that an agent's certificate names: one with a cable to another agent.
fn facing(agent: &AgentRecord, fabric: &Fabric) -> Option<Guid> {
    let own: BTreeSet<Guid> = agent.devices.iter().map(|device| device.guid).collect();
    let faces = |guid: &&Guid| {
        let node = fabric.by_guid(**guid).map(|index| fabric.node(index));
        let mut peers = node.iter().flat_map(|node| node.cabled_ports()).map(|(_, peer)| peer.node);
        peers.any(|peer| !own.contains(&fabric.node(peer).guid))
    };
    own.iter().find(faces).copied()
}
