//! Datagrams that tell hosts of other paths.

use serde::{Deserialize, Serialize};

/// Bytes of a datagram.
pub const MAD_BYTES: u64 = 256;

/// Datagrams between subnet administration and hosts about paths that have changed, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Signalled {
    /// Reports to subscribers, of any trap, repetitions included.
    pub reports: u64,
    /// Answers to these.
    pub responses: u64,
    /// Questions for path records in a table.
    pub queries: u64,
    /// Segments of tables, repetitions included.
    pub segments: u64,
    /// Acknowledgements of segments.
    pub acks: u64,
    /// Questions for services, as hosts ask for the GUID of a machine's name. Not among all, as hosts ask of their own accord.
    #[serde(default)]
    pub names: u64,
    /// Questions for one path record. Not among all either.
    #[serde(default)]
    pub paths: u64,
}

impl Signalled {
    /// All of them but questions that hosts ask of their own accord.
    pub fn total(&self) -> u64 {
        self.reports + self.responses + self.queries + self.segments + self.acks
    }

    /// Their bytes, without the headers of packets.
    pub fn bytes(&self) -> u64 {
        self.total() * MAD_BYTES
    }

    /// What has come to this since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reports: self.reports.saturating_sub(before.reports),
            responses: self.responses.saturating_sub(before.responses),
            queries: self.queries.saturating_sub(before.queries),
            segments: self.segments.saturating_sub(before.segments),
            acks: self.acks.saturating_sub(before.acks),
            names: self.names.saturating_sub(before.names),
            paths: self.paths.saturating_sub(before.paths),
        }
    }
}
