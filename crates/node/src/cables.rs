//! The cables between ports of one node.
//!
//! The same life as a cable over QUIC (up, frames, down, cut), without sockets: frames wait in one queue that the node's
//! drain empties, so that a frame's handling never nests inside another's. What must not be lost, packets and flow control
//! of data lanes, has a bound of its own, and passing it takes the cable down.

use std::collections::VecDeque;

use weft_wire::{LinkParameters, VirtualLane};

use crate::{Frame, LinkLoss, PortId};

/// Packets of lane 15 that may be on their way to one end: as many as a link's own queue holds.
const MANAGEMENT_MAX: u32 = 1024;
/// Frames of data lanes that may be on their way to one end: more than fifteen lanes' credit allows.
const DATA_MAX: u32 = 15 * 4096;

/// One end of a cable, by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End(u32);

/// What happened at an end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// The cable came up; what the other end enables.
    Up { at: PortId, peer: LinkParameters },
    /// The cable went down.
    Down { at: PortId, cause: LinkLoss },
    /// A frame came in.
    Arrived { at: PortId, frame: Frame },
}

/// All cables between ports of the node.
#[derive(Debug, Default)]
pub(crate) struct Cables {
    ends: Vec<EndState>,
    /// The first ends of cables that were taken out.
    free: Vec<u32>,
    queue: VecDeque<Queued>,
    begun: bool,
    up: usize,
    overflows: u64,
    lost: [u64; 16],
}

#[derive(Debug)]
struct EndState {
    at: PortId,
    peer: u32,
    enabled: bool,
    up: bool,
    /// On its way to this end: on lane 15, and on data lanes.
    waiting: [u32; 2],
    /// Counts the times the cable came up; frames of an earlier life are discarded.
    life: u32,
    parameters: LinkParameters,
}

#[derive(Debug)]
enum Queued {
    Frame { end: u32, life: u32, frame: Frame },
    Up { at: PortId, peer: LinkParameters },
    Down { at: PortId, cause: LinkLoss },
}

impl Cables {
    /// Adds a cable, whose ends say this in their hello and let the link come up or not, and names its two ends.
    pub(crate) fn connect(&mut self, ends: [(PortId, LinkParameters, bool); 2]) -> [End; 2] {
        let first = self.free.pop().unwrap_or_else(|| {
            let first = self.ends.len() as u32;
            let nothing = |at| EndState {
                at,
                peer: 0,
                enabled: false,
                up: false,
                waiting: [0; 2],
                life: 0,
                parameters: LinkParameters::default(),
            };
            self.ends.extend(ends.map(|(at, ..)| nothing(at)));
            first
        });
        for ((at, parameters, enabled), number) in ends.into_iter().zip(first..) {
            // The life goes on counting: nothing that was on its way over the cable before may arrive.
            let end = &mut self.ends[number as usize];
            (end.at, end.parameters, end.peer, end.enabled) = (at, parameters, number ^ 1, enabled);
        }
        if self.begun {
            self.raise(first);
        }
        [End(first), End(first + 1)]
    }

    /// Takes a cable out.
    pub(crate) fn remove(&mut self, end: End) {
        let first = end.0 & !1;
        for (end, cause) in [(first, LinkLoss::Cut), (first + 1, LinkLoss::Cut)] {
            self.lower(end, cause);
            self.ends[end as usize].enabled = false;
        }
        self.free.push(first);
    }

    /// Brings up every cable, as dialling does for the others.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            (0..self.ends.len() as u32).step_by(2).for_each(|end| self.raise(end));
        }
    }

    /// Hands over a frame, or gives it back when it cannot be sent. What is not of lane 15 must not be lost: without room
    /// the cable goes down and comes up again.
    #[inline]
    pub(crate) fn send(&mut self, end: End, frame: Frame) -> Result<(), Frame> {
        let from = &self.ends[end.0 as usize];
        if !from.up {
            return Err(frame);
        }
        let (peer, kept) = (from.peer, !frame.is_management());
        let to = &mut self.ends[peer as usize];
        let waiting = &mut to.waiting[usize::from(kept)];
        if *waiting >= [MANAGEMENT_MAX, DATA_MAX][usize::from(kept)] {
            if kept {
                self.overflows += 1;
                self.restart(end, LinkLoss::Overflow);
            }
            return Err(frame);
        }
        *waiting += 1;
        let life = to.life;
        self.queue.push_back(Queued::Frame { end: peer, life, frame });
        Ok(())
    }

    /// Takes a cable down whose other end has sent more than its credit. It comes up again at once, with the first credits.
    pub(crate) fn overrun(&mut self, end: End) {
        if self.ends[end.0 as usize].up {
            self.restart(end, LinkLoss::Overrun);
        }
    }

    fn restart(&mut self, end: End, cause: LinkLoss) {
        let peer = self.ends[end.0 as usize].peer;
        self.lower(end.0, cause);
        self.lower(peer, LinkLoss::BrokenByPeer);
        self.raise(end.0);
    }

    /// The oldest thing that has not been taken.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Crossing> {
        loop {
            match self.queue.pop_front()? {
                Queued::Frame { end, life, frame } => {
                    let to = &mut self.ends[end as usize];
                    if to.life == life && to.up {
                        to.waiting[usize::from(!frame.is_management())] -= 1;
                        return Some(Crossing::Arrived { at: to.at, frame });
                    }
                    self.lose(frame.packet_lane());
                }
                Queued::Up { at, peer } => return Some(Crossing::Up { at, peer }),
                Queued::Down { at, cause } => return Some(Crossing::Down { at, cause }),
            }
        }
    }

    /// What waits for [`Self::poll`].
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.queue.iter().filter_map(|queued| match queued {
            Queued::Frame { frame, .. } => Some(frame),
            Queued::Up { .. } | Queued::Down { .. } => None,
        })
    }

    /// Counts a packet of a lane that a link took with it.
    pub(crate) fn lose(&mut self, lane: Option<VirtualLane>) {
        if let Some(lane) = lane {
            self.lost[usize::from(lane.0 & 0xf)] += 1;
        }
    }

    /// Whether nothing waits for [`Self::poll`].
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Cuts the cable from this end, or lets it come up again when the other end does too.
    pub(crate) fn set_enabled(&mut self, end: End, enabled: bool) {
        let this = &mut self.ends[end.0 as usize];
        if std::mem::replace(&mut this.enabled, enabled) == enabled || !self.begun {
            return;
        }
        let peer = this.peer;
        if enabled {
            self.raise(end.0);
        } else {
            self.lower(end.0, LinkLoss::Cut);
            self.lower(peer, LinkLoss::CutByPeer);
        }
    }

    /// What this end enables from the next time the cable comes up.
    pub(crate) fn set_parameters(&mut self, end: End, parameters: LinkParameters) {
        self.ends[end.0 as usize].parameters = parameters;
    }

    pub(crate) fn is_up(&self, end: End) -> bool {
        self.ends[end.0 as usize].up
    }

    /// The port at the other end.
    pub(crate) fn peer(&self, end: End) -> PortId {
        self.ends[self.ends[end.0 as usize].peer as usize].at
    }

    /// How many cables are up.
    pub(crate) fn up_count(&self) -> usize {
        self.up
    }

    /// How often what must not be lost found no room.
    pub(crate) fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Packets that a link took with it, by lane.
    pub(crate) fn lost(&self) -> [u64; 16] {
        self.lost
    }

    /// Brings the cable up if both ends want it.
    fn raise(&mut self, end: u32) {
        let peer = self.ends[end as usize].peer;
        let [this, other] = [end, peer].map(|end| &self.ends[end as usize]);
        if !this.enabled || !other.enabled || this.up {
            return;
        }
        self.up += 1;
        for (this, other) in [(end, peer), (peer, end)] {
            let offered = self.ends[other as usize].parameters;
            let state = &mut self.ends[this as usize];
            state.up = true;
            state.life = state.life.wrapping_add(1);
            state.waiting = [0; 2];
            self.queue.push_back(Queued::Up { at: state.at, peer: offered });
        }
    }

    fn lower(&mut self, end: u32, cause: LinkLoss) {
        let state = &mut self.ends[end as usize];
        if std::mem::replace(&mut state.up, false) {
            let at = state.at;
            // Both ends go down together; one of them counts.
            self.up -= usize::from(end.is_multiple_of(2));
            self.queue.push_back(Queued::Down { at, cause });
        }
    }
}

#[cfg(test)]
mod tests;
