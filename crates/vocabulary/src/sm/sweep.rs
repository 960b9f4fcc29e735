//! Summary of a heavy sweep: SMPs by kind, times by phase, and what was found.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{count_of, is_or_are};

use crate::words::count;

weft_wire::named! {
    /// The steps of a heavy sweep, in order.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum SweepPhase {
        /// Find all nodes, ports and cables.
        Discover = "discover",
        /// Read the tables of devices that somebody configured before.
        ReadTables = "learn",
        /// Give LIDs.
        Assign = "assign",
        /// Compute forwarding tables.
        Route = "route",
        /// Write the tables that differ.
        Program = "program",
        /// Configure ports, make them Armed, then Active.
        Activate = "activate",
        /// Look whether anything changed meanwhile.
        Verify = "verify",
    }
}

/// How many SMPs were sent of each kind in one sweep, retries not counted: Get or Set, and the attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SmpCounts {
    /// Get(NodeInfo).
    pub get_node_info: u64,
    /// Get(NodeDescription).
    pub get_node_description: u64,
    /// Get(SwitchInfo).
    pub get_switch_info: u64,
    /// Get(PortInfo).
    pub get_port_info: u64,
    /// Get(LinearForwardingTable).
    pub get_lft: u64,
    /// Get(SLtoVLMappingTable).
    pub get_sl_to_vl: u64,
    /// Get(VLArbitrationTable).
    pub get_vl_arbitration: u64,
    /// Get(P_KeyTable).
    pub get_p_keys: u64,
    /// Get(SMInfo).
    pub get_sm_info: u64,
    /// Set(SwitchInfo).
    pub set_switch_info: u64,
    /// Set(PortInfo).
    pub set_port_info: u64,
    /// Set(LinearForwardingTable).
    pub set_lft: u64,
    /// Set(SLtoVLMappingTable).
    pub set_sl_to_vl: u64,
    /// Set(VLArbitrationTable).
    pub set_vl_arbitration: u64,
    /// Set(P_KeyTable).
    pub set_p_keys: u64,
    /// All of them.
    pub total: u64,
}

impl SmpCounts {
    /// All Sets.
    pub fn sets(&self) -> u64 {
        self.set_switch_info
            + self.set_port_info
            + self.set_lft
            + self.set_sl_to_vl
            + self.set_vl_arbitration
            + self.set_p_keys
    }
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseTime {
    /// Which.
    pub phase: SweepPhase,
    /// From its beginning to its end, in nanoseconds.
    #[serde(rename = "took_ns")]
    pub took: Time,
    /// How many SMPs it sent, retries not counted.
    pub smps: u64,
}

/// What a heavy sweep came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Switches found.
    pub switches: u32,
    /// HCAs found.
    pub hosts: u32,
    /// Nodes of other kinds found.
    pub others: u32,
    /// Cables found.
    pub cables: u32,
    /// Of these, the ones whose link runs at a lower rate than both of its ports can do.
    #[serde(default)]
    pub cables_degraded: u32,
    /// Ports with a LID.
    pub lids: u32,
    /// Ports that are Active, port 0 of switches not counted.
    pub ports_active: u32,
    /// Ports that have a link without an answer behind it.
    pub ports_silent: u32,
    /// Ports that did not become Active.
    pub ports_refused: u32,
    /// Ports with a link to a node that is not part of the subnet.
    pub ports_left_out: u32,
    /// End ports that did not get their LID.
    pub ports_without_lid: u32,
    /// Requests without an answer.
    pub unanswered: u32,
    /// Requests answered with an error.
    pub refused: u32,
    /// SMPs by kind, retries not counted.
    pub smps: SmpCounts,
    /// SMPs sent a second time or more.
    pub retries: u64,
    /// From the sweep's first SMP to its end, in nanoseconds.
    #[serde(rename = "took_ns")]
    pub took: Time,
    /// The phases, in order.
    pub phases: Vec<PhaseTime>,
    /// How many heavy sweeps there have been, this one included.
    pub sweeps: u64,
    /// Whether every port with a link is in service and has its LID, every switch has its table, and nothing changed
    /// meanwhile.
    pub complete: bool,
}

impl Summary {
    /// What a heavy sweep came to, behind the state of the subnet.
    pub(super) fn sentence(&self, state: &str) -> String {
        let Self { switches, hosts, lids, ports_active, retries, took, cables_degraded, .. } = self;
        let degraded = match *cables_degraded as usize {
            0 => String::new(),
            count => format!("; {} {} degraded", count_of(count, "cable"), is_or_are(count)),
        };
        format!(
            "{state} after {:.3} s: {}, {}, {}, {} active, {}, {}{degraded}",
            took.as_nanos() as f64 / 1e9,
            count(*switches, "switch"),
            count(*hosts, "host"),
            count(*lids, "LID"),
            count(*ports_active, "port"),
            count_of(self.smps.total as usize, "SMP"),
            count_of(*retries as usize, "retry"),
        )
    }
}
