//! The state of a queue pair that changes its lane; how it changes is in [`moves`](super::moves).

use serde::{Deserialize, Serialize};
use weft_machine::Time;

use super::paths::Address;

/// A change under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Moving {
    No,
    /// SQD: nothing new behind `boundary`.
    Drain {
        to: Address,
        at: Time,
        boundary: u64,
    },
    /// REARM.
    Rearm {
        to: Address,
        at: Time,
    },
}

impl Moving {
    /// Up to where new packets may be sent.
    #[inline]
    pub(super) fn boundary(&self) -> u64 {
        match self {
            Self::Drain { boundary, .. } => *boundary,
            _ => u64::MAX,
        }
    }

    /// When it was asked for.
    pub(super) fn since(&self) -> Option<Time> {
        match self {
            Self::No => None,
            Self::Drain { at, .. } | Self::Rearm { at, .. } => Some(*at),
        }
    }

    /// Whether every packet asks for an acknowledgement.
    #[inline]
    pub(super) fn asks(&self) -> bool {
        matches!(self, Self::Rearm { .. })
    }
}
