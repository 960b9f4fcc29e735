//! Codes of the architecture by their names: kinds of nodes, and states of ports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of node something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A channel adapter.
    Hca,
    /// A switch.
    Switch,
    /// A router.
    Router,
    /// Something else.
    #[default]
    Other,
}

impl From<weft_wire::NodeType> for NodeKind {
    fn from(node_type: weft_wire::NodeType) -> Self {
        match node_type {
            weft_wire::NodeType::Hca => Self::Hca,
            weft_wire::NodeType::Switch => Self::Switch,
            weft_wire::NodeType::Router => Self::Router,
            _ => Self::Other,
        }
    }
}

/// A port's logical state (PortInfo:PortState).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PortState {
    /// No link.
    #[default]
    Down,
    /// Trained; only subnet management passes.
    Initialize,
    /// Configured; data may be received.
    Armed,
    /// In service.
    Active,
    /// In service, with the link away for a moment.
    ActiveDefer,
    /// A code that no state has.
    Other,
}

impl From<weft_wire::PortState> for PortState {
    fn from(state: weft_wire::PortState) -> Self {
        match state {
            weft_wire::PortState::Down => Self::Down,
            weft_wire::PortState::Initialize => Self::Initialize,
            weft_wire::PortState::Armed => Self::Armed,
            weft_wire::PortState::Active => Self::Active,
            weft_wire::PortState::ActiveDefer => Self::ActiveDefer,
            _ => Self::Other,
        }
    }
}

/// As the specification writes it.
impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
