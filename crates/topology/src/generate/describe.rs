//! Descriptions of adapters as Linux gives them.

use super::GenerateError;
use crate::{Fabric, FabricBuilder};

/// `fabric` with every HCA described as Linux does, by the host's name and the adapter's: `host-3 mlx5_0`. Management programs find hosts by
/// that form. HCAs whose description has a space already keep it.
pub fn described_as_linux(fabric: &Fabric) -> Result<Fabric, GenerateError> {
    let mut builder = FabricBuilder::new();
    for node in fabric.nodes() {
        let mut node = node.clone();
        node.ports.iter_mut().for_each(|port| port.peer = None);
        if node.kind == weft_wire::NodeType::Hca && !node.description.contains(' ') {
            node.description.push_str(" mlx5_0");
        }
        builder.add_node(node)?;
    }
    for cable in fabric.cables() {
        builder.connect(cable.a, cable.b)?;
    }
    Ok(builder.build())
}
