//! Faults that last until they are cleared.

use serde::{Deserialize, Serialize};
pub use weft_fault::{BadFaultId, BadIdentity, FaultId, Impairment, Word};

use crate::Utc;
use crate::agent::PortEnd;

/// What an agent is to break.
pub type Damage = weft_fault::Damage<PortEnd>;

/// A fault that lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LastingFault {
    /// Its name.
    pub id: FaultId,
    /// What is broken here.
    pub damage: Damage,
    /// Since when.
    pub since: Utc,
    /// When the agent itself ends it; none when it is to be cleared.
    pub until: Option<Utc>,
}

impl LastingFault {
    /// The same by a clock that the agent's is ahead of, by this number of nanoseconds.
    #[must_use]
    pub fn less(self, ahead_ns: i64) -> Self {
        let until = self.until.map(|until| until.less(ahead_ns));
        Self { since: self.since.less(ahead_ns), until, ..self }
    }
}
