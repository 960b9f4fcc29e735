//! The words of faults, as commands, files and events have them.

weft_wire::named! {
    /// What somebody broke or repaired on purpose.
    #[derive(PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fault"))]
    pub enum Word {
        /// A process was killed.
        Kill = "kill",
        /// A process was started again.
        Restart = "restart",
        /// Both ends of a cable were unplugged.
        LinkDown = "link-down",
        /// Both ends of a cable were plugged in.
        LinkUp = "link-up",
        /// A node or a process stopped answering.
        Freeze = "freeze",
        /// A frozen node or process went on.
        Thaw = "thaw",
        /// Nodes were parted from the others.
        Partition = "partition",
        /// A partition ended.
        Heal = "heal",
        /// An agent proves itself with an identity that no peer takes.
        BadIdentity = "bad-identity",
        /// An agent has its own identity again.
        GoodIdentity = "good-identity",
        /// A fault that lasts was cleared by its name.
        Clear = "clear",
        /// Packets of a cable vanish.
        Loss = "loss",
        /// Packets of a cable are late.
        Delay = "delay",
        /// Packets of a cable are late by times that differ.
        Jitter = "jitter",
        /// Packets of a cable overtake others.
        Reorder = "reorder",
        /// Management packets of a cable arrive twice.
        Duplicate = "duplicate",
        /// Packets of a cable are damaged.
        BitErrors = "bit-errors",
        /// A link goes and comes back, again and again.
        Flap = "flap",
        /// A port has fewer lanes.
        Width = "width",
        /// A port is slower.
        Speed = "speed",
        /// A host takes packets slowly.
        SlowDrain = "slow-drain",
    }
}

impl Word {
    /// The words of a fault that is no impairment, in the order of its variants.
    pub const OF_FAULTS: [Self; 10] = *Self::ALL.first_chunk().expect("they come first");

    /// The words of an [`Impairment`](crate::Impairment), in the order of its variants.
    pub const OF_IMPAIRMENTS: [Self; 10] = *Self::ALL.last_chunk().expect("they come last");

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
}
