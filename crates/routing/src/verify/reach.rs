//! One pass over all LIDs, in blocks: who arrives, by how many channels, and which channels wait for which.

use rayon::prelude::*;
use weft_topology::PortRef;
use weft_wire::PortNum;

use crate::bfs::BATCH;
use crate::trace::{TraceError, trace};

use super::block::{Block, UNREACHED};
use super::flow::{Follower, Journey};
use super::ground::End;
use super::legality::{Turns, Up};
use super::near::Near;
use super::order::{Exits, NEVER, Order};
use super::pass::Pass;
use super::report::{COUNTER_EXAMPLES_MAX, Report};
use super::sources::whole;

impl Pass<'_> {
    /// Follows everything.
    pub(crate) fn run(&self) -> (Report, Turns) {
        self.run_to(&self.ground.ends)
    }

    /// Follows some LIDs.
    pub(crate) fn run_to(&self, ends: &[End]) -> (Report, Turns) {
        let found: Vec<Found> = ends
            .par_chunks(BATCH)
            .map_init(Worker::default, |worker, ends| worker.block(self, ends))
            .collect();
        let mut report = Report { unattached: self.ground.unattached, ..Report::default() };
        let (mut turns, mut between_switches) = (Turns::default(), Vec::new());
        for found in found {
            report.append(found.report);
            turns.append(found.turns);
            between_switches.extend(found.between_switches);
        }
        // Ways that somebody sends by are shown first.
        report.append(Report { counter_examples: between_switches, ..Report::default() });
        (report, turns)
    }
}

/// What there is to say of a block.
#[derive(Debug, Default)]
struct Found {
    report: Report,
    turns: Turns,
    /// The first failures that are in no one's way.
    between_switches: Vec<TraceError>,
}

/// A thread's room to work in.
#[derive(Debug, Default)]
struct Worker {
    block: Block,
    order: Order,
    follower: Follower,
    up: Up,
    senders: Vec<u64>,
    near: Near,
}

impl Worker {
    fn block(&mut self, pass: &Pass<'_>, ends: &[End]) -> Found {
        let mut found = Found::default();
        let ground = pass.ground;
        self.block.measure(ground, ends);
        let parts = whole(ends);
        if let Some(flows) = pass.flows {
            self.follower.begin(ground, flows.rows, flows.sources, &parts);
        }
        if pass.needs_no_order() && self.near.read(ground, pass.routes, ends, &self.block) {
            let sent = pass.flows.map(|flows| (self.follower.sent(), flows.dependencies));
            self.near.follow(ground, &self.block, sent, &mut found.report);
            return found;
        }
        self.block.read(ground, pass.routes, ends);
        for (place, part) in parts.iter().enumerate() {
            let exits = self.block.exits(place);
            self.order.sort(ground, Exits::of(exits));
            self.order.count(ground, exits);
            if let Some(flows) = pass.flows {
                let (rows, exits) = (flows.rows, Exits::of(exits));
                let journey = Journey { ground, rows, part, order: &self.order, exits };
                self.follower.run(place, &journey, flows.sources, &mut &*flows.dependencies);
            }
            if let Some(loads) = pass.flows.and_then(|flows| flows.loads).filter(|_| part.0.host) {
                loads.weigh(ground, &self.order, exits, true, &mut self.senders);
            }
            self.tally(pass, place, &part.0, &mut found);
            if let Some(ups) = pass.ups {
                self.up.find(pass, ups, &self.order, exits, &part.0, &mut found.turns);
            }
        }
        found
    }

    fn tally(&self, pass: &Pass<'_>, place: usize, end: &End, found: &mut Found) {
        let (least, hops) = (self.block.least(place), &self.order.hops);
        for (switch, (least, hops)) in least.iter().zip(hops).enumerate() {
            match (*least, *hops) {
                (UNREACHED, _) => found.report.disconnected += 1,
                (_, NEVER) => {
                    let in_use = end.host || pass.ground.has_hosts[switch];
                    found.failure(in_use, || {
                        let from = PortRef::new(pass.ground.graph.nodes[switch], PortNum::ZERO);
                        trace(pass.ground.fabric, pass.ground.lids, pass.routes, from, end.lid).err()
                    });
                }
                (least, hops) => found.report.arrival(hops, u32::from(least)),
            }
        }
    }
}

impl Found {
    fn failure(&mut self, in_use: bool, error: impl FnOnce() -> Option<TraceError>) {
        let report = &mut self.report;
        report.pairs += 1;
        report.failures += 1;
        report.between_switches += u64::from(!in_use);
        let examples = if in_use { &mut report.counter_examples } else { &mut self.between_switches };
        if examples.len() < COUNTER_EXAMPLES_MAX {
            examples.extend(error());
        }
    }
}
