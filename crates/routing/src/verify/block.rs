//! The tables' entries for a few LIDs at once: tables are laid out by switch, and packets are followed by LID.

use weft_wire::PortNum;

use crate::bfs::BATCH;
use crate::bits::ones;
use crate::tables::{ForwardingTable, Routes};

use super::ground::{ARRIVES, End, Ground, LOST};

/// Further than any switch: not connected.
pub(crate) const UNREACHED: u16 = u16::MAX;

/// Where a switch with these exits sends packets for a LID by a port.
pub(crate) fn leads(exits: &[u32], switch: u32, end: &End, port: PortNum) -> u32 {
    match exits.get(usize::from(port.0)) {
        _ if port == end.at && switch == end.switch => ARRIVES,
        Some(exit) => *exit,
        None => LOST,
    }
}

/// Room for the entries for up to [`BATCH`] LIDs.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// By LID, then by switch: the exit, which is a channel, [`ARRIVES`] or [`LOST`].
    exits: Vec<u32>,
    /// By destination switch, then by switch: the least number of channels to it.
    least: Vec<u16>,
    /// By LID: the place of its switch in `least`.
    slots: Vec<usize>,
    frontier: Vec<u64>,
    next: Vec<u64>,
    seen: Vec<u64>,
    switches: usize,
}

impl Block {
    /// Reads the entries for the LIDs of `ends`.
    pub(crate) fn read(&mut self, ground: &Ground<'_>, routes: &Routes, ends: &[End]) {
        self.switches = ground.len();
        self.exits.clear();
        self.exits.resize(ends.len() * self.switches, LOST);
        let none = ForwardingTable::default();
        for (switch, node) in (0..).zip(&ground.graph.nodes) {
            let table = routes.table(*node).unwrap_or(&none);
            let exits = ground.exits(switch);
            for (row, end) in self.exits.chunks_exact_mut(self.switches).zip(ends) {
                row[switch as usize] = leads(exits, switch, end, table.port(end.lid));
            }
        }
    }

    /// By switch: where the entry for the LID at this place leads.
    pub(crate) fn exits(&self, place: usize) -> &[u32] {
        &self.exits[place * self.switches..(place + 1) * self.switches]
    }

    /// Finds the least numbers of channels to the switches of `ends`, of which there are up to [`BATCH`]: breadth first
    /// from all at once, one bit for each.
    pub(crate) fn measure(&mut self, ground: &Ground<'_>, ends: &[End]) {
        debug_assert!(ends.len() <= BATCH);
        self.switches = ground.len();
        let mut targets: Vec<u32> = ends.iter().map(|end| end.switch).collect();
        targets.sort_unstable();
        targets.dedup();
        self.slots.clear();
        self.slots.extend(ends.iter().map(|end| targets.partition_point(|target| *target < end.switch)));
        self.least.clear();
        self.least.resize(targets.len() * self.switches, UNREACHED);
        self.frontier.clear();
        self.frontier.resize(self.switches, 0);
        self.next.clone_from(&self.frontier);
        for (slot, target) in targets.iter().enumerate() {
            self.frontier[*target as usize] |= 1 << slot;
            self.least[slot * self.switches + *target as usize] = 0;
        }
        self.seen.clone_from(&self.frontier);
        let mut hops = 1;
        while self.step(ground, hops) {
            std::mem::swap(&mut self.frontier, &mut self.next);
            hops += 1;
        }
    }

    fn step(&mut self, ground: &Ground<'_>, hops: u16) -> bool {
        let mut any = 0;
        for switch in 0..self.switches {
            let ways = ground.graph.ways(switch as u32);
            let reached = ways.iter().fold(0, |reached, way| reached | self.frontier[way.to as usize]);
            let new = reached & !self.seen[switch];
            self.seen[switch] |= new;
            self.next[switch] = new;
            any |= new;
            ones(new).for_each(|slot| self.least[slot * self.switches + switch] = hops);
        }
        any != 0
    }

    /// By switch: the least number of channels to the LID at this place, or [`UNREACHED`].
    pub(crate) fn least(&self, place: usize) -> &[u16] {
        let slot = self.slots[place];
        &self.least[slot * self.switches..(slot + 1) * self.switches]
    }
}
