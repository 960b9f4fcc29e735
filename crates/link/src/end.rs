//! The name of a cable's end.

use std::fmt;

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

impl fmt::Display for CableEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.guid, self.port)
    }
}
