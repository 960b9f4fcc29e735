//! Between whom packets go.

use std::fmt;

use serde::{Deserialize, Serialize};
use weft_wire::Lid;

/// A source LID and a destination LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    /// The sender.
    pub source: Lid,
    /// The receiver.
    pub destination: Lid,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from LID {} to LID {}", self.source, self.destination)
    }
}
