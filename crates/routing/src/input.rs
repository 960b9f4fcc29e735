//! Input of the engines: switches, cables, end ports and LIDs.

use weft_topology::Fabric;

use crate::lids::Lids;
use crate::options::EngineOptions;

/// What an engine works from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The cabling.
    pub fabric: &'a Fabric,
    /// The owners of LIDs.
    pub lids: &'a Lids,
    /// What the operator chose.
    pub options: &'a EngineOptions,
}
