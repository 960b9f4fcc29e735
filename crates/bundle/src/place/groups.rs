//! Groups of devices that share an agent.

use std::collections::BTreeMap;

use weft_topology::{Adapter, Fabric, NodeIndex, PortRef, UPLINK};

/// How many devices an agent process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pack {
    /// This many.
    Devices(usize),
    /// A switch and the hosts at it.
    Leaf,
    /// All of the fabric.
    All,
}

impl std::fmt::Display for Pack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Devices(count) => write!(f, "{count}"),
            Self::Leaf => f.write_str("leaf"),
            Self::All => f.write_str("all"),
        }
    }
}

/// It names no way to group devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a number from 1 up, `leaf` or `all`")]
pub struct PackError;

impl std::str::FromStr for Pack {
    type Err = PackError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("all", _) => Ok(Self::All),
            ("leaf", _) => Ok(Self::Leaf),
            (_, Ok(devices)) if devices > 0 => Ok(Self::Devices(devices)),
            _ => Err(PackError),
        }
    }
}

/// The devices of each agent, in the topology's order.
#[derive(Clone, Debug)]
pub struct Groups {
    members: Vec<Vec<NodeIndex>>,
    /// By node.
    agents: Vec<usize>,
    /// By agent: the leaf that most of its devices belong to.
    leaves: Vec<NodeIndex>,
}

impl Groups {
    /// Deals the devices out. All parts of a virtualised adapter count as one device.
    pub fn new(fabric: &Fabric, adapters: &[Adapter], pack: Pack) -> Self {
        let nodes = fabric.nodes().len();
        let mut units: Vec<NodeIndex> = fabric.iter().map(|(index, _)| index).collect();
        let mut uplinks = BTreeMap::new();
        for adapter in adapters {
            let parts = adapter.vfs.iter().chain([&adapter.vswitch]);
            parts.for_each(|part| units[part.index()] = adapter.pf);
            // That of its first port.
            uplinks.entry(adapter.pf).or_insert(PortRef::new(adapter.vswitch, UPLINK));
        }
        let key = |index: NodeIndex| match (pack, units[index.index()]) {
            (Pack::All, _) => 0,
            // Virtualised adapters keep the index of the HCA that each was, and their parts come last.
            (Pack::Devices(devices), unit) => unit.index() / devices.max(1),
            (Pack::Leaf, unit) => leaf(fabric, unit, uplinks.get(&unit)).index(),
        };
        let mut of_key = vec![None; nodes];
        let (mut members, mut agents): (Vec<Vec<NodeIndex>>, _) = (Vec::new(), Vec::with_capacity(nodes));
        for (index, _) in fabric.iter() {
            // A key is the index of some node, or less.
            let Some(agent) = of_key.get_mut(key(index)) else { continue };
            let agent = *agent.get_or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[agent].push(index);
            agents.push(agent);
        }
        let leaf_of = |group: &Vec<NodeIndex>| {
            let devices = group.iter().filter(|node| units[node.index()] == **node);
            most(devices.map(|device| leaf(fabric, *device, uplinks.get(device))))
        };
        let leaves = members.iter().filter_map(leaf_of).collect();
        Self { members, agents, leaves }
    }

    /// The agent that runs a node.
    pub fn agent_of(&self, node: NodeIndex) -> usize {
        self.agents.get(node.index()).copied().unwrap_or_default()
    }

    /// The switch that stands for an agent among those of its leaf: the leaf of most of its devices, or the switch or host that is of no
    /// leaf itself.
    pub fn leaf_of(&self, agent: usize) -> NodeIndex {
        self.leaves[agent]
    }

    /// The devices of each agent.
    pub fn members(&self) -> &[Vec<NodeIndex>] {
        &self.members
    }

    /// How many cables there are between agents.
    pub fn cables_between(&self, fabric: &Fabric) -> usize {
        let agent = |end: PortRef| self.agent_of(end.node);
        fabric.cables().filter(|cable| agent(cable.a) != agent(cable.b)).count()
    }
}

/// The node whose agent runs a node: a switch itself, and for a host the switch at its first cable, or at its vSwitch's.
fn leaf(fabric: &Fabric, index: NodeIndex, uplink: Option<&PortRef>) -> NodeIndex {
    let node = fabric.node(index);
    let first = match uplink {
        Some(uplink) => fabric.peer(*uplink).map(|peer| peer.node),
        None => node.cabled_ports().next().map(|(_, peer)| peer.node),
    };
    first.filter(|peer| !node.is_switch() && fabric.node(*peer).is_switch()).unwrap_or(index)
}

/// What there is most of; of several the one that comes first in the topology.
fn most(leaves: impl Iterator<Item = NodeIndex>) -> Option<NodeIndex> {
    let mut counts: BTreeMap<NodeIndex, usize> = BTreeMap::new();
    leaves.for_each(|leaf| *counts.entry(leaf).or_default() += 1);
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(leaf, _)| leaf)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    fn fabric() -> Fabric {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../topologies/psmn-x5.topo");
        crate::topology_file::load(std::path::Path::new(path)).unwrap()
    }

    #[test]
    fn every_device_has_one_agent() {
        let fabric = fabric();
        let nodes = fabric.nodes().len();
        for (pack, agents) in [
            (Pack::All, 1),
            (Pack::Devices(1), nodes),
            (Pack::Devices(10), 10),
            (Pack::Leaf, fabric.switches().count()),
        ] {
            let groups = Groups::new(&fabric, &[], pack);
            assert_eq!(groups.members().len(), agents, "{pack}");
            let mut dealt: Vec<_> = groups.members().iter().flatten().copied().collect();
            assert!(groups.members().iter().all(|group| group.is_sorted()), "{pack}");
            dealt.sort();
            assert!(dealt.iter().copied().eq(fabric.iter().map(|(index, _)| index)), "{pack}");
            let of = |(agent, group): (usize, &Vec<NodeIndex>)| {
                group.iter().all(|node| groups.agent_of(*node) == agent)
            };
            assert!(groups.members().iter().enumerate().all(of), "{pack}");
        }
    }

    #[test]
    fn a_host_is_with_its_leaf() {
        let fabric = fabric();
        let groups = Groups::new(&fabric, &[], Pack::Leaf);
        for (index, host) in fabric.hosts() {
            let (_, peer) = host.cabled_ports().next().unwrap();
            assert_eq!(groups.agent_of(index), groups.agent_of(peer.node));
        }
        assert!(groups.cables_between(&fabric) < fabric.cables().count());
    }

    #[test]
    fn an_adapter_is_one_device() {
        let physical = fabric();
        let whole = physical.virtualised(2).unwrap();
        for pack in [Pack::All, Pack::Devices(1), Pack::Devices(10), Pack::Leaf] {
            let before = Groups::new(&physical, &[], pack);
            let groups = Groups::new(&whole.fabric, &whole.adapters, pack);
            assert_eq!(groups.members().len(), before.members().len(), "{pack}");
            for (index, _) in physical.iter() {
                assert_eq!(groups.agent_of(index), before.agent_of(index), "{pack}");
            }
            for adapter in &whole.adapters {
                let parts = adapter.vfs.iter().chain([&adapter.vswitch]);
                let agent = groups.agent_of(adapter.pf);
                assert!(parts.clone().all(|part| groups.agent_of(*part) == agent), "{pack}");
                assert!(parts.clone().all(|part| groups.members()[agent].contains(part)), "{pack}");
            }
            let cables = before.cables_between(&physical);
            assert_eq!(groups.cables_between(&whole.fabric), cables, "functions are cabled inside of agents");
        }
    }
}
