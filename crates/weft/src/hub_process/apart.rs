//! A hub whose laboratory's processes run elsewhere, as in containers: it reaches them over the network, and starts none.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use anyhow::Context;
use weft_control::hub::EndKind;
use weft_hub::{Lab, Trace};
use weft_link::Peer;
use weft_process::lock::ProcessLock;
use weft_topology::Fabric;
use weft_wire::Guid;

use super::{Known, expected, watch};
use crate::door::reach::Remote;
use crate::door::serve::{self, Door};
use crate::lab::hub::HubConfig;
use crate::lab::names::{HUB, SM};
use crate::lab::process::raise_file_limit;
use crate::lab::record::AgentRecord;
use crate::lab::{Bundle, LabFile, LabFolder, LabRecord, Papers, folder, issue};
use crate::topology_file;

/// Runs one until a signal or a client asks it to end.
pub(crate) fn run(
    bundle: &Bundle,
    run: &Path,
    identity: Option<&Path>,
    config: HubConfig,
) -> anyhow::Result<()> {
    let record = LabRecord::read(&bundle.record())?;
    let own = bundle.identity(HUB);
    let papers = Papers::load(bundle, identity.map_or(own, Path::to_owned), None)?;
    let lab = LabFolder::of_run(run, &record.lab)?;
    lab.prepare_for(HUB)?;
    let lock = ProcessLock::take(&lab.place(LabFile::HubLock))?;
    weft_process::log::log_to_stderr();
    raise_file_limit();
    // What clients read of it.
    record.store(&lab.bundle())?;
    let topology = crate::input::read(&bundle.topology());
    let topology = topology.with_context(|| format!("cannot read {}", bundle.topology().display()))?;
    folder::write(&lab.bundle().topology(), &topology)?;
    let remotes = remotes(&record, &topology_file::load(&bundle.topology())?)?;
    let door = config.door.map(|address| {
        let (credentials, folder) = (papers.credentials().clone(), lab.clone());
        Door { address, credentials, folder, name: HUB.to_owned(), relays: true }
    });
    serve::open(door, Some((lab.clone(), papers.credentials().clone(), remotes)))?;
    let known = Known { papers: Some(papers), revoked: issue::revoked(bundle)? };
    watch(&lab, expected(&record), (config, None, known), Arc::new(Elsewhere), || ())?;
    lock.note_stop();
    Ok(())
}

/// Where all processes are found: agents at the port of their links, others at their doors.
fn remotes(record: &LabRecord, fabric: &Fabric) -> anyhow::Result<Vec<Remote>> {
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

/// Processes that others start, and that only the network tells of.
struct Elsewhere;

impl Lab for Elsewhere {
    fn trace(&self, _: &str) -> Trace {
        Trace::Ended(EndKind::Failed)
    }

    fn is_going_down(&self) -> bool {
        false
    }

    fn spawn(&self, process: &str) -> Result<Child, String> {
        self.start(process)
    }

    fn note_start(&self) {}

    fn start(&self, _: &str) -> Result<Child, String> {
        Err("it runs elsewhere, and is started there".to_owned())
    }
}
