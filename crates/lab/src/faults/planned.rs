//! Faults of a schedule that somebody else draws and judges.

use std::time::Duration;

use anyhow::Context;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::identity::issue::Issuer;
use weft_control::agent::PortEnd;
use weft_control::fault::FaultId;
use weft_control::{Answer, ErrorCode, HexGuid, Page, Request};
use weft_fault::{BadIdentity, Damage, Fault, Presented, Process};
use weft_process::ClientError;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use crate::agents::{PATIENCE, ask_agents, connect, further};
use crate::faults::record;
use crate::site;
use crate::view::Lab;

/// Begins a fault that lasts, which its agents end by themselves. An agent that does not run, or dies over it, has no part in it.
pub fn set(
    lab: &Lab,
    id: &FaultId,
    fault: &Fault<NodeIndex, PortRef>,
    lasts: Duration,
) -> anyhow::Result<()> {
    let named =
        fault.clone().map(|node| lab.fabric.label(node), |port| lab.fabric.port_label(port).to_string());
    record(lab, fault.word(), named.to_string().split_once(' ').map_or("", |(_, target)| target));
    let for_ms = u64::try_from(lasts.as_millis()).ok();
    for damage in damage(lab, fault) {
        let guid = lab.fabric.node(damage.end().node).guid;
        let Some((agent, _)) = lab.record.device(guid) else { continue };
        let damage = damage.map(|end| PortEnd { node: HexGuid(guid), port: end.port });
        let told = connect(&lab.folder, &agent.name).and_then(|client| match client {
            Some(mut client) => {
                client.ask(Request::SetFault { id: id.clone(), damage, for_ms }, PATIENCE).map(drop)
            }
            None => Ok(()),
        });
        match told {
            Err(ClientError::Refused(error)) if error.code != ErrorCode::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Issues a bad identity where a node's agent will find it, with the authority of a bundle.
pub fn issue_bad(lab: &Lab, node: NodeIndex, bad: BadIdentity, bundle: &Bundle) -> anyhow::Result<()> {
    site::of(&lab.folder)?.allows("fault bad-identity")?;
    let guid = lab.fabric.node(node).guid;
    let (agent, _) = lab.record.device(guid).context("the laboratory has no such node")?;
    let of_agent = |other: &Guid| agent.devices.iter().all(|device| device.guid != *other);
    let other = lab.fabric.nodes().iter().map(|node| node.guid).find(of_agent);
    let own = lab.folder.bundle();
    Issuer::resume(bundle, &lab.record.lab)?.into_bundle(&own)?.issue_bad(&agent.name, bad, other)
}

/// What a fault does to the ends of cables, and to nodes.
fn damage(lab: &Lab, fault: &Fault<NodeIndex, PortRef>) -> Vec<Damage<PortRef>> {
    let peer = |end: PortRef| lab.fabric.peer(end);
    match fault {
        Fault::LinkDown(end) => std::iter::once(*end).chain(peer(*end)).map(Damage::Unplugged).collect(),
        Fault::Freeze(Process::Agent(node)) => vec![Damage::Frozen(PortRef::new(*node, PortNum::ZERO))],
        Fault::Partition(nodes) => {
            let within = |end: PortRef| nodes.0.contains(&end.node);
            let between = lab.fabric.cables().filter(|cable| within(cable.a) != within(cable.b));
            between.flat_map(|cable| [cable.a, cable.b]).map(Damage::Parted).collect()
        }
        Fault::Impair(impaired) => {
            peer(impaired.at).map(|peer| impaired.damage(peer).collect()).unwrap_or_default()
        }
        Fault::BadIdentity(Presented { node, identity }) => {
            vec![Damage::BadIdentity { at: PortRef::new(*node, PortNum::ZERO), identity: *identity }]
        }
        Fault::Kill(_)
        | Fault::Restart(_)
        | Fault::LinkUp(_)
        | Fault::Freeze(_)
        | Fault::Thaw(_)
        | Fault::Heal(_)
        | Fault::GoodIdentity(_)
        | Fault::Clear(_) => Vec::new(),
    }
}

/// A device whose packets are/// A device whose packets are not all accounted for.
pub fn unsound_account(lab: &Lab) -> anyhow::Result<Option<String>> {
    let mut unsound = None;
    let agents = lab.record.agents.iter().map(|agent| agent.name.as_str());
    ask_agents(&lab.folder, agents, &Request::Account(Page::default()), |_, answer| {
        let Answer::Account { devices, more } = answer else { return None };
        let wrong = devices.iter().find(|device| !device.sound);
        if let Some(device) = wrong {
            unsound = Some(lab.label(device.node.0, &device.node.to_string()));
        }
        further(devices.last().map(|device| PortEnd::of_node(device.node)), more).map(Request::Account)
    })?;
    Ok(unsound)
}
