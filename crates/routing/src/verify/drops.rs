//! Pairs whose packets are dropped because their level has no lane on the way.

use rayon::prelude::*;
use serde::Serialize;
use weft_wire::PortNum;

use crate::bfs::BATCH;
use crate::routing::Routing;

use super::block::Block;
use super::ground::{End, Ground, is_channel};
use super::order::{Exits, NEVER, Order};
use super::pair::Pair;
use super::rows::Rows;

/// Pairs whose packets would arrive, but for their service level, which has lane 15 or none somewhere on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// How many pairs of LIDs.
    pub pairs: u64,
    /// The first.
    pub example: Option<Pair>,
}

/// Looks for them.
pub(super) fn find(ground: &Ground<'_>, rows: &Rows, routing: &Routing) -> Drops {
    if routing.levels.used() & !rows.open_everywhere() == 0 {
        return Drops::default();
    }
    let search =
        Search { ground, rows, routing, sends: ground.ends.iter().map(|end| rows.sends(end)).collect() };
    let found: Vec<Drops> = ground
        .ends
        .par_chunks(BATCH)
        .map_init(Worker::default, |worker, ends| worker.block(&search, ends))
        .collect();
    found.into_iter().fold(Drops::default(), |all, drops| Drops {
        pairs: all.pairs + drops.pairs,
        example: all.example.or(drops.example),
    })
}

struct Search<'a> {
    ground: &'a Ground<'a>,
    rows: &'a Rows,
    routing: &'a Routing,
    /// By end: the levels that it sends at all.
    sends: Vec<u16>,
}

#[derive(Debug, Default)]
struct Worker {
    block: Block,
    order: Order,
    /// By switch: the levels that arrive once they have left it.
    through: Vec<u16>,
}

impl Worker {
    fn block(&mut self, search: &Search<'_>, ends: &[End]) -> Drops {
        let mut drops = Drops::default();
        self.block.read(search.ground, &search.routing.routes, ends);
        for (place, end) in ends.iter().enumerate() {
            let exits = self.block.exits(place);
            self.order.sort(search.ground, Exits::of(exits));
            self.order.count(search.ground, exits);
            search.pass_through(&self.order, exits, end, &mut self.through);
            search.count(&self.order, exits, &self.through, end, &mut drops);
        }
        drops
    }
}

impl Search<'_> {
    /// The port by which a switch sends what takes this exit, which is none that loses it.
    fn port(&self, exit: u32, end: &End) -> PortNum {
        if is_channel(exit) { self.ground.from[exit as usize].1 } else { end.at }
    }

    fn pass_through(&self, order: &Order, exits: &[u32], end: &End, through: &mut Vec<u16>) {
        through.clear();
        through.resize(exits.len(), u16::MAX);
        for switch in order.switches.iter().rev().map(|switch| *switch as usize) {
            let exit = exits[switch];
            if order.hops[switch] != NEVER && is_channel(exit) {
                let (next, entry) = (self.ground.to[exit as usize], self.ground.entry[exit as usize]);
                let port = self.port(exits[next as usize], end);
                through[switch] = self.rows.open(next, entry, port) & through[next as usize];
            }
        }
    }

    fn count(&self, order: &Order, exits: &[u32], through: &[u16], end: &End, drops: &mut Drops) {
        let levels = &self.routing.levels;
        let class = levels.destination_class(end.lid);
        for (source, sends) in self.ground.ends.iter().zip(&self.sends) {
            let switch = source.switch as usize;
            let talks = (source.host || end.host) && source.port != end.port;
            if !talks || order.hops[switch] == NEVER {
                continue;
            }
            let open = self.rows.open(source.switch, source.at, self.port(exits[switch], end));
            let level = levels.level(levels.source_class(source.lid), class);
            if sends & open & through[switch] & 1 << level == 0 {
                drops.pairs += 1;
                drops.example.get_or_insert(Pair { source: source.lid, destination: end.lid });
            }
        }
    }
}
