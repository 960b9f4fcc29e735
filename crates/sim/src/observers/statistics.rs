//! Counts of a run.

use serde::Serialize;

/// How much there was to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimStatistics {
    /// Things that happened.
    pub events: u64,
    /// Packets that went into a cable.
    pub packets: u64,
    /// Of those, the ones whose body is a length.
    pub data_packets: u64,
    /// Flow control packets that went into a cable.
    pub credits: u64,
    /// Packets that a rule lost.
    pub lost: u64,
    /// Packets that a rule delayed.
    pub delayed: u64,
    /// Packets that a link took with it when it went.
    pub cut_off: u64,
    /// Packets sent without credit; each ends its link, which then begins again.
    pub credit_overruns: u64,
    /// How often a node had come to no end at one moment, and went on later.
    pub host_pauses: u64,
    /// Number of times an end noticed the loss of its link.
    pub link_losses: u64,
    /// Of those, how often within 50 ms.
    pub link_losses_brief: u64,
    /// How often it did not count it, or did not send a trap though it is a switch with a manager.
    pub link_losses_unnoticed: u64,
}
