//! Summary of a heavy sweep.

use serde::{Deserialize, Serialize};
use weft_machine::Time;

use crate::phase::SweepPhase;

/// How many SMPs were sent of each kind in one sweep, retries not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default)]
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
    #[serde(default)]
    pub set_p_keys: u64,
}

impl SmpCounts {
    /// All Gets.
    pub fn gets(&self) -> u64 {
        self.get_node_info
            + self.get_node_description
            + self.get_switch_info
            + self.get_port_info
            + self.get_lft
            + self.get_sl_to_vl
            + self.get_vl_arbitration
            + self.get_p_keys
            + self.get_sm_info
    }

    /// All Sets.
    pub fn sets(&self) -> u64 {
        self.set_switch_info
            + self.set_port_info
            + self.set_lft
            + self.set_sl_to_vl
            + self.set_vl_arbitration
            + self.set_p_keys
    }

    /// All.
    pub fn total(&self) -> u64 {
        self.gets() + self.sets()
    }
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Which.
    pub phase: SweepPhase,
    /// From its beginning to its end.
    pub took: Time,
    /// How many SMPs it sent, retries not counted.
    pub smps: u64,
}

/// What a heavy sweep came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub cables_degraded: u32,
    /// Ports with a LID.
    pub lids: u32,
    /// Ports that are Active, port 0 of switches not counted.
    pub ports_active: u32,
    /// Ports that have a link but behind which nobody answers.
    pub ports_silent: u32,
    /// Ports that did not become Active.
    pub ports_refused: u32,
    /// Ports with a link behind which there is somebody who is not part of the subnet: it would not say what it is,
    /// or said what cannot be.
    pub ports_left_out: u32,
    /// End ports that did not get their LID.
    pub ports_without_lid: u32,
    /// Requests that nobody answered.
    pub unanswered: u32,
    /// Requests answered with an error.
    pub refused: u32,
    /// SMPs by kind, retries not counted.
    pub smps: SmpCounts,
    /// SMPs sent a second time or more.
    pub retries: u64,
    /// From the sweep's first SMP to its end.
    pub took: Time,
    /// The phases, in order.
    pub phases: Vec<PhaseTime>,
    /// How many heavy sweeps there have been, this one included.
    pub sweeps: u64,
    /// Whether every port with a link is in service and has its LID, every switch has its table, and nothing changed
    /// meanwhile.
    pub complete: bool,
}
