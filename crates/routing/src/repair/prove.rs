//! The proof: all of a routing once, then only what has changed.

use weft_topology::Fabric;

use super::choose::{Chooser, Room};
use super::trace::{Changed, Tracer};
use super::waits::Waits;
use super::{Ends, Row, Unrepaired};
use crate::bfs::BATCH;
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::routing::{Ranks, Routing};
use crate::verify::block::Block;
use crate::verify::dependencies::Dependencies;
use crate::verify::ground::{End, Ground};
use crate::verify::loads::Loads;
use crate::verify::order::{Exits, Order};
use crate::verify::pass::{Flows, Pass};
use crate::verify::rows::Rows;
use crate::verify::sources::{Sources, whole};

/// What a proof is made with.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) waits: Waits,
    pub(super) loads: Loads,
    /// Whether no channels wait for each other in a circle. An engine that does not promise that need not keep it.
    pub(super) free: bool,
}

impl Books {
    /// Proves a whole routing.
    pub(super) fn of_all(ground: &Ground<'_>, routing: &Routing, lanes: u8) -> Result<Self, Unrepaired> {
        let rows = Rows::new(ground, &[&routing.lanes], lanes);
        rows.constant().ok_or(Unrepaired::Lanes)?;
        let dependencies = Dependencies::new(ground, false, rows.lane_count());
        let loads = Loads::new(ground);
        let (levels, parts) = ([&routing.levels], whole(&ground.ends));
        let sources = &Sources::new(ground, &rows, &levels, &parts);
        let flows = Flows { rows: &rows, sources, dependencies: &dependencies, loads: Some(&loads) };
        follow(ground, routing, &ground.ends, flows)?;
        let (waits, free) = Waits::new(dependencies);
        Ok(Self { waits, loads, free })
    }

    /// Chooses new rows for what used a cable. The ground is without it.
    pub(super) fn choose(
        &mut self,
        ground: &Ground<'_>,
        routing: &mut Routing,
        ranks: Option<&Ranks>,
        lanes: u8,
        cable: Ends,
    ) -> Result<Vec<Row>, Unrepaired> {
        let rows = Rows::new(ground, &[&routing.lanes], lanes);
        let bits = rows.constant().ok_or(Unrepaired::Lanes)?;
        let (levels, parts) = ([&routing.levels], whole(&ground.ends));
        let sources = Sources::new(ground, &rows, &levels, &parts);
        let mut chooser = Chooser {
            ground,
            ups: ranks.map(|ranks| ground.ups(ranks)),
            sources: &sources,
            bits,
            admission: self.waits.on(ground),
            loads: &mut self.loads,
            room: Room::default(),
        };
        let chosen = chooser.run(cable, &mut routing.routes);
        self.waits = chooser.admission.end();
        chosen
    }

    /// Proves what is new to LIDs of which some rows have changed.
    pub(super) fn prove(
        &mut self,
        ground: &Ground<'_>,
        routing: &Routing,
        lanes: u8,
        changed: &[Changed],
    ) -> Result<(), Unrepaired> {
        let rows = Rows::new(ground, &[&routing.lanes], lanes);
        let bits = rows.constant().ok_or(Unrepaired::Lanes)?;
        let (levels, parts) = ([&routing.levels], whole(&ground.ends));
        let sources = Sources::new(ground, &rows, &levels, &parts);
        let mut admission = self.waits.on(ground);
        let dependencies = admission.dependencies();
        let tracer = Tracer { ground, routes: &routing.routes, sources: &sources, bits, dependencies };
        let left = tracer.run(changed)?;
        follow(ground, routing, &left, Flows { rows: &rows, sources: &sources, dependencies, loads: None })?;
        let is_fine = !self.free || !admission.has_circle();
        self.waits = admission.end();
        if is_fine { Ok(()) } else { Err(Unrepaired::Circle) }
    }

    /// Adds the pairs that use the paths to some LIDs, or takes them away.
    pub(super) fn weigh(&self, ground: &Ground<'_>, routing: &Routing, ends: &[End], add: bool) {
        let (mut block, mut order, mut senders) = (Block::default(), Order::default(), Vec::new());
        for ends in ends.chunks(BATCH) {
            block.read(ground, &routing.routes, ends);
            for (place, _) in ends.iter().enumerate().filter(|(_, end)| end.host) {
                let exits = block.exits(place);
                order.sort(ground, Exits::of(exits));
                self.loads.weigh(ground, &order, exits, add, &mut senders);
            }
        }
    }
}

/// Follows all packets to some LIDs.
fn follow(ground: &Ground<'_>, routing: &Routing, ends: &[End], flows: Flows<'_>) -> Result<(), Unrepaired> {
    let pass = Pass { ground, routes: &routing.routes, ups: None, flows: Some(flows) };
    let (report, _) = pass.run_to(ends);
    if report.serves_hosts() { Ok(()) } else { Err(Unrepaired::Unsound) }
}

/// What all pairs of hosts together ask of the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burden {
    /// The pairs on the busiest channel.
    pub(super) busiest: u64,
    /// The channels of all pairs.
    pub(super) total: u64,
    /// Whether no channels wait for each other in a circle.
    pub(super) is_free: bool,
}

/// What a routing asks of the channels, if it is sound and packets keep their lanes.
pub(super) fn burden(
    fabric: &Fabric,
    lids: &Lids,
    routing: &Routing,
    options: &EngineOptions,
) -> Option<Burden> {
    let ground = Ground::new(fabric, lids, &options.management_nodes);
    let books = Books::of_all(&ground, routing, options.lanes).ok()?;
    let loads = || (0..ground.to.len() as u32).map(|channel| books.loads.of(channel));
    Some(Burden { busiest: loads().max().unwrap_or(0), total: loads().sum(), is_free: books.free })
}
