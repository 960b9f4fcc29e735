//! The shortest ways up and then down, for 64 destinations at a time.

use crate::bfs::{BATCH, Search};
use crate::switches::SwitchGraph;

/// Which end of every cable between switches is the higher one: that of lower rank, among equals of lower seat.
#[derive(Clone, Debug)]
pub(super) struct Orientation {
    /// By switch.
    pub(super) ranks: Vec<u32>,
    /// By way: all ones where it leads up, else 0.
    up: Vec<u64>,
}

impl Orientation {
    /// By rank, then by seat, which is a switch's place in the order of GUIDs.
    pub(super) fn new(graph: &SwitchGraph, ranks: Vec<u32>) -> Self {
        let height = |switch: u32| (ranks[switch as usize], switch);
        let mut up = Vec::with_capacity(graph.way_count());
        for switch in 0..graph.len() as u32 {
            let above = |to: u32| if height(to) < height(switch) { u64::MAX } else { 0 };
            up.extend(graph.ways(switch).iter().map(|way| above(way.to)));
        }
        Self { ranks, up }
    }

    /// One by which all ways lead down, so that legal paths are the shortest there are.
    pub(super) fn level(graph: &SwitchGraph) -> Self {
        Self { ranks: vec![0; graph.len()], up: vec![0; graph.way_count()] }
    }

    /// The switches to which a switch goes up, or down; those with several cables as often.
    pub(super) fn neighbours(&self, graph: &SwitchGraph, switch: u32, up: bool) -> impl Iterator<Item = u32> {
        let ways = graph.row(switch).zip(graph.ways(switch));
        ways.filter(move |(way, _)| (self.up[*way] != 0) == up).map(|(_, way)| way.to)
    }
}

/// A search from up to [`BATCH`] switches at once, first against the ways down, then against the ways up.
///
/// A table knows where a packet goes and not where it came from: what comes from above may not turn up again, so a
/// switch that some switch above it relies on for a destination must send down what goes there. All others use their
/// shortest legal paths. So every switch that has a legal path takes one.
#[derive(Debug)]
pub(super) struct UpDown<'a> {
    orientation: &'a Orientation,
    /// By switch: to which destinations it has arrived in the step before.
    frontier: Vec<u64>,
    next: Vec<u64>,
    /// By switch: to which destinations there is a way down.
    pub(super) down: Vec<u64>,
    /// By switch: to which of those a switch above goes through it.
    relied: Vec<u64>,
    /// By switch: to which destinations a way down is as long as the step is now.
    own: Vec<u64>,
    /// By switch: to which destinations there is a way.
    pub(super) seen: Vec<u64>,
    /// By switch: the hops to all destinations together.
    pub(super) hops: Vec<u64>,
    leading: Vec<u64>,
    /// All destinations.
    all: u64,
    /// The first phase, step by step: which switches were reached, from which destinations.
    arrivals: Vec<(u32, u64)>,
    /// Where in `arrivals` each step ends.
    steps: Vec<usize>,
}

impl<'a> UpDown<'a> {
    pub(super) fn new(graph: &SwitchGraph, orientation: &'a Orientation) -> Self {
        let switches = vec![0; graph.len()];
        Self {
            orientation,
            frontier: switches.clone(),
            next: switches.clone(),
            down: switches.clone(),
            relied: switches.clone(),
            own: switches.clone(),
            seen: switches.clone(),
            hops: switches,
            leading: vec![0; graph.way_count()],
            all: 0,
            arrivals: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The first phase, step by step: which switches were reached, from which destinations.
    pub(super) fn steps(&self) -> impl Iterator<Item = &[(u32, u64)]> {
        let starts = std::iter::once(0).chain(self.steps.iter().copied());
        starts.zip(&self.steps).map(|(start, end)| &self.arrivals[start..*end])
    }

    /// From which switches only ways down lead to the destinations.
    fn search_down(&mut self, graph: &SwitchGraph) {
        self.relied.fill(0);
        self.arrivals.clear();
        self.steps.clear();
        loop {
            let arrived = (0..).zip(&self.frontier).filter(|(_, bits)| **bits != 0);
            self.arrivals.extend(arrived.map(|(switch, bits)| (switch, *bits)));
            self.steps.push(self.arrivals.len());
            if !self.step_down(graph) {
                return;
            }
            std::mem::swap(&mut self.frontier, &mut self.next);
        }
    }

    fn step_down(&mut self, graph: &SwitchGraph) -> bool {
        let mut any = 0;
        for switch in 0..graph.len() {
            if self.down[switch] == self.all {
                self.next[switch] = 0;
                continue;
            }
            let row = graph.row(switch as u32);
            let (ways, up) = (graph.ways(switch as u32), &self.orientation.up[row.clone()]);
            let ways =
                ways.iter().zip(up).map(|(way, up)| (way.to as usize, self.frontier[way.to as usize] & !up));
            let new = ways.clone().fold(0, |reached, (_, bits)| reached | bits) & !self.down[switch];
            if new != 0 {
                for (leading, (to, bits)) in self.leading[row].iter_mut().zip(ways) {
                    *leading |= bits & new;
                    self.relied[to] |= bits & new;
                }
                self.down[switch] |= new;
            }
            self.next[switch] = new;
            any |= new;
        }
        any != 0
    }

    /// From which others there are ways up to those, and from which of those that no one relies on ways up are no
    /// longer than ways down.
    fn search_up(&mut self, graph: &SwitchGraph) {
        self.frontier.fill(0);
        self.seen.fill(0);
        for (switch, bits) in &self.arrivals[..self.steps[0]] {
            self.frontier[*switch as usize] = *bits;
            self.seen[*switch as usize] = *bits;
        }
        let (mut any, mut hops) = (true, 1);
        while any || hops < self.steps.len() {
            self.own.fill(0);
            if hops < self.steps.len() {
                for (switch, bits) in &self.arrivals[self.steps[hops - 1]..self.steps[hops]] {
                    self.own[*switch as usize] = *bits;
                }
            }
            any = self.step_up(graph, hops as u64);
            std::mem::swap(&mut self.frontier, &mut self.next);
            hops += 1;
        }
    }

    fn step_up(&mut self, graph: &SwitchGraph, hops: u64) -> bool {
        let mut any = 0;
        for switch in 0..graph.len() {
            if self.seen[switch] == self.all {
                self.next[switch] = 0;
                continue;
            }
            let row = graph.row(switch as u32);
            let (ways, up) = (graph.ways(switch as u32), &self.orientation.up[row.clone()]);
            let ways = ways.iter().zip(up).map(|(way, up)| (self.frontier[way.to as usize] & up, up));
            let unseen = !self.seen[switch];
            let may = ways.clone().fold(0, |reached, (bits, _)| reached | bits)
                & unseen
                & !(self.down[switch] & self.relied[switch]);
            let own = self.own[switch] & unseen;
            if may != 0 {
                // Where the way up is shorter, those down are none.
                let shorter = may & !own;
                for (leading, (bits, up)) in self.leading[row].iter_mut().zip(ways) {
                    *leading = (*leading & (up | !shorter)) | (bits & may);
                }
            }
            let new = own | may;
            self.hops[switch] += hops * u64::from(new.count_ones());
            self.seen[switch] |= new;
            self.next[switch] = new;
            any |= new;
        }
        any != 0
    }
}

impl Search for UpDown<'_> {
    fn search(&mut self, graph: &SwitchGraph, destinations: &[u32]) {
        self.frontier.fill(0);
        self.leading.fill(0);
        self.hops.fill(0);
        for (bit, destination) in destinations.iter().take(BATCH).enumerate() {
            self.frontier[*destination as usize] |= 1 << bit;
        }
        self.all = self.frontier.iter().fold(0, |all, bits| all | bits);
        self.down.copy_from_slice(&self.frontier);
        self.search_down(graph);
        self.search_up(graph);
    }

    fn leading(&self) -> &[u64] {
        &self.leading
    }
}
