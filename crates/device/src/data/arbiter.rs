//! Arbitration of a port's lanes: the high and the low table, their weights, and the limit of high priority
//! (IBA 7.6.9).

use weft_wire::{VirtualLane, VlArbitrationTable};

use super::index::LaneSet;

/// Blocks of 64 bytes in the 4096 bytes that a limit of one stands for.
const LIMIT_BLOCKS: u32 = 64;
/// The limit that is none.
const UNLIMITED: u8 = 255;

/// Lane and weight of the entries of a table, given as its two halves: those with a weight, of a port's `lanes`.
pub(super) fn entries(halves: &[VlArbitrationTable], lanes: u8) -> Vec<(VirtualLane, u8)> {
    let all = halves.iter().flat_map(|half| half.entries);
    all.filter(|entry| entry.weight > 0 && entry.vl.0 < lanes).map(|entry| (entry.vl, entry.weight)).collect()
}

/// A port's tables as the next choice needs them.
#[derive(Debug)]
pub(crate) struct Arbiter {
    high: Turns,
    low: Turns,
    /// Lane and weight, in blocks, of the entries of the high table and of the low one. Most choices need none of them.
    entries: Box<[Vec<(VirtualLane, u8)>; 2]>,
    limit: u32,
    /// Blocks sent from the high table since a packet of the low one had its turn.
    high_sent: u32,
}

/// One table, its entries in turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    /// The lanes in it.
    lanes: LaneSet,
    /// Whose turn it is, and what is left of its weight.
    at: u8,
    left: u8,
    /// The entry whose turn it is, once more, and the lanes that have one entry alone.
    lane: VirtualLane,
    weight: u8,
    alone: LaneSet,
}

impl Turns {
    fn new(entries: &[(VirtualLane, u8)]) -> Self {
        let lanes: LaneSet = entries.iter().map(|&(lane, _)| lane).collect();
        let times = |lane| entries.iter().filter(|entry| entry.0 == lane).count();
        let alone = lanes.iter().filter(|&lane| times(lane) == 1).collect();
        let (lane, weight) = entries.first().copied().unwrap_or_default();
        Self { lanes, alone, lane, weight, ..Self::default() }
    }

    /// The lane whose turn it is, of those in `ready`, at least one of which is in the table.
    #[inline]
    fn pick(&mut self, entries: &[(VirtualLane, u8)], ready: LaneSet) -> VirtualLane {
        if self.left > 0 && ready.contains(self.lane) {
            return self.lane;
        }
        if ready & self.lanes == LaneSet::of(self.lane) && self.alone.contains(self.lane) {
            // Round the whole table, back to where it was.
            self.left = self.weight;
            return self.lane;
        }
        for _ in entries {
            self.at += 1;
            if usize::from(self.at) >= entries.len() {
                self.at = 0;
            }
            let (lane, weight) = entries[usize::from(self.at)];
            if ready.contains(lane) {
                (self.left, self.lane, self.weight) = (weight, lane, weight);
                return lane;
            }
        }
        debug_assert!(false, "a lane of the table is ready");
        ready.first().unwrap_or_default()
    }
}

impl Arbiter {
    /// From a port's four half tables, its limit, and the number of its lanes. An entry without weight is skipped. A
    /// lane in neither table is one that no one has said anything of, as all are before the tables are written: it takes
    /// its turn at the end of the low table, one packet at a time, so that none waits for ever.
    pub(crate) fn new(tables: &[VlArbitrationTable; 4], limit: u8, lanes: u8) -> Self {
        let (high, mut low) = (entries(&tables[2..], lanes), entries(&tables[..2], lanes));
        let told: LaneSet = high.iter().chain(&low).map(|&(lane, _)| lane).collect();
        // All lanes that there can be: what came while there were more lanes leaves all the same.
        low.extend((0..15).map(VirtualLane).filter(|&lane| !told.contains(lane)).map(|lane| (lane, 1)));
        let limit = if limit == UNLIMITED { u32::MAX } else { u32::from(limit) * LIMIT_BLOCKS };
        let (of_high, of_low) = (Turns::new(&high), Turns::new(&low));
        Self { high: of_high, low: of_low, entries: Box::new([high, low]), limit, high_sent: 0 }
    }

    /// Chooses among the lanes in `ready`, of which there is at least one, and says whether from the high table.
    #[inline]
    pub(crate) fn pick(&mut self, ready: LaneSet) -> (VirtualLane, bool) {
        if (ready & self.high.lanes).is_empty() {
            return (self.low.pick(&self.entries[1], ready), false);
        }
        // A limit of 0 is one packet.
        let expired = self.high_sent > 0 && self.high_sent >= self.limit;
        if expired && !(ready & self.low.lanes).is_empty() {
            return (self.low.pick(&self.entries[1], ready), false);
        }
        (self.high.pick(&self.entries[0], ready), true)
    }

    /// The lane that [`Self::pick`] would choose.
    pub(crate) fn would_pick(&mut self, ready: LaneSet) -> VirtualLane {
        let (high, low) = (self.high, self.low);
        let (lane, _) = self.pick(ready);
        (self.high, self.low) = (high, low);
        lane
    }

    /// What was picked is sent, and is `blocks` long.
    #[inline]
    pub(crate) fn sent(&mut self, blocks: u8, high: bool) {
        if high {
            self.high.left = self.high.left.saturating_sub(blocks);
            self.high_sent = self.high_sent.saturating_add(u32::from(blocks));
        } else {
            self.low.left = self.low.left.saturating_sub(blocks);
            self.high_sent = 0;
        }
    }
}
