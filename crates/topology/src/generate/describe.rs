//! Descriptions of adapters as Linux gives them.

use std::collections::BTreeMap;

use super::GenerateError;
use crate::{Fabric, FabricBuilder};

/// `fabric` with every HCA described as Linux does, by the host's name and the adapter's: `host-3 mlx5_0`. Management programs find hosts by
/// that form. The adapters of one host are numbered in the order of the fabric. HCAs whose description has a space already keep it.
pub fn described_as_linux(fabric: &Fabric) -> Result<Fabric, GenerateError> {
    let mut builder = FabricBuilder::new();
    let mut adapters: BTreeMap<&str, u32> = BTreeMap::new();
    for known in fabric.nodes() {
        let mut node = known.clone();
        node.ports.iter_mut().for_each(|port| port.peer = None);
        if node.kind == weft_wire::NodeType::Hca && !node.description.contains(' ') {
            let adapter = adapters.entry(&known.description).or_default();
            node.description = format!("{} mlx5_{adapter}", known.description);
            *adapter += 1;
        }
        builder.add_node(node)?;
    }
    for cable in fabric.cables() {
        builder.connect(cable.a, cable.b)?;
    }
    Ok(builder.build())
}
