//! Deadlocks of chosen pairs alone, on whatever levels they send.

use rayon::prelude::*;
use serde::Serialize;
use weft_topology::Fabric;
use weft_wire::{Lid, PortNum, ServiceLevel};

use crate::bfs::BATCH;
use crate::lanes::{LaneMap, SERVICE_LEVELS};
use crate::lids::Lids;
use crate::tables::Routes;

use super::deadlock::{Cycle, LaneUse, cycles, lane_use};
use super::dependencies::Dependencies;
use super::flow::Sink;
use super::ground::{End, Ground, is_channel};
use super::pair::Pair;
use super::rows::Rows;
use super::witness::{Goal, Search};

/// Packets of a pair on a service level, be it the routing's or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Stream {
    /// From where to where.
    pub pair: Pair,
    /// The service level.
    pub level: ServiceLevel,
}

/// What [`verify_streams`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamsVerdict {
    /// What is on each lane.
    pub lanes: Vec<LaneUse>,
    /// As in [`Verdict`](crate::Verdict), of these packets alone.
    pub cycles: Vec<Cycle>,
}

/// Verifies that the packets of `streams` do not wait for each other in a circle where nothing else is sent. A channel
/// of a cycle names the first stream that holds it and wants the next. `data_lanes` is the number of data lanes, 1 to
/// 15: packets on others are dropped, as are those that their tables do not bring home, where that ends.
pub fn verify_streams(
    fabric: &Fabric,
    lids: &Lids,
    routes: &Routes,
    lanes: &LaneMap,
    streams: &[Stream],
    data_lanes: u8,
) -> StreamsVerdict {
    let ground = Ground::new(fabric, lids, &[]);
    let rows = Rows::new(&ground, &[lanes], data_lanes);
    let dependencies = Dependencies::new(&ground, rows.constant().is_none(), rows.lane_count());
    let walk = Walk { ground: &ground, rows: &rows, routes };
    streams.par_chunks(BATCH).for_each(|streams| {
        streams.iter().for_each(|stream| walk.run(stream, &mut &dependencies));
    });
    let find = |goal: Goal| {
        let does = |stream: &&Stream| {
            let mut search = Search { goal, found: false };
            walk.run(stream, &mut search);
            search.found
        };
        streams.iter().find(does).map(|stream| stream.pair)
    };
    StreamsVerdict { lanes: lane_use(&dependencies), cycles: cycles(&dependencies, &find) }
}

struct Walk<'a> {
    ground: &'a Ground<'a>,
    rows: &'a Rows,
    routes: &'a Routes,
}

impl Walk<'_> {
    fn end(&self, lid: Lid) -> Option<&End> {
        let ends = &self.ground.ends;
        ends.binary_search_by_key(&lid, |end| end.lid).ok().map(|place| &ends[place])
    }

    /// Follows the packets of one stream from their switch on.
    fn run(&self, stream: &Stream, sink: &mut impl Sink) {
        let ends = self.end(stream.pair.source).zip(self.end(stream.pair.destination));
        let level = usize::from(stream.level.0) % SERVICE_LEVELS;
        let Some((from, to)) = ends.filter(|(from, _)| self.rows.sends(from) & 1 << level != 0) else {
            return;
        };
        let (mut switch, mut entry, mut held) = (from.switch, from.at, None);
        // A loop has come back to its beginning after as many switches as there are, and once more closes the circle.
        for _ in 0..self.ground.len() + 2 {
            let Some(channel) = self.exit(switch, to) else { return };
            let lanes = self.rows.bits(switch, entry, self.ground.from[channel as usize].1)[level];
            if lanes == 0 {
                return;
            }
            sink.carry(channel, lanes);
            if let Some((first, held)) = held.replace((channel, lanes)) {
                sink.depend(first, held, channel, lanes);
            }
            (switch, entry) = (self.ground.to[channel as usize], self.ground.entry[channel as usize]);
        }
    }

    /// The channel by which a switch sends on what is for an end port that is not its own.
    fn exit(&self, switch: u32, to: &End) -> Option<u32> {
        let port: PortNum = self.routes.port(self.ground.graph.nodes[switch as usize], to.lid);
        if switch == to.switch && port == to.at {
            return None;
        }
        self.ground.exits(switch).get(usize::from(port.0)).copied().filter(|exit| is_channel(*exit))
    }
}
