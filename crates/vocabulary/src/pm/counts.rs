//! Counts: totals of ports, and the performance manager's own.

use serde::{Deserialize, Serialize};
use weft_machine::Time;

/// A port's totals, in the units of its performance agent: data in 4-byte words, waiting in ticks of 4 ns of fabric time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PmTotals"))]
pub struct Totals {
    /// PortXmitData.
    pub port_xmit_data: u64,
    /// PortRcvData.
    pub port_rcv_data: u64,
    /// PortXmitPkts.
    pub port_xmit_pkts: u64,
    /// PortRcvPkts.
    pub port_rcv_pkts: u64,
    /// PortUnicastXmitPkts.
    pub port_unicast_xmit_pkts: u64,
    /// PortUnicastRcvPkts.
    pub port_unicast_rcv_pkts: u64,
    /// PortMulticastXmitPkts.
    pub port_multicast_xmit_pkts: u64,
    /// PortMulticastRcvPkts.
    pub port_multicast_rcv_pkts: u64,
    /// SymbolErrorCounter.
    pub symbol_error_counter: u64,
    /// LinkErrorRecoveryCounter.
    pub link_error_recovery_counter: u64,
    /// LinkDownedCounter.
    pub link_downed_counter: u64,
    /// PortRcvErrors.
    pub port_rcv_errors: u64,
    /// PortRcvRemotePhysicalErrors.
    pub port_rcv_remote_physical_errors: u64,
    /// PortRcvSwitchRelayErrors.
    pub port_rcv_switch_relay_errors: u64,
    /// PortXmitDiscards.
    pub port_xmit_discards: u64,
    /// PortXmitConstraintErrors.
    pub port_xmit_constraint_errors: u64,
    /// PortRcvConstraintErrors.
    pub port_rcv_constraint_errors: u64,
    /// LocalLinkIntegrityErrors.
    pub local_link_integrity_errors: u64,
    /// ExcessiveBufferOverrunErrors.
    pub excessive_buffer_overrun_errors: u64,
    /// VL15Dropped.
    pub vl15_dropped: u64,
    /// PortXmitWait.
    pub port_xmit_wait: u64,
    /// QP1Dropped.
    pub qp1_dropped: u64,
}

/// What a performance manager has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statistics {
    /// Nodes known.
    pub nodes: u64,
    /// Ports swept.
    pub ports: u64,
    /// Devices that do not answer.
    pub silent_nodes: u64,
    /// Sweeps that have ended.
    pub sweeps: u64,
    /// Of those, the ones that took longer than the interval.
    pub late_sweeps: u64,
    /// How long the last one took, in nanoseconds.
    #[serde(rename = "sweep_last_ns")]
    pub sweep_last: Time,
    /// How long the longest one took, in nanoseconds.
    #[serde(rename = "sweep_longest_ns")]
    pub sweep_longest: Time,
    /// How long all took together, in nanoseconds.
    #[serde(default, rename = "sweep_all_ns")]
    pub sweep_all: Time,
    /// Requests for counters sent, retries included.
    pub requests: u64,
    /// Of those, retries.
    pub retries: u64,
    /// Requests for counters that were not answered in time.
    pub timeouts: u64,
    /// Requests for counters given up.
    pub failures: u64,
    /// Answers that said no, or were about something else.
    pub refused: u64,
    /// Answers without a request.
    pub unmatched: u64,
    /// The most requests for counters in flight at once.
    pub in_flight_max: u64,
    /// Round trips of requests for counters, and all of them together.
    #[serde(default)]
    pub round_trips: u64,
    /// All round trips together, in nanoseconds.
    #[serde(default, rename = "round_trip_all_ns")]
    pub round_trip_all: Time,
    /// Questions to silent devices.
    #[serde(default)]
    pub probes: u64,
    /// Times that a device fell silent.
    pub silences: u64,
    /// Sets that reset counters.
    #[serde(default)]
    pub resets: u64,
    /// Counters found at their highest value: less was counted than happened.
    #[serde(default)]
    pub counters_stopped: u64,
    /// Counters found below their last value: somebody reset them, or the device restarted.
    #[serde(default)]
    pub counters_fallen: u64,
    /// Times that the fabric was learned.
    pub learned: u64,
    /// Times that it could not be.
    pub not_learned: u64,
    /// Requests made to learn it, retries included.
    #[serde(default)]
    pub learn_requests: u64,
    /// Subscriptions refused or not answered.
    #[serde(default)]
    pub subscriptions_failed: u64,
    /// Reports received.
    pub reports: u64,
    /// Hot spots found.
    pub hot_spots_found: u64,
    /// Repaths that the subnet manager has taken.
    pub repaths: u64,
    /// Unpaths that the subnet manager has taken.
    pub unpaths: u64,
    /// Repaths and unpaths that the subnet manager refused.
    pub notices_refused: u64,
    /// Repaths and unpaths that were not answered.
    pub notices_unanswered: u64,
    /// Unpaths given up after too many refusals.
    #[serde(default)]
    pub unpaths_given_up: u64,
    /// Hosts that got no notice for want of room.
    pub moves_dropped: u64,
    /// Reports of what hosts receive that the subnet manager has taken.
    #[serde(default)]
    pub received_reports: u64,
    /// Reports that it refused, or that were not answered.
    #[serde(default)]
    pub received_given_up: u64,
    /// Requests by which they were made, retries included.
    #[serde(default)]
    pub received_requests: u64,
    /// Hosts that a report had no room for.
    #[serde(default)]
    pub received_left_out: u64,
    /// MADs that are none of the manager's business.
    #[serde(default)]
    pub ignored: u64,
}
