//! Partitions and weights with their hosts looked up.

use std::collections::BTreeMap;

use weft_device::DeviceOptions;
use weft_routing::files::partitions::{Membership, PartitionRule, PartitionsFile, PortRule, Who};
use weft_routing::{Partitions, WEIGHTS};
use weft_topology::Loader;
use weft_wire::Guid;

use super::names::Names;
use crate::file::{At, Role, VM_PREFIX, Wrong};
use crate::{PartitionSpec, PartitionsSpec, WeightSpec};

/// The partitions. `own` is the experiment's file, and `manager` the port of the subnet manager, which is a full member of the
/// default partition.
pub(super) fn partitions(
    names: &Names<'_>,
    own: &str,
    manager: Guid,
    load: &mut Loader<'_>,
) -> Result<Option<Partitions>, Wrong> {
    let file = match &names.choice.experiment.engine.partitions {
        None => return Ok(None),
        Some(PartitionsSpec::File(path)) => {
            let wrong = |error: String| names.choice.wrong(Role::Topology, path, error);
            let text = load(path, own).map_err(|error| wrong(format!("`{path}` cannot be read: {error}")))?;
            PartitionsFile::parse(path, &text).map_err(|error| wrong(error.to_string()))?
        }
        Some(PartitionsSpec::Tables { list, policies }) => {
            let rules = list.iter().map(|partition| rule(names, partition)).collect::<Result<_, _>>()?;
            PartitionsFile { rules, strictness: Some(*policies) }
        }
    };
    let partitions = file.resolve(names.fabric, Some(manager));
    fit(names, &partitions)?;
    Ok(Some(partitions))
}

fn rule(names: &Names<'_>, spec: &PartitionSpec) -> Result<PartitionRule, Wrong> {
    let mut ports = Vec::new();
    for (texts, membership) in [(&spec.limited, Membership::Limited), (&spec.members, Membership::Full)] {
        for guid in members(names, texts)? {
            ports.push(PortRule { who: Who::Port(guid), membership: Some(membership) });
        }
    }
    Ok(PartitionRule {
        name: spec.name.clone(),
        pkey: spec.p_key,
        isolation: Some(spec.policy),
        ports,
        ..PartitionRule::default()
    })
}

/// The ports of hosts and of virtual machines, whose ports go with them.
fn members(names: &Names<'_>, texts: &[String]) -> Result<Vec<Guid>, Wrong> {
    let mut guids = Vec::new();
    for text in texts {
        if text.starts_with(VM_PREFIX) {
            guids.push(names.end_guid(names.end(text)?));
        } else {
            let hosts = names.hosts(std::slice::from_ref(text))?;
            guids.extend(hosts.into_iter().map(|host| names.port_guid(host)));
        }
    }
    Ok(guids)
}

/// Every port has room for its P_Keys.
fn fit(names: &Names<'_>, partitions: &Partitions) -> Result<(), Wrong> {
    let mut counts: BTreeMap<Guid, u16> = BTreeMap::new();
    for member in partitions.list.iter().flat_map(|partition| &partition.members) {
        *counts.entry(member.guid).or_default() += 1;
    }
    let room = DeviceOptions::default().partition_cap;
    match counts.iter().find(|(_, count)| **count > room) {
        None => Ok(()),
        Some((guid, count)) => {
            let host = names.fabric.by_port_guid(*guid).map(|node| names.name(node).to_owned());
            let host = host.unwrap_or_else(|| guid.to_string());
            let wrong = Wrong::new(At::default(), format!("{host} is in {count} partitions"));
            Err(wrong
                .allowed(format!("a port has room for {room} P_Keys, the default partition's among them")))
        }
    }
}

/// The weights of hosts by their ports.
pub(super) fn weights(names: &Names<'_>, told: &[WeightSpec]) -> Result<BTreeMap<Guid, u32>, Wrong> {
    let mut weights = BTreeMap::new();
    for spec in told {
        for host in names.hosts(std::slice::from_ref(&spec.hosts))? {
            let weight = spec.weight.clamp(*WEIGHTS.start(), *WEIGHTS.end());
            weights.insert(names.port_guid(host), weight);
        }
    }
    Ok(weights)
}
