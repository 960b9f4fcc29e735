//! Flows by their numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::QpNum;

use super::numbers::{FIRST_QP, PSN_MASK};
use super::receiver::Receiver;
use super::sender::Sender;
use crate::traffic::FlowId;

/// The highest flow: the queue pair after it is the one of multicast.
const FLOW_MAX: u32 = PSN_MASK - 1 - FIRST_QP;
/// The most flows of a host.
const FLOWS_MAX: usize = 1 << 16;
/// Flows below this are found without a search.
const DIRECT: u32 = 4096;
/// What a host has of a flow. One that sends and receives under the same number is a mix of datagrams among all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flow {
    pub(super) id: FlowId,
    pub(super) sender: Option<Box<Sender>>,
    pub(super) receiver: Option<Box<Receiver>>,
}

/// All flows. One is known by its place while it lives; places are used again.
#[derive(Debug, Default)]
pub(super) struct Flows {
    places: Vec<Flow>,
    free: Vec<u32>,
    by_id: BTreeMap<FlowId, u32>,
    /// Places plus one by numbers below [`DIRECT`].
    direct: Vec<u32>,
}

impl Flows {
    #[inline]
    pub(super) fn find(&self, id: FlowId) -> Option<u32> {
        match id.0 {
            low if low < DIRECT => self.direct.get(low as usize)?.checked_sub(1),
            _ => self.by_id.get(&id).copied(),
        }
    }

    /// The place of a queue pair's flow.
    #[inline]
    pub(super) fn find_queue_pair(&self, number: QpNum) -> Option<u32> {
        self.find(FlowId(number.0.checked_sub(FIRST_QP)?))
    }

    /// The place of a flow, a new one if need be. None: there are too many, or no queue pair has that number.
    pub(super) fn open(&mut self, id: FlowId) -> Option<u32> {
        if let Some(place) = self.find(id) {
            return Some(place);
        }
        if id.0 > FLOW_MAX || self.by_id.len() >= FLOWS_MAX {
            return None;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Flow::default());
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = Flow { id, ..Flow::default() };
        self.by_id.insert(id, place);
        if id.0 < DIRECT {
            let needed = self.direct.len().max(id.0 as usize + 1);
            self.direct.resize(needed, 0);
            self.direct[id.0 as usize] = place + 1;
        }
        Some(place)
    }

    pub(super) fn close(&mut self, id: FlowId) -> bool {
        let Some(place) = self.by_id.remove(&id) else { return false };
        if let Some(direct) = self.direct.get_mut(id.0 as usize).filter(|_| id.0 < DIRECT) {
            *direct = 0;
        }
        self.places[place as usize] = Flow::default();
        self.free.push(place);
        true
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Flow> {
        self.places.get_mut(place as usize)
    }

    #[inline]
    pub(super) fn sender(&mut self, place: u32) -> Option<&mut Sender> {
        self.places.get_mut(place as usize)?.sender.as_deref_mut()
    }

    #[inline]
    pub(super) fn receiver(&mut self, place: u32) -> Option<&mut Receiver> {
        self.places.get_mut(place as usize)?.receiver.as_deref_mut()
    }

    /// All flows, in order of their numbers.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Flow> {
        self.by_id.values().map(|place| &self.places[*place as usize])
    }

    /// Flows of an image, in order of their numbers. Fails with what is wrong with them.
    pub(super) fn restore(list: Vec<Flow>, paths: usize) -> Result<Self, &'static str> {
        let mut flows = Self::default();
        if !list.is_sorted_by(|one, next| one.id < next.id) {
            return Err("flows are out of order");
        }
        for flow in list {
            if let Some(sender) = &flow.sender {
                sender.verify(flow.id, paths)?;
            }
            if let Some(receiver) = &flow.receiver {
                receiver.verify()?;
            }
            let place = flows.open(flow.id).ok_or("there are too many flows, or a number is too high")?;
            flows.places[place as usize] = flow;
        }
        Ok(flows)
    }

    /// The places of all flows.
    pub(super) fn all(&self) -> std::ops::Range<u32> {
        0..self.places.len() as u32
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::queue_pair;
    use super::*;

    #[test]
    fn flows_are_found_by_their_numbers_while_they_live() {
        let mut flows = Flows::default();
        let ids = [FlowId(0), FlowId(4095), FlowId(4096), FlowId(FLOW_MAX)];
        let places: Vec<_> = ids.iter().map(|id| flows.open(*id).unwrap()).collect();
        assert_eq!(flows.open(FlowId(FLOW_MAX + 1)), None);
        for (id, place) in ids.iter().zip(&places) {
            assert_eq!(flows.find_queue_pair(queue_pair(*id)), Some(*place));
            assert!(flows.close(*id));
            assert_eq!(flows.find(*id), None);
        }
        assert!(places.contains(&flows.open(FlowId(9)).unwrap()), "places are used again");
    }
}
