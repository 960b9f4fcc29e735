//! The performance manager at one moment, for those who look.

use tokio::sync::watch;
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
    /// Counts sweeps and events: between two of them the fabric looks the same.
    pub editions: watch::Receiver<u64>,
    /// What it sees.
    pub snapshot: Snapshot,
}
