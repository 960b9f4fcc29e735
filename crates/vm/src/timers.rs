//! Timers of a VM manager.

use std::fmt;

/// What a VM manager waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmTimer {
    /// Agents tell what they have.
    Gather,
    /// An agent has not answered in time.
    Agent,
    /// A stage of a move ends, or is given up.
    Stage,
    /// The subnet manager has not answered in time.
    SubnetManager,
    /// A client has waited long enough.
    Client,
}

impl fmt::Display for VmTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gather => "waiting for agents' reports",
            Self::Agent => "agent: timeout",
            Self::Stage => "stage of a move",
            Self::SubnetManager => "subnet manager: timeout",
            Self::Client => "client: timeout",
        })
    }
}
