//! Frames on their way over cables that have a length: the data lanes' packets and credits, held back where they
//! arrive, so that a laboratory's cables take the time that virtual time's take.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use weft_device::Unsent;
use weft_machine::Time;
use weft_wire::VirtualLane;

use crate::{Frame, PortId};

/// The most that is held back: more than the credit of a large switch. More is lost and reported.
const HELD_MAX: usize = 1 << 20;

/// Everything that is held back, the earliest first and in the order in which it came.
#[derive(Debug, Default)]
pub(crate) struct Held {
    heap: BinaryHeap<Late>,
    count: u64,
}

#[derive(Debug)]
struct Late {
    at: Time,
    number: u64,
    port: PortId,
    arriving: Arriving,
}

/// What arrives at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arriving {
    Frame(Frame),
    /// A packet that is lost, or has wrong bits: in its place, since flow control counts the packets before it.
    Lost {
        lost: Unsent,
        bit_errors: u16,
    },
}

impl Arriving {
    /// The lane, of a packet.
    pub(crate) fn lane(&self) -> Option<VirtualLane> {
        self.unsent().map(|packet| packet.lane)
    }

    /// What a packet is like.
    pub(crate) fn unsent(&self) -> Option<Unsent> {
        match self {
            Self::Frame(frame) => frame.unsent(),
            Self::Lost { lost, .. } => Some(*lost),
        }
    }
}

impl Held {
    /// When the next thing arrives.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.heap.peek().map(|late| late.at)
    }

    /// The lanes of all packets that are held back, in no order.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = VirtualLane> {
        self.heap.iter().filter_map(|late| late.arriving.lane())
    }

    /// What is held back for a port, and how much of it is of lane 15.
    pub(crate) fn count(&self, port: PortId) -> [u32; 2] {
        let lanes = self.heap.iter().filter(|late| late.port == port).map(|late| late.arriving.lane());
        lanes.fold([0; 2], |[all, management], lane| {
            [all + 1, management + u32::from(lane == Some(VirtualLane::MANAGEMENT))]
        })
    }

    /// A port's link is gone, and takes with it what was under way to it.
    pub(crate) fn forget(&mut self, port: PortId) -> Vec<Arriving> {
        if self.heap.iter().all(|late| late.port != port) {
            return Vec::new();
        }
        let (gone, kept): (Vec<_>, Vec<_>) = self.heap.drain().partition(|late| late.port == port);
        self.heap = kept.into();
        gone.into_iter().map(|late| late.arriving).collect()
    }

    /// Takes in what arrives at a moment; gives it back when there is no room.
    pub(crate) fn put(&mut self, at: Time, port: PortId, arriving: Arriving) -> Result<(), Arriving> {
        if self.heap.len() >= HELD_MAX {
            return Err(arriving);
        }
        self.count += 1;
        self.heap.push(Late { at, number: self.count, port, arriving });
        Ok(())
    }

    /// What arrives next, if it does so by now.
    pub(crate) fn due(&mut self, now: Time) -> Option<(PortId, Arriving)> {
        self.earliest().filter(|at| *at <= now)?;
        self.heap.pop().map(|late| (late.port, late.arriving))
    }
}

impl Ord for Late {
    /// A heap gives the greatest first, which is to be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Late {}

#[cfg(test)]
mod tests {
    use weft_wire::{FlowControl, PortNum};

    use super::*;
    use crate::DeviceId;

    fn credit(fccl: u16) -> Arriving {
        Arriving::Frame(Frame::Credit(FlowControl { fccl, ..FlowControl::default() }))
    }

    #[test]
    fn a_cable_keeps_its_order_and_a_lost_link_takes_its_own() {
        let [short, long] = [1, 2].map(|port| PortId::new(DeviceId(0), PortNum(port)));
        let at = Time::from_micros;
        let mut held = Held::default();
        for (when, place, fccl) in
            [(50, long, 1), (10, short, 2), (10, short, 3), (50, long, 4), (20, short, 5)]
        {
            assert_eq!(held.put(at(when), place, credit(fccl)), Ok(()));
        }
        assert_eq!(held.earliest(), Some(at(10)));
        assert_eq!(held.due(at(9)), None);
        let mut came: Vec<_> = std::iter::from_fn(|| held.due(at(10))).collect();
        assert_eq!(came, [(short, credit(2)), (short, credit(3))]);
        assert_eq!(held.forget(short), [credit(5)]);
        came = std::iter::from_fn(|| held.due(at(100))).collect();
        assert_eq!(came, [(long, credit(1)), (long, credit(4))]);
    }
}
