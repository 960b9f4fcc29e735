//! New rows for the packets that used a cable.

mod turn;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_topology::PortRef;
use weft_wire::{Lid, PortNum};

use super::waits::Admission;
use super::{Ends, Row, Unrepaired};
use crate::bfs::BATCH;
use crate::tables::Routes;
use crate::verify::block::Block;
use crate::verify::ground::{ARRIVES, End, Ground, LOST, is_channel};
use crate::verify::loads::Loads;
use crate::verify::order::NEVER;
use crate::verify::rows::Bits;
use crate::verify::sources::{Sent, Sources, whole};

/// Finds the switches whose packets to a LID used a cable, and other ways for them: by the least number of cables, among
/// those by the row that there is, and else by the path whose busiest channel carries the fewest pairs of hosts. No way is
/// taken that would let channels wait for each other in a circle.
///
/// In a tree a new path goes up and then down, as all others do. Where no such path is left, which concerns switches above
/// the cut, it goes the shortest way.
#[derive(Debug)]
pub(super) struct Chooser<'a> {
    pub(super) ground: &'a Ground<'a>,
    /// By channel: whether it leads up, in a tree.
    pub(super) ups: Option<Vec<bool>>,
    pub(super) sources: &'a Sources<'a>,
    /// The lane of every level.
    pub(super) bits: &'a Bits,
    pub(super) admission: Admission<'a>,
    pub(super) loads: &'a mut Loads,
    pub(super) room: Room,
}

/// The hops of switches whose packets have not been followed.
const UNKNOWN: u32 = NEVER - 1;

/// Room to work in, for one LID: all by switch.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// How many channels its packets take; [`NEVER`] where they do not arrive.
    hops: Vec<u32>,
    /// Where its packets go; [`LOST`] while that is open.
    exits: Vec<u32>,
    /// Where they went.
    old: Vec<u32>,
    /// Whether its packets used the cable.
    lost: Vec<bool>,
    /// How its packets go by the ranks.
    shapes: Vec<Shape>,
    /// The fewest cables by which it may come to be reached.
    best: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    path: Vec<u32>,
    members: Vec<u32>,
    /// The ways taken, in order: the switch and the channel.
    taken: Vec<(u32, u32)>,
    /// Those to a hub, found for a LID before.
    ways_to: Option<(u32, Vec<(u32, u32)>)>,
    /// The lanes by which its own end ports send.
    lanes: Vec<u16>,
}

/// The shape of a path in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    /// Down at some place and later up, or no path.
    #[default]
    Turns,
    /// Up, and then down.
    Rises,
    /// Down alone.
    Falls,
}

/// Whether the shapes of paths matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shapes {
    /// No path turns up after it went down.
    Kept,
    Any,
}

/// A channel that is gone: by which switch and port it was used.
#[derive(Clone, Copy, Debug)]
struct Gone {
    switch: u32,
    port: PortNum,
    channel: u32,
}

impl Chooser<'_> {
    /// Moves the rows of all that used one cable, in the tables too.
    pub(super) fn run(&mut self, cable: Ends, routes: &mut Routes) -> Result<Vec<Row>, Unrepaired> {
        let gone: Vec<Gone> = [cable.0, cable.1].iter().filter_map(|port| self.gone(*port)).collect();
        let uses = |end: &&End| gone.iter().any(|gone| self.sends_by(gone, routes, end.lid));
        let ends: Vec<End> = self.ground.ends.iter().filter(uses).copied().collect();
        let (mut block, mut sent, mut rows) = (Block::default(), Sent::default(), Vec::new());
        for ends in ends.chunks(BATCH) {
            block.read(self.ground, routes, ends);
            sent.find(self.ground, self.sources, self.bits, &whole(ends));
            for (place, end) in ends.iter().enumerate() {
                let used = gone.iter().filter(|gone| self.sends_by(gone, routes, end.lid));
                let used: Vec<Gone> = used.copied().collect();
                self.begin(block.exits(place), &used);
                self.room.lanes.clear();
                self.room.lanes.extend_from_slice(sent.lanes(place));
                self.find(end)?;
                self.note(end, routes, &mut rows);
            }
        }
        Ok(rows)
    }

    /// Finds a way for every switch that needs one.
    fn find(&mut self, end: &End) -> Result<(), Unrepaired> {
        for switch in self.room.members.iter().filter(|_| end.host) {
            shift(self.ground, self.loads, *switch, &self.room.old, false);
        }
        let shapes = if self.ups.is_some() { Shapes::Kept } else { Shapes::Any };
        self.settle(end, shapes);
        if self.room.members.iter().any(|at| self.is_open(*at)) {
            self.walk_all();
            let idle = if self.lacks(end) { self.free_idle(end) } else { Vec::new() };
            self.turn_at_hub(end);
            if !self.lacks(end) {
                // Those that are not needed any more get their rows back.
                let open = idle.iter().filter(|at| self.room.exits[**at as usize] == LOST);
                open.for_each(|at| self.room.lost[*at as usize] = false);
                self.room.members.retain(|at| self.room.lost[*at as usize]);
            }
            self.settle(end, Shapes::Any);
            self.spare_idle(end, &idle);
        }
        if self.lacks(end) { Err(Unrepaired::Unreached(end.lid)) } else { Ok(()) }
    }

    /// Whether any switch still has no way that somebody needs.
    fn lacks(&self, end: &End) -> bool {
        let mut open = self.room.members.iter().filter(|at| self.room.exits[**at as usize] == LOST);
        open.any(|at| end.host || self.ground.has_hosts[*at as usize])
    }

    fn gone(&self, port: PortRef) -> Option<Gone> {
        let switch = self.ground.graph.number(port.node)?;
        let channel = self.ground.channel(switch, port.port)?;
        Some(Gone { switch, port: port.port, channel })
    }

    fn sends_by(&self, gone: &Gone, routes: &Routes, lid: Lid) -> bool {
        routes.port(self.ground.graph.nodes[gone.switch as usize], lid) == gone.port
    }

    /// Finds the switches whose packets used what is gone, and how those of all others go.
    fn begin(&mut self, exits: &[u32], gone: &[Gone]) {
        let (ground, room) = (self.ground, &mut self.room);
        room.exits.clear();
        room.exits.extend_from_slice(exits);
        room.old.clone_from(&room.exits);
        room.hops.clear();
        room.hops.resize(exits.len(), UNKNOWN);
        room.lost.clear();
        room.lost.resize(exits.len(), false);
        room.shapes.clear();
        room.shapes.resize(exits.len(), Shape::Turns);
        for gone in gone {
            room.old[gone.switch as usize] = gone.channel;
            room.lost[gone.switch as usize] = true;
        }
        match gone {
            [gone] if is_lone(ground, exits, gone.switch) => {
                // Most that used the way up from a leaf: only its own neighbours matter.
                room.walk(ground.to[gone.channel as usize], ground, self.ups.as_deref());
                for channel in ground.exits(gone.switch).iter().filter(|exit| is_channel(**exit)) {
                    room.walk(ground.to[*channel as usize], ground, self.ups.as_deref());
                }
                room.hops[gone.switch as usize] = NEVER;
            }
            _ => self.walk_all(),
        }
        let room = &mut self.room;
        let lost = (0..).zip(&room.lost).filter(|(_, lost)| **lost).map(|(at, _): (u32, _)| at);
        room.members.clear();
        room.members.extend(lost);
        for at in &room.members {
            room.exits[*at as usize] = LOST;
        }
    }

    /// Follows the packets of all switches that have not been followed.
    fn walk_all(&mut self) {
        for switch in 0..self.ground.len() as u32 {
            self.room.walk(switch, self.ground, self.ups.as_deref());
        }
    }

    /// Finds ways, nearest switches first.
    fn settle(&mut self, end: &End, shapes: Shapes) {
        self.room.heap.clear();
        self.room.best.clear();
        self.room.best.resize(self.room.exits.len(), NEVER);
        for place in 0..self.room.members.len() {
            let member = self.room.members[place];
            if self.is_open(member) {
                self.offer(member, 0, shapes);
            }
        }
        while let Some(Reverse((hops, member))) = self.room.heap.pop() {
            if !self.is_open(member) {
                continue;
            }
            if self.admission.is_exhausted() {
                return;
            }
            let Some(channel) = self.pick(member, hops, end.lid, shapes) else {
                self.offer(member, hops, shapes);
                continue;
            };
            self.take(member, hops, channel);
            if end.host {
                shift(self.ground, self.loads, member, &self.room.exits, true);
            }
            self.spread(member, hops + 1, shapes);
        }
    }

    fn is_open(&self, switch: u32) -> bool {
        self.room.hops[switch as usize] == NEVER
    }

    /// Puts a switch in line with the fewest hops that are more than these.
    fn offer(&mut self, switch: u32, more_than: u32, shapes: Shapes) {
        let hops = self.ways(switch, shapes).map(|(_, far)| far + 1).filter(|hops| *hops > more_than).min();
        self.room.best[switch as usize] = hops.unwrap_or(NEVER);
        self.room.heap.extend(hops.map(|hops| Reverse((hops, switch))));
    }

    /// The channels by which a switch could send now, with the hops from the other end.
    fn ways(&self, switch: u32, shapes: Shapes) -> impl Iterator<Item = (u32, u32)> {
        let hops = &self.room.hops;
        let exits = self.ground.exits(switch).iter().copied().filter(|exit| is_channel(*exit));
        let far = exits.map(|channel| (channel, hops[self.ground.to[channel as usize] as usize]));
        far.filter(move |(channel, hops)| *hops != NEVER && self.may(*channel, shapes))
    }

    /// Whether a path may go on by a channel.
    fn may(&self, channel: u32, shapes: Shapes) -> bool {
        let there = self.room.shapes[self.ground.to[channel as usize] as usize];
        match &self.ups {
            Some(ups) if shapes == Shapes::Kept => there.before(ups[channel as usize]) != Shape::Turns,
            _ => true,
        }
    }

    /// The best way of `hops` hops that closes no circle.
    fn pick(&mut self, switch: u32, hops: u32, lid: Lid, shapes: Shapes) -> Option<u32> {
        let (old, lanes) = (self.room.old[switch as usize], self.room.lanes[switch as usize]);
        let worth = |channel: u32| {
            let to = self.ground.to[channel as usize];
            let next = self.room.exits[to as usize];
            let is_new = is_channel(next) && !self.admission.has(channel, next, lanes);
            // What is new turns at the same switches as far as possible, so that few of them wait for each other.
            let load = || (self.busiest(channel), self.loads.of(channel), mix(lid, channel));
            let rest = if is_new { (u64::from(to), 0, 0) } else { load() };
            (channel != old, is_new, rest, channel)
        };
        let ways = self.ways(switch, shapes).filter(|(_, far)| far + 1 == hops);
        let ways = ways.map(|(channel, _)| worth(channel));
        // Where all keep their shape there is rarely a circle, and the proof finds it.
        if shapes == Shapes::Kept {
            return ways.min().map(|(.., channel)| channel);
        }
        let mut ways: Vec<_> = ways.collect();
        ways.sort_unstable();
        let mut ways = ways.into_iter().map(|(.., channel)| channel);
        ways.find(|channel| self.admits(switch, *channel))
    }

    /// Whether what a switch sends may take the path that begins with a channel.
    fn admits(&mut self, switch: u32, first: u32) -> bool {
        let lanes = self.room.lanes[switch as usize];
        let mut held = first;
        loop {
            let wanted = self.room.exits[self.ground.to[held as usize] as usize];
            if lanes == 0 || !is_channel(wanted) {
                return true;
            }
            if !self.admission.admit(held, wanted, lanes) {
                return false;
            }
            held = wanted;
        }
    }

    /// The most pairs that a channel of the path carries which begins with this one.
    fn busiest(&self, channel: u32) -> u64 {
        let (mut most, mut exit) = (0, channel);
        while is_channel(exit) {
            most = most.max(self.loads.of(exit));
            exit = self.room.exits[self.ground.to[exit as usize] as usize];
        }
        most
    }

    fn take(&mut self, switch: u32, hops: u32, channel: u32) {
        let (at, next) = (switch as usize, self.ground.to[channel as usize] as usize);
        self.room.exits[at] = channel;
        self.room.hops[at] = hops;
        self.room.taken.push((switch, channel));
        if let Some(ups) = &self.ups {
            self.room.shapes[at] = self.room.shapes[next].before(ups[channel as usize]);
        }
    }

    /// Tells the neighbours of a switch that it has a way.
    fn spread(&mut self, switch: u32, hops: u32, shapes: Shapes) {
        for channel in self.ground.exits(switch).iter().filter(|exit| is_channel(**exit)) {
            let next = self.ground.to[*channel as usize];
            let entry = self.ground.entry[*channel as usize];
            let back = self.ground.exits(next).get(usize::from(entry.0)).copied().unwrap_or(LOST);
            let open = self.room.lost[next as usize] && self.room.hops[next as usize] == NEVER;
            if open && hops < self.room.best[next as usize] && is_channel(back) && self.may(back, shapes) {
                self.room.best[next as usize] = hops;
                self.room.heap.push(Reverse((hops, next)));
            }
        }
    }

    /// Writes the rows that are others than before.
    fn note(&self, end: &End, routes: &mut Routes, rows: &mut Vec<Row>) {
        for switch in &self.room.members {
            let exit = self.room.exits[*switch as usize];
            let node = self.ground.graph.nodes[*switch as usize];
            let after = if exit == LOST { PortNum::NONE } else { self.ground.from[exit as usize].1 };
            let before = PortRef::new(node, routes.port(node, end.lid));
            if before.port != after {
                rows.push(Row { before, lid: end.lid, after });
                if let Some(table) = routes.tables.get_mut(node.index()) {
                    table.set(end.lid, after);
                }
            }
        }
    }
}

/// Whether no other switch sends by this one.
fn is_lone(ground: &Ground<'_>, exits: &[u32], switch: u32) -> bool {
    let mut channels = ground.exits(switch).iter().filter(|exit| is_channel(**exit));
    channels.all(|channel| {
        let next = exits[ground.to[*channel as usize] as usize];
        !is_channel(next) || ground.to[next as usize] != switch
    })
}

/// Adds what the hosts on a switch send to all channels of their path, or takes it away.
fn shift(ground: &Ground<'_>, loads: &mut Loads, switch: u32, exits: &[u32], onto: bool) {
    let (pairs, mut at) = (loads.hosts[switch as usize], switch);
    while pairs > 0 && is_channel(exits[at as usize]) {
        let channel = exits[at as usize];
        loads.shift(channel, pairs, onto);
        at = ground.to[channel as usize];
    }
}

impl Room {
    /// Follows the packets of a switch as far as that has not been done.
    fn walk(&mut self, from: u32, ground: &Ground<'_>, ups: Option<&[bool]>) {
        let mut at = from;
        while self.hops[at as usize] == UNKNOWN {
            // Who comes by here again has gone round in a circle.
            self.hops[at as usize] = NEVER;
            match self.exits[at as usize] {
                ARRIVES => (self.hops[at as usize], self.shapes[at as usize]) = (0, Shape::Falls),
                LOST => {}
                channel => {
                    self.path.push(at);
                    at = ground.to[channel as usize];
                }
            }
        }
        while let Some(before) = self.path.pop() {
            let channel = self.exits[before as usize];
            let (here, next) = (before as usize, ground.to[channel as usize] as usize);
            self.lost[here] |= self.lost[next];
            if self.hops[next] != NEVER {
                self.hops[here] = self.hops[next] + 1;
                self.shapes[here] = self.shapes[next].before(ups.is_some_and(|ups| ups[channel as usize]));
            }
        }
    }
}

impl Shape {
    /// The shape of a path that takes one more channel first.
    fn before(self, up: bool) -> Self {
        match (self, up) {
            (Self::Turns, _) | (Self::Rises, false) => Self::Turns,
            (_, true) => Self::Rises,
            (Self::Falls, false) => Self::Falls,
        }
    }
}

/// What decides between equals: the same for the same LID and channel, and another for each (the finaliser of
/// `SplitMix64`).
fn mix(lid: Lid, channel: u32) -> u64 {
    let mut bits = (u64::from(lid.0) << 32 | u64::from(channel)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ bits >> 31
}
