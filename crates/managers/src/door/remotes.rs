//! Addresses of the processes of a laboratory that each run on a host of their own.

use anyhow::Context;
use weft_bundle::names::{HUB, OPENSM, PM, SM, VMM, is_of};
use weft_bundle::record::LabRecord;
use weft_link::Peer;

use crate::door::reach::Remote;

/// Where all processes are found: agents at the port of their links, others at their doors.
pub fn remotes(record: &LabRecord) -> anyhow::Result<Vec<Remote>> {
    let mut remotes = Vec::new();
    for agent in &record.agents {
        let first = || agent.devices.first().map(|device| device.guid);
        let node = agent.proves.first().copied().or_else(first);
        let peer = Peer::Node(node.with_context(|| format!("agent {} runs no device", agent.name))?);
        remotes.push(Remote { name: agent.name.clone(), address: agent.address.clone(), peer });
    }
    for (name, address) in record.doors.iter().filter(|(name, _)| *name != HUB) {
        // Managers have the role of the first of their kind.
        let role =
            [SM, PM, VMM, OPENSM].into_iter().find(|first| is_of(name, first)).unwrap_or(name).to_owned();
        remotes.push(Remote { name: name.clone(), address: address.clone(), peer: Peer::Role(role) });
    }
    Ok(remotes)
}
