//! Packets on data lanes, by what became of them.

use serde::Serialize;
use weft_device::{DataAccount, LaneAccount};
use weft_node::Node;

/// Data lanes, and one more place for what has no lane.
pub(crate) const LANES: usize = 16;

/// Packets on data lanes since the beginning, of the whole fabric or of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficAccount {
    /// Given to a device by its host, by an attached program, or by the device itself.
    pub injected: u64,
    /// Came to a device from another of its lanes.
    pub moved_in: u64,
    /// Went to another lane of their device.
    pub moved_out: u64,
    /// Given to a host, to an attached program, or to the device itself.
    pub delivered: u64,
    /// Dropped by a device, and counted.
    pub dropped: u64,
    /// Held by a device now.
    pub held: u64,
    /// On a cable now.
    pub in_flight: u64,
    /// Lost on a cable by a rule.
    pub lost: u64,
    /// A link took them with it.
    pub cut_off: u64,
    /// A device that lost its power took them with it.
    pub powered_off: u64,
}

impl TrafficAccount {
    /// Whether what was injected is what was delivered, is under way, or is known to be gone.
    pub fn is_closed(&self) -> bool {
        self.injected + self.moved_in == self.moved_out + self.delivered + self.under_way() + self.gone()
    }

    /// Held by a device or on a cable.
    pub fn under_way(&self) -> u64 {
        self.held + self.in_flight
    }

    /// Neither delivered nor under way.
    pub fn gone(&self) -> u64 {
        self.dropped + self.lost + self.cut_off + self.powered_off
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.injected += other.injected;
        self.moved_in += other.moved_in;
        self.moved_out += other.moved_out;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.held += other.held;
        self.in_flight += other.in_flight;
        self.lost += other.lost;
        self.cut_off += other.cut_off;
        self.powered_off += other.powered_off;
    }

    pub(crate) fn add_device(&mut self, lane: &LaneAccount) {
        self.injected += lane.injected;
        self.moved_in += lane.moved_in;
        self.moved_out += lane.moved_out;
        self.delivered += lane.to_host + lane.to_own;
        self.dropped += lane.dropped_total();
        self.held += lane.held;
    }
}

/// What devices had counted that have lost their power, by lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastDevices {
    pub(crate) lanes: [TrafficAccount; LANES],
}

impl PastDevices {
    /// Takes over what was on the cables within a node whose process has ended, and what was lost there.
    pub(crate) fn bury_cables(&mut self, node: &Node) {
        let (lost, under_way) = (node.lost_on_cables(), node.on_cables());
        for (sum, packets) in self.lanes.iter_mut().zip(lost.iter().zip(under_way)).take(LANES - 1) {
            sum.cut_off += packets.0 + packets.1;
        }
    }

    /// Takes over the account of a device, and what it held is gone.
    pub(crate) fn bury(&mut self, account: &DataAccount) {
        for (sum, lane) in self.lanes.iter_mut().zip(&account.lanes) {
            sum.add_device(lane);
            sum.powered_off += std::mem::take(&mut sum.held);
        }
    }
}
