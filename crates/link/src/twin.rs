//! Cables whose two ends live in one process.
//!
//! The same life as a cable over QUIC (up, packets, down, cut), without sockets, tasks or copies: packets wait in
//! one queue that the agent's loop empties, so that a packet's handling never nests inside another's. What must not be
//! lost, packets and flow control of data lanes, has a bound of its own, and passing it takes the cable down.

use std::collections::VecDeque;

use weft_wire::LinkParameters;

use crate::cable::{DropReason, SendOutcome, Stats};
use crate::reason::DownReason;

/// One end of an in-process cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TwinIndex(pub u32);

/// What happened at an end.
#[derive(Debug, PartialEq, Eq)]
pub enum TwinEvent<P> {
    /// The cable came up.
    Up {
        /// The end that sees it.
        end: TwinIndex,
        /// What the other end enables.
        peer: LinkParameters,
    },
    /// The cable went down.
    Down {
        /// The end that sees it.
        end: TwinIndex,
        /// Why.
        reason: DownReason,
    },
    /// A packet came in.
    Received {
        /// The end it came to.
        end: TwinIndex,
        /// The packet.
        packet: P,
    },
}

/// All in-process cables of an agent.
#[derive(Debug)]
pub struct Twins<P> {
    ends: Vec<End>,
    queue: VecDeque<Queued<P>>,
    /// What may be on its way to an end: what may be dropped, and what may not.
    waiting_max: [u32; 2],
    started: bool,
}

#[derive(Debug)]
struct End {
    peer: u32,
    enabled: bool,
    up: bool,
    /// What is on its way to this end: what may be dropped, and what may not.
    waiting: [u32; 2],
    /// Counts the times the cable came up; packets of an earlier life are discarded.
    life: u32,
    parameters: LinkParameters,
    stats: Stats,
}

#[derive(Debug)]
enum Queued<P> {
    Packet { end: u32, life: u32, kept: bool, packet: P },
    Up { end: u32, peer: LinkParameters },
    Down { end: u32, reason: DownReason },
}

impl<P> Twins<P> {
    /// No cables yet. So many of what may be dropped may be on their way to each end, and so many of what may not.
    pub fn new(droppable_max: u32, kept_max: u32) -> Self {
        let waiting_max = [droppable_max, kept_max];
        Self { ends: Vec::new(), queue: VecDeque::new(), waiting_max, started: false }
    }

    /// Adds a cable and names its two ends.
    pub fn connect(&mut self, a: LinkParameters, b: LinkParameters) -> (TwinIndex, TwinIndex) {
        let first = self.ends.len() as u32;
        let end = |peer, parameters| End {
            peer,
            enabled: true,
            up: false,
            waiting: [0; 2],
            life: 0,
            parameters,
            stats: Stats::default(),
        };
        self.ends.push(end(first + 1, a));
        self.ends.push(end(first, b));
        if self.started {
            self.raise(first);
        }
        (TwinIndex(first), TwinIndex(first + 1))
    }

    /// Brings up every cable, as dialling does for the others.
    pub fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            (0..self.ends.len() as u32).step_by(2).for_each(|end| self.raise(end));
        }
    }

    /// Hands over one packet that may be dropped.
    #[inline]
    pub fn send(&mut self, end: TwinIndex, packet: P) -> SendOutcome {
        self.hand_over(end, false, packet)
    }

    /// Hands over what must not be dropped: when it finds no room the cable goes down and comes up again.
    #[inline]
    pub fn send_kept(&mut self, end: TwinIndex, packet: P) -> SendOutcome {
        let outcome = self.hand_over(end, true, packet);
        if outcome == SendOutcome::Dropped(DropReason::QueueFull) {
            self.ends[end.0 as usize].stats.overflows += 1;
            self.restart(end, DownReason::Overflow);
        }
        outcome
    }

    fn hand_over(&mut self, end: TwinIndex, kept: bool, packet: P) -> SendOutcome {
        let Some(from) = self.ends.get_mut(end.0 as usize) else {
            return SendOutcome::Dropped(DropReason::NoSuchLane);
        };
        if !from.up {
            from.stats.dropped_packets += 1;
            return SendOutcome::Dropped(DropReason::LinkDown);
        }
        let peer = from.peer;
        let to = &mut self.ends[peer as usize];
        let class = usize::from(kept);
        if to.waiting[class] >= self.waiting_max[class] {
            self.ends[end.0 as usize].stats.dropped_packets += 1;
            return SendOutcome::Dropped(DropReason::QueueFull);
        }
        to.waiting[class] += 1;
        let life = to.life;
        self.ends[end.0 as usize].stats.sent_packets += 1;
        self.queue.push_back(Queued::Packet { end: peer, life, kept, packet });
        SendOutcome::Sent
    }

    /// Takes a cable down whose other end has sent more than its credit. It comes up again at once, with credits that
    /// begin anew.
    pub fn overrun(&mut self, end: TwinIndex) {
        if self.is_up(end) {
            self.ends[end.0 as usize].stats.overruns += 1;
            self.restart(end, DownReason::Overrun);
        }
    }

    fn restart(&mut self, end: TwinIndex, reason: DownReason) {
        let peer = self.ends[end.0 as usize].peer;
        let told = DownReason::ClosedByPeer(reason.to_string());
        self.lower(end.0, reason);
        self.lower(peer, told);
        self.raise(end.0);
    }

    /// The oldest event not yet taken.
    #[inline]
    pub fn poll(&mut self) -> Option<TwinEvent<P>> {
        loop {
            match self.queue.pop_front()? {
                Queued::Packet { end, life, kept, packet } => {
                    let to = &mut self.ends[end as usize];
                    if to.life != life {
                        continue;
                    }
                    to.waiting[usize::from(kept)] -= 1;
                    if to.up {
                        to.stats.received_packets += 1;
                        return Some(TwinEvent::Received { end: TwinIndex(end), packet });
                    }
                }
                Queued::Up { end, peer } => return Some(TwinEvent::Up { end: TwinIndex(end), peer }),
                Queued::Down { end, reason } => return Some(TwinEvent::Down { end: TwinIndex(end), reason }),
            }
        }
    }

    /// Whether anything waits for [`Twins::poll`].
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Cuts the cable from this end, or lets it come up again when the other end does too.
    pub fn set_enabled(&mut self, end: TwinIndex, enabled: bool) {
        let Some(this) = self.ends.get_mut(end.0 as usize) else { return };
        if std::mem::replace(&mut this.enabled, enabled) == enabled || !self.started {
            return;
        }
        let peer = this.peer;
        if enabled {
            self.raise(end.0);
        } else {
            self.lower(end.0, DownReason::Cut);
            self.lower(peer, DownReason::CutByPeer);
        }
    }

    /// What this end enables from the next time the cable comes up.
    pub fn set_parameters(&mut self, end: TwinIndex, parameters: LinkParameters) {
        if let Some(this) = self.ends.get_mut(end.0 as usize) {
            this.parameters = parameters;
        }
    }

    /// Whether the cable is up.
    pub fn is_up(&self, end: TwinIndex) -> bool {
        self.ends.get(end.0 as usize).is_some_and(|end| end.up)
    }

    /// How many cables are up.
    pub fn up_count(&self) -> usize {
        self.ends.iter().step_by(2).filter(|end| end.up).count()
    }

    /// What this end has done so far.
    pub fn stats(&self, end: TwinIndex) -> Stats {
        self.ends.get(end.0 as usize).map(|end| end.stats).unwrap_or_default()
    }

    /// How often what must not be lost found no room, at all ends.
    pub fn overflows(&self) -> u64 {
        self.ends.iter().map(|end| end.stats.overflows).sum()
    }

    /// Brings the cable up if both ends want it.
    fn raise(&mut self, end: u32) {
        let peer = self.ends[end as usize].peer;
        if !self.ends[end as usize].enabled || !self.ends[peer as usize].enabled {
            return;
        }
        for (this, other) in [(end, peer), (peer, end)] {
            let offered = self.ends[other as usize].parameters;
            let state = &mut self.ends[this as usize];
            state.up = true;
            state.life = state.life.wrapping_add(1);
            state.waiting = [0; 2];
            state.stats.ups += 1;
            self.queue.push_back(Queued::Up { end: this, peer: offered });
        }
    }

    fn lower(&mut self, end: u32, reason: DownReason) {
        let state = &mut self.ends[end as usize];
        if std::mem::replace(&mut state.up, false) {
            state.stats.downs += 1;
            self.queue.push_back(Queued::Down { end, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cable(bound: u32) -> (Twins<u32>, TwinIndex, TwinIndex) {
        let mut twins = Twins::new(bound, bound);
        let (a, b) = twins.connect(LinkParameters::default(), LinkParameters::default());
        twins.start();
        let peer = LinkParameters::default();
        assert_eq!(twins.poll(), Some(TwinEvent::Up { end: a, peer }));
        assert_eq!(twins.poll(), Some(TwinEvent::Up { end: b, peer }));
        assert_eq!(twins.poll(), None);
        (twins, a, b)
    }

    #[test]
    fn packets_arrive_at_the_other_end_in_order() {
        let (mut twins, a, b) = cable(16);
        for packet in 0..3 {
            assert_eq!(twins.send(a, packet), SendOutcome::Sent);
        }
        assert_eq!(twins.send(b, 9), SendOutcome::Sent);
        for packet in 0..3 {
            assert_eq!(twins.poll(), Some(TwinEvent::Received { end: b, packet }));
        }
        assert_eq!(twins.poll(), Some(TwinEvent::Received { end: a, packet: 9 }));
        assert!(twins.is_idle());
        assert_eq!((twins.stats(a).sent_packets, twins.stats(a).received_packets), (3, 1));
    }

    #[test]
    fn the_bound_drops_and_counts_and_frees_again() {
        let (mut twins, a, b) = cable(2);
        assert_eq!(twins.send(a, 0), SendOutcome::Sent);
        assert_eq!(twins.send(a, 1), SendOutcome::Sent);
        assert_eq!(twins.send(a, 2), SendOutcome::Dropped(DropReason::QueueFull));
        assert_eq!(twins.stats(a).dropped_packets, 1);
        assert_eq!(twins.poll(), Some(TwinEvent::Received { end: b, packet: 0 }));
        assert_eq!(twins.send(a, 3), SendOutcome::Sent);
    }

    #[test]
    fn a_cut_takes_both_ends_down_and_what_was_under_way_is_lost() {
        let (mut twins, a, b) = cable(16);
        assert_eq!(twins.send(a, 0), SendOutcome::Sent);
        twins.set_enabled(b, false);
        assert_eq!(twins.send(a, 1), SendOutcome::Dropped(DropReason::LinkDown));
        assert_eq!(twins.poll(), Some(TwinEvent::Down { end: b, reason: DownReason::Cut }));
        assert_eq!(twins.poll(), Some(TwinEvent::Down { end: a, reason: DownReason::CutByPeer }));
        assert_eq!(twins.poll(), None);

        twins.set_enabled(a, false);
        twins.set_enabled(b, true);
        assert_eq!(twins.poll(), None, "the other end is still cut");
        twins.set_enabled(a, true);
        assert!(matches!(twins.poll(), Some(TwinEvent::Up { .. })));
        assert!(matches!(twins.poll(), Some(TwinEvent::Up { .. })));
        assert_eq!(twins.up_count(), 1);
    }

    #[test]
    fn a_packet_of_an_earlier_life_is_lost_however_short_the_cut() {
        let (mut twins, a, _) = cable(1);
        assert_eq!(twins.send(a, 0), SendOutcome::Sent);
        twins.set_enabled(a, false);
        twins.set_enabled(a, true);
        assert_eq!(twins.send(a, 1), SendOutcome::Sent);
        let events: Vec<_> = std::iter::from_fn(|| twins.poll()).collect();
        assert_eq!(events.len(), 5, "{events:?}");
        assert!(matches!(events[0], TwinEvent::Down { .. }) && matches!(events[1], TwinEvent::Down { .. }));
        assert!(matches!(events[2], TwinEvent::Up { .. }) && matches!(events[3], TwinEvent::Up { .. }));
        assert!(matches!(events[4], TwinEvent::Received { packet: 1, .. }));
    }

    #[test]
    fn what_must_not_be_lost_takes_the_cable_down_when_it_finds_no_room() {
        let (mut twins, a, b) = cable(1);
        assert_eq!(twins.send(a, 0), SendOutcome::Sent);
        assert_eq!(twins.send_kept(a, 1), SendOutcome::Sent, "it has room of its own");
        assert_eq!(twins.send_kept(a, 2), SendOutcome::Dropped(DropReason::QueueFull));
        assert_eq!((twins.stats(a).overflows, twins.stats(a).dropped_packets), (1, 1));
        assert_eq!(twins.poll(), Some(TwinEvent::Down { end: a, reason: DownReason::Overflow }));
        assert!(matches!(twins.poll(), Some(TwinEvent::Down { end, .. }) if end == b));
        assert!(matches!(twins.poll(), Some(TwinEvent::Up { .. })));
        assert!(matches!(twins.poll(), Some(TwinEvent::Up { .. })));
        assert_eq!(twins.poll(), None, "nothing of the life before is delivered");
        assert_eq!(twins.send_kept(a, 3), SendOutcome::Sent);
        assert_eq!(twins.poll(), Some(TwinEvent::Received { end: b, packet: 3 }));
    }

    #[test]
    fn an_overrun_is_counted_and_begins_a_new_life() {
        let (mut twins, a, b) = cable(4);
        assert_eq!(twins.send_kept(a, 0), SendOutcome::Sent);
        twins.overrun(b);
        assert_eq!((twins.stats(b).overruns, twins.stats(a).overruns), (1, 0));
        let events: Vec<_> = std::iter::from_fn(|| twins.poll()).collect();
        assert_eq!(events[0], TwinEvent::Down { end: b, reason: DownReason::Overrun });
        assert!(matches!(events[1], TwinEvent::Down { end, .. } if end == a));
        assert_eq!(events.len(), 4, "down and up at both ends, and no packet: {events:?}");
    }
}
