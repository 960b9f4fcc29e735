//! The places that the record of a laboratory gives its processes.

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::names::{HUB, OPENSM, PM, SM, VMM, is_of};
use weft_bundle::place::hosts::is_local;
use weft_bundle::record::LabRecord;
use weft_link::Peer;
use weft_managers::door::reach::Remote;

/// Where all processes are found over the network: agents at the port of their links, others at their doors.
pub(crate) fn remotes(record: &LabRecord) -> anyhow::Result<Vec<Remote>> {
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

/// The host of a process that the record gives a place on the network.
pub(crate) fn host_of(record: &LabRecord, process: &str) -> Option<String> {
    let agent = record.agents.iter().find(|agent| agent.name == process).map(|agent| &agent.address);
    let place = agent.or_else(|| record.doors.get(process).filter(|_| process != HUB))?;
    Some(place.host())
}

/// Refuses a bundle whose agents are not all of this machine.
///
/// # Errors
/// When it is such a bundle.
pub fn refuse_other_hosts(bundle: &Bundle, record: &LabRecord) -> anyhow::Result<()> {
    let Some(host) = record.hosts().into_iter().find(|host| !is_local(host)) else { return Ok(()) };
    let shown = bundle.path().display();
    Err(Failure::bad_input(format!("agents of {shown} run on other hosts, such as {host}")).hint(format!(
        "start each host's part there, as with `weft up --part {host} {shown}`, or plan and start all of it at once \
         with `weft up FILE --hosts`"
    )))
}
