//! End nodes that serve management alone, as aggregation nodes inside of switches do.

use weft_topology::generate::AGGREGATION_NODE;
use weft_topology::{Fabric, Node, NodeIndex};
use weft_wire::{Guid, NodeType};

use crate::sorted;

/// The end nodes to which hosts talk, as they talk to switches, but which do not talk to each other. They may sit at
/// any switch, roots of trees included, and must be reached, but no rule of a tree is broken for them or by them.
///
/// A SHArP aggregation node is one: an HCA with one cabled port whose description begins with "Mellanox Technologies
/// Aggregation Node". An operator can name others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagementNodes {
    /// By node.
    of: Vec<bool>,
}

impl ManagementNodes {
    /// Those that can be recognised, and those that are named by a port's or the node's GUID. No switch is one.
    pub fn new(fabric: &Fabric, named: &[Guid]) -> Self {
        let mut named = named.to_vec();
        sorted::by_key(&mut named, |item| *item);
        let is_named = |node: &Node| {
            let mut guids = node.end_ports().map(|(_, port)| port.guid).chain([node.guid]);
            !named.is_empty() && guids.any(|guid| named.binary_search(&guid).is_ok())
        };
        let serves = |node: &Node| !node.is_switch() && (is_aggregation_node(node) || is_named(node));
        Self { of: fabric.nodes().iter().map(serves).collect() }
    }

    /// Whether this node is one.
    pub fn contains(&self, node: NodeIndex) -> bool {
        self.of.get(node.index()).copied().unwrap_or(false)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.of.iter().filter(|is_one| **is_one).count()
    }
}

fn is_aggregation_node(node: &Node) -> bool {
    node.kind == NodeType::Hca
        && node.description.starts_with(AGGREGATION_NODE)
        && node.cabled_ports().count() == 1
}
