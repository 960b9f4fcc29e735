//! Comparison of a laboratory's files with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use weft_agent_config::AgentPart;
use weft_bundle::folder::{LabFile, LabFolder, bundle};
use weft_bundle::identity::issue;
use weft_bundle::record::LabRecord;
use weft_bundle::topology_file;
use weft_link::{CableEnd, Identity};
use weft_topology::diff;
use weft_wire::Guid;

use super::model::Model;

/// All of it but what certificates name beyond what they must.
pub(super) fn files_are(lab: &LabFolder, model: &Model) -> anyhow::Result<()> {
    let record = LabRecord::load(lab)?;
    record_is(&record, model)?;
    topology_is(lab, model)?;
    parts_are(lab, &record, model)?;
    for (agent, nodes) in shown(model) {
        let identity = identity(lab, agent)?;
        let lacks = nodes.iter().find(|guid| !identity.is_for(**guid));
        ensure!(lacks.is_none(), "the certificate of {agent} does not name {lacks:?}");
    }
    ensure!(!lab.place(LabFile::RecablingJournal).exists(), "a journal is left");
    Ok(())
}

/// A certificate names nodes of its agent alone, and the record says which.
pub(super) fn certificates_are_listed(lab: &LabFolder, model: &Model) -> anyhow::Result<()> {
    for agent in LabRecord::load(lab)?.agents {
        let identity = identity(lab, &agent.name)?;
        identity.check()?;
        let known = model.nodes.keys().chain(model.come.keys()).copied();
        let named: BTreeSet<Guid> = known.filter(|guid| identity.is_for(*guid)).collect();
        let foreign =
            named.iter().find(|guid| model.nodes.get(*guid).is_none_or(|known| known.agent != agent.name));
        ensure!(foreign.is_none(), "the certificate of {} names {foreign:?}", agent.name);
        let listed: BTreeSet<Guid> = agent.proves.iter().copied().collect();
        ensure!(listed == named, "the certificate of {} names {named:?}, listed are {listed:?}", agent.name);
    }
    Ok(())
}

/// The identity of an agent that was removed is gone, and revoked.
pub(super) fn is_revoked(lab: &LabFolder, agent: &str, identity: &Identity) -> anyhow::Result<()> {
    let list = issue::revoked(&lab.bundle())?.context("nothing is revoked")?;
    ensure!(list.has(&identity.serial()?), "the identity of {agent} is not revoked");
    // The lock stays: it tells the hub how the agent has ended.
    let mut left = files(lab)?.into_keys().filter(|path| !path.starts_with("locks"));
    let left = left.find(|path| path.file_stem().is_some_and(|stem| stem == agent));
    ensure!(left.is_none(), "{left:?} is left of {agent}");
    Ok(())
}

/// The identity that an agent has.
pub(super) fn identity(lab: &LabFolder, agent: &str) -> anyhow::Result<Identity> {
    issue::read(&lab.bundle(), &lab.bundle().identity(agent))
}

/// What is in a laboratory's folder, but for the turn to change it.
pub(super) fn files(lab: &LabFolder) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    fn add(to: &mut BTreeMap<PathBuf, Vec<u8>>, base: &Path, folder: &Path) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                add(to, base, &path)?;
            } else {
                to.insert(path.strip_prefix(base)?.to_owned(), std::fs::read(&path)?);
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    add(&mut found, lab.path(), lab.path())?;
    found.retain(|path, _| lab.path().join(path) != lab.place(LabFile::RecablingLock));
    Ok(found)
}

/// The nodes that each agent shows to other agents. Each has to prove to be one at least.
fn shown(model: &Model) -> BTreeMap<&str, BTreeSet<Guid>> {
    let mut shown: BTreeMap<&str, BTreeSet<Guid>> = BTreeMap::new();
    for ends in model.cables.keys() {
        let [a, b] = ends.map(|end| model.nodes[&end.guid].agent.as_str());
        if a != b {
            shown.entry(a).or_default().insert(ends[0].guid);
            shown.entry(b).or_default().insert(ends[1].guid);
        }
    }
    shown
}

fn record_is(record: &LabRecord, model: &Model) -> anyhow::Result<()> {
    let listed = record.agents.iter().flat_map(|agent| {
        agent
            .devices
            .iter()
            .map(move |device| (device.guid, (device.description.as_str(), agent.name.as_str())))
    });
    let wanted = model.nodes.iter().map(|(guid, known)| (*guid, (known.name.as_str(), known.agent.as_str())));
    let (listed, wanted): (BTreeMap<_, _>, BTreeMap<_, _>) = (listed.collect(), wanted.collect());
    ensure!(listed == wanted, "the record has {listed:?}, not {wanted:?}");
    let devices: usize = record.agents.iter().map(|agent| agent.devices.len()).sum();
    ensure!(devices == wanted.len(), "a node is in the record twice: {record:?}");
    let empty = record.agents.iter().find(|agent| agent.devices.is_empty());
    ensure!(empty.is_none(), "{empty:?} runs no device");
    Ok(())
}

fn topology_is(lab: &LabFolder, model: &Model) -> anyhow::Result<()> {
    let read = topology_file::load(&lab.bundle().topology())?;
    let differences = diff(&model.fabric()?, &read);
    ensure!(differences.is_empty(), "the topology differs: {differences:?}");
    for (guid, known) in &model.nodes {
        let node = read.by_guid(*guid).map(|index| read.node(index)).context("a node is missing")?;
        ensure!(node.description == known.name, "{guid} is called {}, not {}", node.description, known.name);
    }
    // What is written again is the same.
    let again = weft_topology::parse("again", &read.write_ibnetdiscover())?;
    ensure!(diff(&read, &again).is_empty(), "the topology is not what it is written as");
    Ok(())
}

fn parts_are(lab: &LabFolder, record: &LabRecord, model: &Model) -> anyhow::Result<()> {
    let address = |agent: &str| record.agents.iter().find(|own| own.name == agent).map(|own| &own.address);
    let mut used: BTreeSet<CableEnd> = BTreeSet::new();
    for agent in &record.agents {
        let part: AgentPart = bundle::load(&lab.bundle().agent(&agent.name))?;
        let devices: BTreeSet<Guid> = part.devices.iter().map(|device| device.guid).collect();
        let own: BTreeSet<Guid> = agent.devices.iter().map(|device| device.guid).collect();
        ensure!(devices == own && part.name == agent.name, "{} is told that it is {part:?}", agent.name);
        for cable in &part.cables {
            ensure!(used.insert(cable.local), "{} is used twice", cable.local);
        }
        let mut told: Vec<_> = part
            .cables
            .iter()
            .map(|cable| (cable.local, cable.remote, cable.remote_addr.clone(), cable.delay_ns))
            .collect();
        told.sort_by_key(|(local, ..)| *local);
        let wanted = model.cables_of(&agent.name).into_iter().map(|(local, remote, at, delay_ns)| {
            (local, remote, (at != agent.name).then(|| address(at).cloned()).flatten(), delay_ns)
        });
        let wanted: Vec<_> = wanted.collect();
        ensure!(told == wanted, "{} is told of {told:?}, not of {wanted:?}", agent.name);
    }
    let files = std::fs::read_dir(lab.bundle().agents())?.count();
    ensure!(files == record.agents.len(), "{files} agents are told something");
    Ok(())
}
