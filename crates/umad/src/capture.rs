//! What a program that captures and an agent say to each other.
//!
//! ```text
//!   program ── Capture(Tap) ──▶ agent          the agent gathers packets for a few milliseconds
//!           ◀─ Done, Captured, Captured, … ─   and drops what the program does not read in time
//!           ── EndCapture ────▶
//!           ◀─ …, Captured, CaptureEnded ──
//! ```

use serde::{Deserialize, Serialize};

use crate::PortEnd;

/// Where an agent is to listen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tap {
    /// At every port, to what it sends: whoever taps all agents of a fabric so gets each packet once.
    Everything,
    /// At these ports.
    Ports(Vec<TappedPort>),
}

/// A port to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TappedPort {
    /// The port.
    pub end: PortEnd,
    /// Whether to listen to what it receives, and not only to what it sends.
    pub received: bool,
}

/// A packet that was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The port that sent or received it.
    pub end: PortEnd,
    /// The port sent it.
    pub sent: bool,
    /// The port received it and refuses it: its length, lane or VCRC is wrong.
    pub damaged: bool,
    /// When, in nanoseconds since 1970-01-01, UTC, by the clock of the agent's machine.
    pub time_ns: u64,
    /// Packets before this one that were not told, because this connection read too slowly.
    pub lost: u32,
    /// From LRH to VCRC.
    #[serde(with = "bytes")]
    pub packet: Vec<u8>,
}

/// What became of the packets of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureTotals {
    /// Packets told.
    pub packets: u64,
    /// Packets not told, because the connection read too slowly.
    pub lost: u64,
}

/// Bytes as bytes: serde takes a vector of them for a list of numbers otherwise.
mod bytes {
    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }

            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}
