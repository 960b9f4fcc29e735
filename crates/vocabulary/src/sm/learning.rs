//! Status of routing that learns from what hosts receive.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What has come of reports of what hosts receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Learning {
    /// Reports after which tables were written.
    pub taken: u64,
    /// Reports after which tables stayed as they were.
    pub kept: u64,
    /// The share of all that hosts received that the busiest link carries by the last report and the tables after it, in billionths.
    pub busiest: u32,
}

impl Learning {
    /// Whether a report has come.
    pub fn is_of_interest(self) -> bool {
        self.taken + self.kept > 0
    }
}

impl fmt::Display for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { taken, kept, busiest } = self;
        let percent = f64::from(*busiest) / 1e7;
        write!(
            f,
            "learned from traffic: {taken} times, {kept} times kept; the busiest link carries {percent:.2} % of what hosts receive"
        )
    }
}
