use serde::Serialize;
use weft_wire::AddressedMad;

use crate::{Event, GuidToLid};

/// What the subnet manager wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(clippy::large_enum_variant)] // Most outputs are sends; boxing them would cost more than it saves.
pub enum Output {
    /// Send this from the port that the manager is behind.
    Send(AddressedMad),
    /// Something that people or tests may want to know.
    Event(Event),
    /// Keep these LIDs for the next start: `to_string()` is the content of the `guid2lid` file.
    Persist(GuidToLid),
}
