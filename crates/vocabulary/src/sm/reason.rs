//! Reasons: of sweeps, and of notices to hosts about their paths.

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid, PortNum, RepathKind, TrapNumber};

#[cfg(feature = "schema")]
use crate::HexGuid;
use crate::hex;

/// Why a sweep began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SweepReason"))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The manager was attached.
    Start,
    /// The operator wanted it.
    Command,
    /// It was time.
    Interval,
    /// A trap came.
    Trap {
        /// Its number.
        number: TrapNumber,
        /// The sender's LID.
        lid: Lid,
    },
    /// A switch says that a port changed.
    StateChange {
        /// The switch.
        #[serde(with = "hex")]
        #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
        guid: Guid,
    },
    /// A switch did not answer.
    NoAnswer {
        /// The switch.
        #[serde(with = "hex")]
        #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
        guid: Guid,
    },
    /// A node answers that did not answer before.
    Answer {
        /// The node in front of it.
        #[serde(with = "hex")]
        #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
        guid: Guid,
        /// The port that leads to it.
        port: PortNum,
    },
    /// The manager's own port changed.
    OwnPort,
    /// Another manager came, went, or handed over.
    Managers,
    /// The sweep before was not complete.
    Incomplete,
    /// What repairs have left burdens cables more than it has to, or does not hold.
    Unbalanced,
    /// Partitions have changed.
    Partitions,
    /// By what hosts receive other tables burden the busiest link less.
    Received,
}

/// What a repath or unpath notice asks of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RepathUse {
    /// To ask for all paths again.
    Wildcard,
    /// To take another service level on one path.
    Path,
    /// To take the slow lane towards a hot spot.
    HotSpot,
    /// That a port has another LID.
    Lid,
    /// To ask again what the ways from and to a port carry.
    Rate,
    /// To hold queue pairs to a port whose ways are about to have other service levels.
    Hold,
    /// To ask again for the ways from and to a port, which have other service levels.
    Levels,
    /// A code that no use has.
    Other,
}

impl From<RepathKind> for RepathUse {
    fn from(code: RepathKind) -> Self {
        match code {
            RepathKind::WILDCARD => Self::Wildcard,
            RepathKind::PATH => Self::Path,
            RepathKind::HOT_SPOT => Self::HotSpot,
            RepathKind::NEW_LID => Self::Lid,
            RepathKind::RATE => Self::Rate,
            RepathKind::HOLD => Self::Hold,
            RepathKind::LEVELS => Self::Levels,
            _ => Self::Other,
        }
    }
}
