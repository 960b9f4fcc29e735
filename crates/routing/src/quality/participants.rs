//! The end ports that take part in a pattern.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use weft_topology::Fabric;
use weft_wire::{Guid, Lid, NodeType};

use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::partitions::Partition;
use crate::sorted;

use super::UnknownLid;
use super::paths::{Endpoint, Paths};

/// The LIDs that send and receive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Participants {
    /// The first group: all, unless two patterns run against each other; then those whose delay counts, the victims.
    pub first: Vec<Lid>,
    /// The second group: those who interfere. They run nothing but the second of two patterns.
    pub second: Vec<Lid>,
}

/// The ports of HCAs that have a cable, by their first LID, in LID order. LIDs of virtual functions are left out, and so
/// are aggregation nodes.
pub fn hosts(fabric: &Fabric, lids: &Lids) -> Vec<Lid> {
    let management = ManagementNodes::new(fabric, &[]);
    let mut first = BTreeMap::new();
    for port_lids in lids.iter() {
        let port = port_lids.port;
        if fabric.node(port.node).kind == NodeType::Hca
            && fabric.peer(port).is_some()
            && !management.contains(port.node)
        {
            first.entry(port).or_insert(port_lids.base);
        }
    }
    let mut hosts: Vec<Lid> = first.into_values().collect();
    sorted::by_key(&mut hosts, |item| *item);
    hosts
}

/// The hosts that are in a partition, by port or node GUID, in LID order.
pub fn members(fabric: &Fabric, lids: &Lids, partition: &Partition) -> Vec<Lid> {
    let mut guids: Vec<Guid> = partition.members.iter().map(|member| member.guid).collect();
    sorted::by_key(&mut guids, |item| *item);
    let is_member = |lid: &Lid| {
        let Some(port) = lids.owner(*lid) else { return false };
        let (own, node) = (fabric.port(port).map(|port| port.guid), fabric.node(port.node).guid);
        guids.binary_search(&node).is_ok() || own.is_some_and(|guid| guids.binary_search(&guid).is_ok())
    };
    hosts(fabric, lids).into_iter().filter(is_member).collect()
}

impl Participants {
    /// One group.
    pub fn all(lids: Vec<Lid>) -> Self {
        Self { first: lids, second: Vec::new() }
    }

    /// Two groups: `count` of these, drawn at random, are the first, the others the second.
    pub fn drawn(mut lids: Vec<Lid>, count: usize, seed: u64) -> Self {
        lids.shuffle(&mut super::random::generator(seed, 0));
        let second = lids.split_off(count.min(lids.len()));
        sorted::by_key(&mut lids, |item| *item);
        let mut drawn = Self { first: lids, second };
        sorted::by_key(&mut drawn.second, |item| *item);
        drawn
    }
}

/// Participants as columns of [`Paths`].
pub(crate) fn endpoints(paths: &Paths<'_>, lids: &[Lid]) -> Result<Vec<Endpoint>, UnknownLid> {
    lids.iter().map(|lid| paths.endpoint(*lid).ok_or(UnknownLid(*lid))).collect()
}
