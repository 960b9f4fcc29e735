//! Whose packets it is that hold a channel and want another.

use crate::bfs::BATCH;
use crate::lanes::ServiceLevels;
use crate::tables::Routes;

use super::block::Block;
use super::flow::{Journey, Sink, Spread};
use super::ground::Ground;
use super::order::{Exits, Order};
use super::pair::Pair;
use super::rows::Rows;
use super::sources::{Part, Sources};

/// What to look for: packets that hold a channel on a lane, and perhaps want another on a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) held: (u32, u8),
    pub(super) wanted: Option<(u32, u8)>,
}

/// Finds pairs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witness<'a> {
    pub(super) ground: &'a Ground<'a>,
    pub(super) rows: &'a Rows,
    /// One routing's, or those of two that are in force at the same time.
    pub(super) levels: &'a [&'a ServiceLevels],
    pub(super) tables: &'a [&'a Routes],
    /// Who sends and receives.
    pub(super) parts: &'a [Part],
}

impl Witness<'_> {
    /// The first pair, by destination and then by source, that does it.
    pub(super) fn find(&self, goal: Goal) -> Option<Pair> {
        let mut blocks: Vec<Block> = self.tables.iter().map(|_| Block::default()).collect();
        let (mut order, mut spread) = (Order::default(), Spread::default());
        let all = Sources::new(self.ground, self.rows, self.levels, self.parts);
        for parts in self.parts.chunks(BATCH) {
            let ends: Vec<_> = parts.iter().map(|(end, _)| *end).collect();
            for (block, routes) in blocks.iter_mut().zip(self.tables) {
                block.read(self.ground, routes, &ends);
            }
            for (place, part) in parts.iter().enumerate() {
                let Some(first) = blocks.first() else { continue };
                let second = blocks.get(1).map(|block| block.exits(place));
                let exits = Exits { first: first.exits(place), second };
                if !self.goes_by(goal, exits) {
                    continue;
                }
                order.sort(self.ground, exits);
                let journey = Journey { ground: self.ground, rows: self.rows, part, order: &order, exits };
                let mut does = |sources: &Sources<'_>| {
                    let mut search = Search { goal, found: false };
                    spread.run(&journey, sources, &mut search);
                    search.found
                };
                if !does(&all) {
                    continue;
                }
                let source = self.parts.iter().find(|source| {
                    does(&Sources::new(self.ground, self.rows, self.levels, std::slice::from_ref(*source)))
                });
                return source.map(|(source, _)| Pair { source: source.lid, destination: part.0.lid });
            }
        }
        None
    }

    /// Whether tables lead by these channels at all.
    fn goes_by(&self, goal: Goal, exits: Exits<'_>) -> bool {
        let leads = |channel: u32| {
            let switch = self.ground.from[channel as usize].0;
            exits.channels(switch).any(|(_, exit)| exit == channel)
        };
        leads(goal.held.0) && goal.wanted.is_none_or(|(channel, _)| leads(channel))
    }
}

/// Looks at whether packets do it.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) goal: Goal,
    pub(super) found: bool,
}

impl Sink for Search {
    fn carry(&mut self, channel: u32, lanes: u16) {
        let (held, lane) = self.goal.held;
        self.found |= self.goal.wanted.is_none() && channel == held && lanes & 1 << lane != 0;
    }

    fn depend(&mut self, first: u32, held: u16, second: u32, wanted: u16) {
        if let Some((channel, lane)) = self.goal.wanted {
            let here = first == self.goal.held.0 && held & 1 << self.goal.held.1 != 0;
            self.found |= here && second == channel && wanted & 1 << lane != 0;
        }
    }
}
