use serde::{Deserialize, Serialize};

/// What a node is (NodeInfo, IBA 14.2.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeType {
    /// A host channel adapter.
    Hca,
    /// A switch.
    Switch,
    /// A router.
    Router,
    /// A value without a name here.
    Other(u8),
}
