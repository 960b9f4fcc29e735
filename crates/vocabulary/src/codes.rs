//! Codes of the architecture by their names: kinds of nodes, and states of ports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Takes over the codes of the architecture that have the same names here; all others are one.
macro_rules! of_wire {
    ($code:ident => $name:ident { $( $known:ident, )+ _ => $other:ident }) => {
        impl From<weft_wire::$code> for $name {
            fn from(code: weft_wire::$code) -> Self {
                match code {
                    $( weft_wire::$code::$known => Self::$known, )+
                    _ => Self::$other,
                }
            }
        }
    };
}

pub(crate) use of_wire;

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

of_wire!(NodeType => NodeKind { Hca, Switch, Router, _ => Other });

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

of_wire!(PortState => PortState { Down, Initialize, Armed, Active, ActiveDefer, _ => Other });

/// A port's physical state (PortInfo:PortPhysicalState).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PhysState {
    /// Neither driving nor listening.
    Sleep,
    /// Looking for a peer.
    #[default]
    Polling,
    /// Switched off by management.
    Disabled,
    /// Agreeing on width and speed.
    Training,
    /// The link works.
    LinkUp,
    /// Training again after errors.
    ErrorRecovery,
    /// A code that no state has.
    Other,
}

of_wire!(PhysState => PhysState { Sleep, Polling, Disabled, Training, LinkUp, ErrorRecovery, _ => Other });

/// As the specification writes it.
impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// As the specification writes it.
impl fmt::Display for PhysState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
