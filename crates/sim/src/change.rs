use serde::{Deserialize, Serialize};
use weft_topology::{NodeIndex, PortRef};

/// A device or a cable comes or goes, as an operator wants it: its node is asked to ([`SimOptions::recabling`]).
///
/// [`SimOptions::recabling`]: crate::SimOptions::recabling
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A device is taken out of its node, and all its cables with it.
    Remove(NodeIndex),
    /// A device that was taken out is put back: the same GUIDs, no cables.
    Add(NodeIndex),
    /// A cable is put into two free ports.
    Connect([PortRef; 2]),
    /// The cable in a port is taken out.
    Disconnect(PortRef),
}
