//! The two drivers of a run.

use serde::{Deserialize, Serialize};

/// The driver of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// Agent processes in wall-clock time.
    Live,
    /// Virtual time.
    #[default]
    Virtual,
}
