//! The name of a cable's end.

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, PortNum};

/// One end of a cable: a port of the node with this GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CableEnd {
    /// The node's GUID.
    pub guid: Guid,
    /// The node's port.
    pub port: PortNum,
}

weft_wire::displayed!(CableEnd { guid, port } => "{guid}:{port}");
