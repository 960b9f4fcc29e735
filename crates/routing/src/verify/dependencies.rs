//! The channel dependency graph (Dally and Seitz 1987): which channels packets hold while they want which others.

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use weft_wire::VirtualLane;

use crate::bits::ones;

use super::channels::Channels;
use super::cycle::in_order;
use super::digraph::Digraph;
use super::flow::Sink;
use super::ground::Ground;

/// How many lanes there are.
const LANES: usize = 16;

/// Which lanes of which channels are waited for by packets in which others. Many threads may add to it at once:
/// nothing is ever taken out, so the order does not matter.
#[derive(Debug)]
pub(crate) struct Dependencies<'a> {
    pub(crate) ground: &'a Ground<'a>,
    edges: Edges,
}

/// The same without the fabric, to be kept.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    /// By channel: where its entries begin, one for each channel that leaves the switch that it leads to.
    first: Vec<usize>,
    /// How many lanes an entry tells apart to begin with: 1 where no packet changes lanes, so that those it ends on are
    /// those that it begins on.
    planes: usize,
    /// By entry and lane to begin with: the lanes to end on.
    lanes: Vec<AtomicU16>,
    /// By channel: the lanes that carry packets.
    carried: Vec<AtomicU16>,
}

impl Edges {
    /// Whether packets in `held` want `wanted`, where no packet changes lanes.
    pub(crate) fn has(&self, channels: &Channels, held: u32, wanted: u32, lane: usize) -> bool {
        let entry = self.first[held as usize] + channels.place(wanted);
        self.lanes[entry].load(Relaxed) & 1 << lane != 0
    }

    /// All that packets in a channel want, where no packet changes lanes.
    pub(crate) fn wanted(&self, channels: &Channels, channel: u32, lane: usize) -> impl Iterator<Item = u32> {
        let ways = channels.graph.row(channels.to[channel as usize]);
        let entries = &self.lanes[self.first[channel as usize]..];
        let on_lane = move |entry: &&AtomicU16| entry.load(Relaxed) & 1 << lane != 0;
        ways.zip(entries).filter(move |(_, entry)| on_lane(entry)).map(|(next, _)| next as u32)
    }
}

impl<'a> Dependencies<'a> {
    /// An empty graph for lanes below `lane_count`.
    pub(crate) fn new(ground: &'a Ground<'a>, changing: bool, lane_count: usize) -> Self {
        let planes = if changing { lane_count.max(1) } else { 1 };
        let mut first = Vec::with_capacity(ground.to.len());
        let mut entries = 0;
        for to in &ground.to {
            first.push(entries);
            entries += ground.graph.ways(*to).len();
        }
        let zeros = |count| std::iter::repeat_with(AtomicU16::default).take(count).collect();
        let edges = Edges { first, planes, lanes: zeros(entries * planes), carried: zeros(ground.to.len()) };
        Self { ground, edges }
    }

    /// A graph that was kept, on the fabric that it is of.
    pub(crate) fn on(ground: &'a Ground<'a>, edges: Edges) -> Self {
        debug_assert_eq!(edges.first.len(), ground.to.len(), "the graph of another fabric");
        Self { ground, edges }
    }

    /// The graph, to be kept.
    pub(crate) fn into_edges(self) -> Edges {
        self.edges
    }

    /// Whether packets may change lanes.
    pub(crate) fn changing(&self) -> bool {
        self.edges.planes > 1
    }

    /// The lanes that carry packets.
    pub(crate) fn used(&self) -> Vec<usize> {
        ones(self.edges.carried.iter().fold(0, |used, lanes| used | lanes.load(Relaxed))).collect()
    }

    /// Where no packet changes lanes: the channels of a lane, each before those that its packets want. `None` where they
    /// wait for each other in a circle.
    pub(crate) fn in_order(&self, lane: usize) -> Option<Vec<u32>> {
        in_order(&OneLane(self, lane)).ok()
    }

    /// Whether packets in `held` may want `wanted`, where no packet changes lanes.
    pub(crate) fn has(&self, held: u32, wanted: u32, lane: usize) -> bool {
        self.edges.has(self.ground, held, wanted, lane)
    }

    /// All that packets in a channel may want, where no packet changes lanes.
    pub(crate) fn wanted(&self, channel: u32, lane: usize) -> impl Iterator<Item = u32> {
        self.edges.wanted(self.ground, channel, lane)
    }

    /// The lanes on which a channel carries packets.
    pub(crate) fn carried(&self, channel: u32) -> u16 {
        self.edges.carried[channel as usize].load(Relaxed)
    }

    /// Tells every channel that packets in `channel` on a lane may want, with the lanes there.
    fn each(&self, channel: u32, lane: usize, tell: impl FnMut(u32, u16)) {
        match self.changing() {
            true => self.each_of(channel, lane, u16::MAX, tell),
            false => self.each_of(channel, 0, 1 << lane, tell),
        }
    }

    /// Tells every channel that packets in `channel` may want by the entries of a plane, with the lanes of `only` there.
    fn each_of(&self, channel: u32, plane: usize, only: u16, mut tell: impl FnMut(u32, u16)) {
        let ways = self.ground.graph.row(self.ground.to[channel as usize]);
        let first = self.edges.first[channel as usize];
        for (place, next) in ways.enumerate() {
            let lanes = self.edges.lanes[(first + place) * self.edges.planes + plane].load(Relaxed) & only;
            if lanes != 0 {
                tell(next as u32, lanes);
            }
        }
    }

    /// By lane: how many channels carry packets on it, and how many other channels those want, each counted.
    pub(crate) fn counts(&self) -> [(usize, usize); LANES] {
        let mut counts = [(0, 0); LANES];
        for channel in 0..self.ground.to.len() as u32 {
            let carried = self.carried(channel);
            ones(carried).for_each(|lane| counts[lane].0 += 1);
            if !self.changing() {
                let mut count = |lane: usize| counts[lane].1 += 1;
                self.each_of(channel, 0, carried, |_, lanes| ones(lanes).for_each(&mut count));
                continue;
            }
            for lane in ones(carried) {
                self.each(channel, lane, |_, lanes| counts[lane].1 += lanes.count_ones() as usize);
            }
        }
        counts
    }
}

fn add(lanes: &AtomicU16, more: u16) {
    // Most are there already, and reading is cheaper.
    if lanes.load(Relaxed) & more != more {
        lanes.fetch_or(more, Relaxed);
    }
}

impl Sink for &Dependencies<'_> {
    fn carry(&mut self, channel: u32, lanes: u16) {
        add(&self.edges.carried[channel as usize], lanes);
    }

    fn depend(&mut self, first: u32, held: u16, second: u32, wanted: u16) {
        let entry = self.edges.first[first as usize] + self.ground.place(second);
        if !self.changing() {
            add(&self.edges.lanes[entry], wanted);
            return;
        }
        ones(held).for_each(|lane| add(&self.edges.lanes[entry * self.edges.planes + lane], wanted));
    }
}

/// The channels of one lane, where no packet changes lanes. A node is a channel.
#[derive(Debug)]
pub(crate) struct OneLane<'a>(pub(super) &'a Dependencies<'a>, pub(super) usize);

impl Digraph for OneLane<'_> {
    fn len(&self) -> usize {
        self.0.ground.to.len()
    }

    fn for_each(&self, node: u32, mut tell: impl FnMut(u32)) {
        self.0.each(node, self.1, |next, _| tell(next));
    }
}

/// The channels of all lanes together, where no packet changes lanes: if there is no circle, there is none on any lane. A node is a
/// channel.
#[derive(Debug)]
pub(crate) struct Together<'a>(pub(super) &'a Dependencies<'a>);

impl Digraph for Together<'_> {
    fn len(&self) -> usize {
        self.0.ground.to.len()
    }

    fn for_each(&self, node: u32, mut tell: impl FnMut(u32)) {
        self.0.each_of(node, 0, u16::MAX, |next, _| tell(next));
    }
}

/// The channels of all lanes. A node is a channel and a lane.
#[derive(Debug)]
pub(crate) struct AllLanes<'a>(pub(super) &'a Dependencies<'a>);

impl AllLanes<'_> {
    /// The channel and the lane of a node.
    pub(crate) fn place(&self, node: u32) -> (u32, VirtualLane) {
        let planes = self.0.edges.planes as u32;
        (node / planes, VirtualLane((node % planes) as u8))
    }
}

impl Digraph for AllLanes<'_> {
    fn len(&self) -> usize {
        self.0.ground.to.len() * self.0.edges.planes
    }

    fn for_each(&self, node: u32, mut tell: impl FnMut(u32)) {
        let (channel, lane) = self.place(node);
        self.0.each(channel, usize::from(lane.0), |next, lanes| {
            ones(lanes).for_each(|lane| tell(next * self.0.edges.planes as u32 + lane as u32));
        });
    }
}
