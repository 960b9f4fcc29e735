//! An order of all ways that few packets go against (Eades, Lin, Smyth: A Fast and Effective Heuristic for the
//! Feedback Arc Set Problem, 1993).

use std::collections::BinaryHeap;

use super::dependencies::{Numbering, Traffic};
use super::network::Network;

/// Ranks of all ways, by way: those that the most traffic leaves, and the least comes to, are first. Where there is
/// no cycle, everything goes forward.
pub(super) fn ranks(network: &Network, numbering: &Numbering, traffic: &Traffic) -> Vec<u32> {
    let mut rest = Rest::new(network, numbering, traffic);
    let (mut first, mut end) = (0, numbering.ways());
    let mut ranks = vec![0; end as usize];
    while let Some((way, place)) = rest.pick() {
        ranks[way as usize] = match place {
            OrderEnd::First => {
                first += 1;
                first - 1
            }
            OrderEnd::Last => {
                end -= 1;
                end
            }
        };
        rest.take(network, numbering, traffic, way);
    }
    ranks
}

/// Where in the order of what is left.
enum OrderEnd {
    First,
    Last,
}

/// The ways that have no rank yet.
struct Rest {
    ways: Vec<Left>,
    /// Those that follow none.
    sources: Vec<u32>,
    /// Those that none follows.
    sinks: Vec<u32>,
    /// All, by surplus; entries may be out of date.
    others: BinaryHeap<(i64, u32)>,
}

/// What is left around a way.
#[derive(Clone, Copy, Default)]
struct Left {
    taken: bool,
    /// How many ways it follows.
    before: u32,
    /// How many ways follow it.
    after: u32,
    /// The traffic that goes on from it, less what comes to it.
    surplus: i64,
}

impl Rest {
    fn new(network: &Network, numbering: &Numbering, traffic: &Traffic) -> Self {
        let mut ways = vec![Left::default(); network.to.len()];
        for way in 0..numbering.ways() {
            for (number, next) in numbering.after(way).filter(|(number, _)| traffic.uses[*number] > 0) {
                let uses = i64::from(traffic.uses[number]);
                ways[way as usize].after += 1;
                ways[way as usize].surplus += uses;
                ways[next as usize].before += 1;
                ways[next as usize].surplus -= uses;
            }
        }
        let mut rest = Self { ways, sources: Vec::new(), sinks: Vec::new(), others: BinaryHeap::new() };
        for way in 0..numbering.ways() {
            rest.note(way);
        }
        rest
    }

    /// Puts a way where it belongs now.
    fn note(&mut self, way: u32) {
        let left = self.ways[way as usize];
        match (left.taken, left.before, left.after) {
            (true, ..) => {}
            (false, _, 0) => self.sinks.push(way),
            (false, 0, _) => self.sources.push(way),
            _ => self.others.push((left.surplus, way)),
        }
    }

    /// The next way, and where it goes.
    fn pick(&mut self) -> Option<(u32, OrderEnd)> {
        let ways = &self.ways;
        while let Some(way) = self.sinks.pop() {
            if !ways[way as usize].taken {
                return Some((way, OrderEnd::Last));
            }
        }
        while let Some(way) = self.sources.pop() {
            if !ways[way as usize].taken {
                return Some((way, OrderEnd::First));
            }
        }
        while let Some((surplus, way)) = self.others.pop() {
            let left = ways[way as usize];
            if !left.taken && left.surplus == surplus {
                return Some((way, OrderEnd::First));
            }
        }
        None
    }

    /// Takes a way, and what goes from and to it, out of the rest.
    fn take(&mut self, network: &Network, numbering: &Numbering, traffic: &Traffic, way: u32) {
        self.ways[way as usize].taken = true;
        for (number, next) in numbering.after(way) {
            let (uses, left) = (traffic.uses[number], &mut self.ways[next as usize]);
            if uses > 0 && !left.taken {
                left.before -= 1;
                left.surplus += i64::from(uses);
                self.note(next);
            }
        }
        for out in network.graph.row(network.from[way as usize]) {
            let before = network.back[out];
            let uses = traffic.uses[numbering.of((before, way))];
            let left = &mut self.ways[before as usize];
            if uses > 0 && !left.taken {
                left.after -= 1;
                left.surplus -= i64::from(uses);
                self.note(before);
            }
        }
    }
}
