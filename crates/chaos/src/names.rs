//! Schedules as files have them: nodes by name, cables by one of their ends, `node/port`.

use weft_topology::{Fabric, FindError, NodeIndex, PortRef};
use weft_wire::PortNum;

use crate::Planned;

/// A name of a schedule means nothing in a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadName {
    /// No such node.
    #[error(transparent)]
    Node(#[from] FindError),
    /// Not the end of a cable.
    #[error("`{0}` is not the end of a cable, as in `leaf-1/3`")]
    Port(String),
}

/// A fault with the names of its nodes and cables.
pub fn named(fabric: &Fabric, planned: &Planned<NodeIndex, PortRef>) -> Planned<String, String> {
    let node = |index: NodeIndex| fabric.label(index);
    let port = |at: PortRef| format!("{}/{}", fabric.label(at.node), at.port);
    Planned { at: planned.at, fault: planned.fault.clone().map(node, port), lasts: planned.lasts }
}

/// A fault with its names looked up.
///
/// # Errors
///
/// A name that the fabric does not have.
pub fn resolved(
    fabric: &Fabric,
    planned: &Planned<String, String>,
) -> Result<Planned<NodeIndex, PortRef>, BadName> {
    let node = |name: String| Ok(fabric.find(&name)?);
    let port = |name: String| {
        let unknown = || BadName::Port(name.clone());
        let (node, port) = name.rsplit_once('/').ok_or_else(unknown)?;
        let at = PortRef::new(fabric.find(node)?, PortNum(port.parse().map_err(|_| unknown())?));
        fabric.peer(at).map(|_| at).ok_or_else(unknown)
    };
    let fault = planned.fault.clone().try_map::<_, _, BadName>(node, port)?;
    Ok(Planned { at: planned.at, fault, lasts: planned.lasts })
}
