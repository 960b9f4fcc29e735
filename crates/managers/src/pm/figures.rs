//! The performance manager at one moment, for those who look.

use weft_control::Utc;
use weft_pm::Snapshot;

/// The performance manager at one moment.
#[derive(Clone, Debug)]
pub(crate) struct PmFigures {
    /// Whether it is attached to its port.
    pub attached: bool,
    /// Its options.
    pub options: weft_pm::Options,
    /// When the last sweep ended, if one has.
    pub swept_at: Option<Utc>,
    /// What it sees.
    pub snapshot: Snapshot,
}
