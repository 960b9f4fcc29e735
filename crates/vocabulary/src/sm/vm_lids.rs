//! Status of virtual functions' LIDs, from subnet managers.

use std::fmt;

use serde::{Deserialize, Serialize};
use weft_wire::count_of;

/// LIDs of virtual functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmLids {
    /// Those that a function has.
    pub in_use: u32,
    /// Those of functions that are gone, which no other gets yet.
    pub quarantined: u32,
    /// How many more there are.
    pub free: u32,
    /// Functions without one, because no more were left.
    pub refused: u32,
    /// Those of machines that have moved and of which some switches get their rows late.
    #[serde(default)]
    pub late: u32,
    /// What has become of the balance of their rows.
    #[serde(default)]
    pub rebalances: Rebalances,
}

/// What has become of the balance of the rows of machines' LIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rebalances {
    /// Rebalances that were completed.
    pub runs: u64,
    /// LIDs whose rows they wrote.
    pub lids: u64,
    /// Blocks of forwarding tables that they wrote.
    pub smps: u64,
    /// How good the tables in force were beside fresh ones when they were weighed last, in thousandths; 0 before.
    pub balance: u32,
}

impl VmLids {
    /// The same with `late` late ones.
    #[must_use]
    pub fn with_late(self, late: u32) -> Self {
        Self { late, ..self }
    }

    /// Whether there are any, or should be.
    pub fn are_of_interest(self) -> bool {
        self.in_use + self.quarantined + self.refused + self.late > 0
    }
}

impl fmt::Display for VmLids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_use, quarantined, free, refused, late, rebalances } = self;
        write!(f, "LIDs of virtual functions: {in_use} in use, {quarantined} in quarantine, {free} free")?;
        if *refused > 0 {
            write!(f, "; without one: {}", count_of(*refused as usize, "function"))?;
        }
        if *late > 0 {
            write!(f, "; {late} have moved and get their last rows late")?;
        }
        let Rebalances { runs, lids, smps, balance } = rebalances;
        if *balance > 0 {
            write!(f, "\nbalance of their rows: {:.1} % of a fresh routing's", f64::from(*balance) / 10.0)?;
            let (lids, smps) = (count_of(*lids as usize, "LID"), count_of(*smps as usize, "SMP"));
            write!(f, "; rebalances: {runs}, {lids} by {smps}")?;
        }
        Ok(())
    }
}
