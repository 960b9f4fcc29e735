//! Where the packets for one LID go, and which channels they hold and want at the same time.

use weft_wire::PortNum;

use crate::lanes::SERVICE_LEVELS;

use super::block::Tree;
use super::ground::{Ground, is_channel};
use super::rows::{Bits, Rows};
use super::sources::{Part, Sources};

/// Who wants to know about channels and lanes.
pub(super) trait Sink {
    /// A channel carries packets, on these lanes.
    fn carry(&mut self, channel: u32, lanes: u16);
    /// Packets that hold `first` on any of `held` may want `second` on any of `wanted`.
    fn depend(&mut self, first: u32, held: u16, second: u32, wanted: u16);
}

/// Follows the packets for one LID where no packet changes lanes: `lanes` has, by switch, the lanes by which its own
/// end ports send, and afterwards those of all that comes by.
pub(super) fn flow(ground: &Ground<'_>, tree: &Tree, exits: &[u32], lanes: &mut [u16], sink: &mut impl Sink) {
    let mut pass = |switch: u32, lanes: &mut [u16]| {
        let (exit, carried) = (exits[switch as usize], lanes[switch as usize]);
        if !is_channel(exit) || carried == 0 {
            return;
        }
        sink.carry(exit, carried);
        let next = ground.to[exit as usize] as usize;
        lanes[next] |= carried;
        if is_channel(exits[next]) {
            sink.depend(exit, carried, exits[next], carried);
        }
    };
    for switch in &tree.order {
        pass(*switch, lanes);
    }
    let looping = tree.looping();
    // What is on a loop comes by everywhere on it: once round to gather, once round to tell.
    for switch in looping.iter().chain(&looping) {
        let mut at = *switch;
        loop {
            pass(at, lanes);
            at = ground.to[exits[at as usize] as usize];
            if at == *switch {
                break;
            }
        }
    }
}

/// Follows the packets for one LID where lanes may change on the way, or where each switch sends by either of two
/// tables.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// By switch and table: by level, the lanes on the channel that it sends by.
    lanes: Vec<Bits>,
    waiting: Vec<u32>,
    queue: Vec<u32>,
}

/// One LID and what decides where its packets go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Journey<'a> {
    pub(super) ground: &'a Ground<'a>,
    pub(super) rows: &'a Rows,
    pub(super) part: &'a Part,
    /// By table: the exits by switch. One table, or two that switches may mix.
    pub(super) tables: &'a [&'a [u32]],
}

impl Journey<'_> {
    /// The channels by which a switch may send, each once, with their tables.
    pub(super) fn channels(&self, switch: u32) -> impl Iterator<Item = (usize, u32)> {
        let exits = self.tables.iter().map(move |exits| exits[switch as usize]);
        let first = self.tables.first().map(|exits| exits[switch as usize]);
        exits
            .enumerate()
            .filter(move |(table, exit)| is_channel(*exit) && (*table == 0 || Some(*exit) != first))
    }
}

impl Spread {
    /// Follows what all `sources` send.
    pub(super) fn run(&mut self, journey: &Journey<'_>, sources: &Sources<'_>, sink: &mut impl Sink) {
        let tables = journey.tables.len();
        self.lanes.clear();
        self.lanes.resize(journey.ground.len() * tables, [0; SERVICE_LEVELS]);
        for switch in 0..journey.ground.len() as u32 {
            self.inject(journey, sources, switch);
        }
        self.sort(journey);
        for place in 0..self.queue.len() {
            self.pass(journey, self.queue[place], sink);
        }
        // What is on loops or behind them comes to rest when nothing new comes by.
        let behind: Vec<u32> =
            (0..).zip(&self.waiting).filter(|(_, waiting)| **waiting > 0).map(|(switch, _)| switch).collect();
        let mut changed = !behind.is_empty();
        while changed {
            changed = false;
            for switch in &behind {
                changed |= self.pass(journey, *switch, sink);
            }
        }
    }

    /// Whether packets can go round in a loop; after [`Self::run`].
    pub(super) fn has_loop(&self) -> bool {
        self.queue.len() < self.waiting.len()
    }

    fn inject(&mut self, journey: &Journey<'_>, sources: &Sources<'_>, switch: u32) {
        let target = sources.target(journey.part);
        for group in sources.on(switch) {
            let sent = sources.levels(group, &target);
            for (table, channel) in journey.channels(switch) {
                let exit = journey.ground.from[channel as usize].1;
                let bits = journey.rows.bits(switch, PortNum(group.entry), exit);
                let lanes = &mut self.lanes[switch as usize * journey.tables.len() + table];
                for (level, (lanes, bits)) in lanes.iter_mut().zip(bits).enumerate() {
                    if sent & 1 << level != 0 {
                        *lanes |= bits;
                    }
                }
            }
        }
    }

    /// Puts the switches that are neither on loops nor behind them in the order in which packets pass them.
    fn sort(&mut self, journey: &Journey<'_>) {
        let switches = journey.ground.len() as u32;
        let to = |channel: u32| journey.ground.to[channel as usize] as usize;
        self.waiting.clear();
        self.waiting.resize(switches as usize, 0);
        for (_, channel) in (0..switches).flat_map(|switch| journey.channels(switch)) {
            self.waiting[to(channel)] += 1;
        }
        self.queue.clear();
        self.queue.extend((0..switches).filter(|switch| self.waiting[*switch as usize] == 0));
        let mut served = 0;
        while let Some(switch) = self.queue.get(served).copied() {
            served += 1;
            for (_, channel) in journey.channels(switch) {
                let next = to(channel);
                self.waiting[next] -= 1;
                if self.waiting[next] == 0 {
                    self.queue.push(next as u32);
                }
            }
        }
    }

    /// Sends on what is at a switch, and tells whether that is new to the next.
    fn pass(&mut self, journey: &Journey<'_>, switch: u32, sink: &mut impl Sink) -> bool {
        let Journey { ground, rows, tables, .. } = journey;
        let mut new = false;
        for (table, channel) in journey.channels(switch) {
            let held = self.lanes[switch as usize * tables.len() + table];
            let all = held.iter().fold(0, |all, lanes| all | lanes);
            if all == 0 {
                continue;
            }
            sink.carry(channel, all);
            let (next, entry) = (ground.to[channel as usize], ground.entry[channel as usize]);
            for (next_table, wanted) in journey.channels(next) {
                let bits = rows.bits(next, entry, ground.from[wanted as usize].1);
                let lanes = &mut self.lanes[next as usize * tables.len() + next_table];
                for level in (0..SERVICE_LEVELS).filter(|level| held[*level] != 0 && bits[*level] != 0) {
                    new |= bits[level] & !lanes[level] != 0;
                    lanes[level] |= bits[level];
                    sink.depend(channel, held[level], wanted, bits[level]);
                }
            }
        }
        new
    }
}
