//! A snapshot of the manager's knowledge, for exporters and for people.

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_topology::LinkRate;
use weft_vocabulary::pm::{HotSpot, Port, Statistics};
use weft_wire::{Lid, ServiceLevel};

use crate::ErrorTotals;

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The moment.
    pub time: Time,
    /// Whether the fabric is known and swept.
    pub ready: bool,
    /// The own port's LID; 0 before it is known.
    pub lid: Lid,
    /// The subnet manager's LID; 0 before it is known.
    pub sm_lid: Lid,
    /// The service level of the slow lane.
    pub slow_sl: ServiceLevel,
    /// Nanoseconds of machine time in one of fabric time.
    pub dilation: u32,
    /// Every port that is swept, in order of LIDs and numbers.
    pub ports: Vec<PortSnapshot>,
    /// The hot spots, in order of GUIDs.
    pub hot_spots: Vec<HotSpot>,
    /// Hosts times hot spots of which what is wanted is not known to be so.
    pub moves: usize,
    /// What the manager has done.
    pub statistics: Statistics,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortSnapshot {
    /// What the control protocol says of it.
    #[serde(flatten)]
    pub shown: Port,
    /// Width and speed.
    pub rate: LinkRate,
    /// What received errors are made of; only where that is swept.
    pub errors: ErrorTotals,
}

impl Deref for PortSnapshot {
    type Target = Port;

    fn deref(&self) -> &Port {
        &self.shown
    }
}
