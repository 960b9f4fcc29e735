//! Between whom packets go.

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

weft_wire::displayed!(Pair { source, destination } => "from LID {source} to LID {destination}");
