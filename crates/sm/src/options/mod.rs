//! Options of the subnet manager.

mod groups;
mod kinds;

use weft_machine::Time;
use weft_mgmt::Limits;
use weft_wire::{ServiceLevel, VirtualLane, VlArbitrationEntry};

pub use groups::{
    CongestionControl, ElectionOptions, KeyOptions, LaneOptions, Options, RoutingOptions, SaOptions,
    SmpOptions, SweepOptions, VmLidOptions,
};
pub use kinds::{CongestionOptions, LidScheme, PartEnforce, Signalling, SmpRouting, SwitchLids, VlWeight};

/// The service level that is kept for management where it has a lane of its own.
pub(crate) const MANAGEMENT_LEVEL: ServiceLevel = ServiceLevel(15);

/// What a lane may send in a row where lanes have equal weights: 2048 bytes, so that packets take turns.
const EQUAL_WEIGHT: u8 = 32;

/// What management may send in a row before a waiting data lane has its turn, in 64-byte and in 4096-byte steps: about
/// fourteen MADs.
const MANAGEMENT_WEIGHT: u8 = 64;
pub(crate) const MANAGEMENT_LIMIT: u8 = 1;

/// The two arbitration tables of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arbitration {
    pub(crate) high: Vec<VlWeight>,
    pub(crate) low: Vec<VlWeight>,
}

/// LifeTimeValue by OpenSM's default, for switches that are to have none.
const LIFE_TIME_ASSUMED: u8 = 0x12;

impl RoutingOptions {
    /// Whether routing follows what hosts receive.
    pub fn learns(&self) -> bool {
        self.learn_weights || self.learn_order
    }
}

impl Options {
    /// The same with lanes that are all alike: each sends as much as every other that has something to send, and none goes
    /// first. The papers' experiments use that ("equal priority for all VLs").
    pub fn with_equal_lanes(self) -> Self {
        let all = |weight| (0..15).map(|vl| VlWeight { vl, weight }).collect();
        Self {
            lanes: LaneOptions {
                vl_arb_high: all(0),
                vl_arb_low: all(EQUAL_WEIGHT),
                vl_high_limit: 0,
                ..self.lanes
            },
            ..self
        }
    }

    /// How long data packets are under way at most in `switches` switches one after the other, by
    /// LifeTimeValue (IBA 18.2.5.4). Where that is unlimited, OpenSM's default is assumed.
    pub(crate) fn packets_gone(&self, switches: u32) -> Time {
        let value =
            if self.lanes.packet_life_time < 20 { self.lanes.packet_life_time } else { LIFE_TIME_ASSUMED };
        Time::from_nanos(u64::from(switches) * (4_096 << value))
    }

    /// The arbitration tables where this lane is management's.
    pub(crate) fn arbitration_tables(&self, management: Option<u8>) -> Arbitration {
        let Some(management) = management else {
            return Arbitration { high: self.lanes.vl_arb_high.clone(), low: self.lanes.vl_arb_low.clone() };
        };
        Arbitration {
            high: vec![VlWeight { vl: management, weight: MANAGEMENT_WEIGHT }],
            low: (0..management).map(|vl| VlWeight { vl, weight: EQUAL_WEIGHT }).collect(),
        }
    }

    /// From one poll of the master to the next.
    pub(crate) fn polling(&self) -> Time {
        Time::from_millis(self.election.polling_ms.max(1))
    }

    /// Whether virtual functions get their LIDs when machines boot.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.vm_lids.scheme == LidScheme::Dynamic
    }

    /// Whether LIDs stay with virtual functions, whatever machine is there.
    pub(crate) fn lids_stay(&self) -> bool {
        self.is_dynamic() && self.vm_lids.vm_lids_stay
    }

    /// How long LIDs of virtual functions that are gone rest; `None` where they rest until their port is back.
    pub(crate) fn quarantine(&self) -> Option<Time> {
        (self.is_dynamic() && !self.lids_stay()).then(|| Time::from_millis(self.vm_lids.lid_quarantine_ms))
    }

    /// How the transactions are paced.
    pub fn limits(&self) -> Limits {
        let timeout = Time::from_millis(self.smps.timeout_ms.max(1));
        Limits { window: self.smps.max_wire_smps, timeout, retries: self.smps.retries, ..Limits::default() }
    }

    /// An arbitration table for a link with this many lanes and room for `room` entries.
    pub(crate) fn arbitration(table: &[VlWeight], data_lanes: u8, room: u8) -> Vec<VlArbitrationEntry> {
        let fits = table.iter().filter(|entry| entry.vl < data_lanes);
        let entry =
            |e: &VlWeight| VlArbitrationEntry { reserved: 0, vl: VirtualLane(e.vl), weight: e.weight };
        fits.map(entry).take(usize::from(room.min(64))).collect()
    }
}
