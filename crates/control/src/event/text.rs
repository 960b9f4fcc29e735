//! Sentences for people.

use std::fmt;

use weft_vocabulary::words::name;
use weft_wire::Printable;

use super::{Event, EventKind, Place};

/// A line: time, source and sentence.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padding is for plain text alone.
        let source = Printable(&self.source).to_string();
        write!(f, "{} {source:<6} {}", self.time, self.kind)
    }
}

/// The place and the sentence.
impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { node, port, .. }) = self.place() {
            f.write_str(&name(node))?;
            port.iter().try_for_each(|port| write!(f, " port {port}"))?;
            f.write_str(": ")?;
        }
        f.write_str(&self.sentence())
    }
}

impl EventKind {
    /// The device and the port where it happened, where an agent says so.
    pub fn place(&self) -> Option<Place<'_>> {
        match self {
            Self::Agent(event) => event.place(),
            Self::Sm(_) | Self::Pm(_) | Self::Vm(_) | Self::Process(_) | Self::Lab(_) => None,
        }
    }
}
