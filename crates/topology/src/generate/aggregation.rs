//! End nodes inside of switches.

use weft_wire::{Guid, NodeType, PortNum};

use super::GenerateError;
use crate::{Fabric, LinkRate, Node, PortRef};

/// How the descriptions of SHArP's aggregation nodes begin.
pub const AGGREGATION_NODE: &str = "Mellanox Technologies Aggregation Node";

/// What distinguishes the GUID of an end node inside of a switch from the switch's.
const INSIDE: u64 = 0x0010_0000_0000_0000;

/// `fabric` with an HCA of one port more at every switch, as sites with SHArP have; theirs are [`AGGREGATION_NODE`]s. It takes
/// the last free port of the switch.
///
/// # Errors
///
/// A switch without a free port.
pub fn with_node_at_every_switch(fabric: &Fabric, description: &str) -> Result<Fabric, GenerateError> {
    let mut builder = fabric.builder(|_| true, fabric.cables())?;
    for (index, node) in fabric.switches() {
        let is_free = |port: &u8| fabric.peer(PortRef::new(index, PortNum(*port))).is_none();
        let free = (1..=node.port_count()).rev().find(is_free).ok_or(GenerateError::Radix {
            needed: u64::from(node.port_count()) + 1,
            radix: node.port_count(),
        })?;
        let mut inside = Node::new(NodeType::Hca, Guid(node.guid.0 | INSIDE), 1, LinkRate::default());
        inside.description = description.to_owned();
        let inside = builder.add_node(inside)?;
        builder.connect(PortRef::new(inside, PortNum(1)), PortRef::new(index, PortNum(free)))?;
    }
    Ok(builder.build())
}
