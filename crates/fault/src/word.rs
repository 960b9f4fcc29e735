//! The words of faults, as commands, files and events have them.

use serde::{Deserialize, Serialize};

/// What somebody broke or repaired on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fault"))]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// A process was killed.
    Kill,
    /// A process was started again.
    Restart,
    /// Both ends of a cable were unplugged.
    LinkDown,
    /// Both ends of a cable were plugged in.
    LinkUp,
    /// A node or a process stopped answering.
    Freeze,
    /// A frozen node or process went on.
    Thaw,
    /// Nodes were parted from the others.
    Partition,
    /// A partition ended.
    Heal,
    /// An agent proves itself with an identity that no peer takes.
    BadIdentity,
    /// An agent has its own identity again.
    GoodIdentity,
    /// A fault that lasts was cleared by its name.
    Clear,
    /// Packets of a cable vanish.
    Loss,
    /// Packets of a cable are late.
    Delay,
    /// Packets of a cable are late by times that differ.
    Jitter,
    /// Packets of a cable overtake others.
    Reorder,
    /// Management packets of a cable arrive twice.
    Duplicate,
    /// Packets of a cable are damaged.
    BitErrors,
    /// A link goes and comes back, again and again.
    Flap,
    /// A port has fewer lanes.
    Width,
    /// A port is slower.
    Speed,
    /// A host takes packets slowly.
    SlowDrain,
}

impl Word {
    /// The words of a fault that is no impairment, in the order of its variants.
    pub const OF_FAULTS: [Self; 10] = [
        Self::Kill,
        Self::Restart,
        Self::LinkDown,
        Self::LinkUp,
        Self::Freeze,
        Self::Thaw,
        Self::Partition,
        Self::Heal,
        Self::BadIdentity,
        Self::GoodIdentity,
    ];

    /// The words of an [`Impairment`](crate::Impairment), in the order of its variants.
    pub const OF_IMPAIRMENTS: [Self; 10] = [
        Self::Loss,
        Self::Delay,
        Self::Jitter,
        Self::Reorder,
        Self::Duplicate,
        Self::BitErrors,
        Self::Flap,
        Self::Width,
        Self::Speed,
        Self::SlowDrain,
    ];

    /// Whether links go down with it, so that devices notice.
    pub const fn takes_links(self) -> bool {
        !matches!(
            self,
            Self::Loss
                | Self::Delay
                | Self::Jitter
                | Self::Reorder
                | Self::Duplicate
                | Self::BitErrors
                | Self::SlowDrain
        )
    }

    /// Its name in commands, files and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::LinkDown => "link-down",
            Self::LinkUp => "link-up",
            Self::Freeze => "freeze",
            Self::Thaw => "thaw",
            Self::Partition => "partition",
            Self::Heal => "heal",
            Self::BadIdentity => "bad-identity",
            Self::GoodIdentity => "good-identity",
            Self::Clear => "clear",
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Reorder => "reorder",
            Self::Duplicate => "duplicate",
            Self::BitErrors => "bit-errors",
            Self::Flap => "flap",
            Self::Width => "width",
            Self::Speed => "speed",
            Self::SlowDrain => "slow-drain",
        }
    }
}
