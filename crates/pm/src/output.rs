use serde::{Deserialize, Serialize};
use weft_vocabulary::pm::Event;
use weft_wire::AddressedMad;

/// What the manager wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // Most outputs are sends; boxing them would cost more than it saves.
pub enum Output {
    /// Send a MAD.
    Send(AddressedMad),
    /// Something worth logging or showing.
    Event(Event),
}
