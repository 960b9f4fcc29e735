//! Ends of cables, and hot spots.

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, PortNum};

use crate::{HexGuid, NodeKind};

/// An end of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PmEnd"))]
pub struct End {
    /// The node's description.
    pub name: String,
    /// What kind of node it is.
    pub kind: NodeKind,
    /// The node's GUID.
    pub node_guid: HexGuid,
    /// The GUID of the port; on a switch, of its port 0.
    pub port_guid: HexGuid,
    /// The LID of the port; on a switch, of its port 0.
    pub lid: Lid,
    /// The port.
    pub port: PortNum,
}

/// A hot spot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HotSpot {
    /// The host's LID.
    pub lid: Lid,
    /// The host's port.
    pub port_guid: HexGuid,
    /// The sweep that found it.
    pub since_sweep: u64,
    /// The ports of the hosts that are asked to keep to the slow lane towards it.
    pub contributors: Vec<HexGuid>,
}
