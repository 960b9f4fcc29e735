//! The steps of a heavy sweep.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The steps of a heavy sweep, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SweepPhase {
    /// Find all nodes, ports and cables.
    Discover,
    /// Read the tables of devices that were configured before.
    #[serde(rename = "Learn")]
    ReadTables,
    /// Give LIDs.
    Assign,
    /// Compute forwarding tables.
    Route,
    /// Write the tables that differ.
    Program,
    /// Configure ports, make them Armed, then Active.
    Activate,
    /// Look whether anything changed meanwhile.
    Verify,
}

impl SweepPhase {
    /// All phases, in order.
    pub const ALL: [Self; 7] = [
        Self::Discover,
        Self::ReadTables,
        Self::Assign,
        Self::Route,
        Self::Program,
        Self::Activate,
        Self::Verify,
    ];
}

impl fmt::Display for SweepPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discover => "discover",
            Self::ReadTables => "learn",
            Self::Assign => "assign",
            Self::Route => "route",
            Self::Program => "program",
            Self::Activate => "activate",
            Self::Verify => "verify",
        })
    }
}
