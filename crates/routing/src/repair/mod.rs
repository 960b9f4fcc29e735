//! Repairs: after a cable is cut, new rows for the paths that used it, and for those alone; with a proof of the same size.
//!
//! ```text
//!   cut ──▶ choose  every LID with a row by the cable: new rows for the switches whose packets used it
//!     │       └──▶ prove  what passes those rows; the new waits join those of all others, and may close no circle
//!     └──▶ log ──▶ restore  when the cable is back: the rows as they were, where nothing else has moved them
//! ```
//!
//! A row is the port of one switch for one LID. Rows of packets that did not use the cable stay, so tables depend on the
//! history of a fabric and not on its cabling alone (`docs/decisions/0008-repair.md`). [`Proven::verify`] runs the full
//! verifier over what repairs have left.

mod choose;
mod keep;
mod log;
mod prove;
mod trace;
mod waits;

use std::collections::BTreeSet;

use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use crate::collapse::Collapsed;
use crate::engines::{Engine, Input, is_program};
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::partitions::Partitions;
use crate::routing::{Ranks, Routing};
use crate::sorted;
use crate::tree::Tree;
use crate::verify::ground::{End, Ground};

use log::Log;
use prove::Books;
use trace::Changed;

pub use keep::keeps;

/// The two ends of a cable.
pub type Ends = (PortRef, PortRef);

/// The port of one switch for one LID, where a repair has moved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The switch, and the port before: [`PortNum::NONE`] where there was no route.
    pub before: PortRef,
    /// The LID.
    pub lid: Lid,
    /// The port now.
    pub after: PortNum,
}

impl Row {
    /// The same the other way.
    fn back(&self) -> Self {
        let before = PortRef::new(self.before.node, self.after);
        Self { before, lid: self.lid, after: self.before.port }
    }
}

/// Why a repair is not possible, so that all has to be computed again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unrepaired {
    /// The engine's promises are about more than each path by itself.
    #[error("{0} has no repair that keeps what it promises")]
    Engine(String),
    /// Policies of partitions bind paths to each other.
    #[error("partitions have policies of isolation")]
    Policies,
    /// Lanes depend on the ports that a packet takes.
    #[error("the lane of a service level differs from port to port")]
    Lanes,
    /// The routing did not hold before.
    #[error("the routing is not sound")]
    Unsound,
    /// Such a cable is not known, or not cut, or not between two switches.
    #[error("no cable between switches that is known is at {0:?}")]
    Cable(PortRef),
    /// No path is left for packets of hosts.
    #[error("no path is left to LID {0}")]
    Unreached(Lid),
    /// The new paths may deadlock together with those that are left, or with those before.
    #[error("channels might wait for each other in a circle")]
    Circle,
}

/// A routing that is proven, with what the next proof needs of it.
#[derive(Debug)]
pub struct Proven {
    /// With the cables that are cut.
    fabric: Fabric,
    lids: Lids,
    routing: Routing,
    management: Vec<Guid>,
    /// How many data lanes there are.
    lanes: u8,
    /// What was cut, and which rows that has moved; oldest first.
    log: Log,
    books: Books,
    /// Where switches stand in a tree, by the engine or else by the cabling, if it is one.
    ranks: Option<Ranks>,
}

/// A routing that was proved, and whose tables may be others now. It still has what the proof needed: in a large fabric it takes time to let
/// go of that, which a move of a LID has not while it is under way.
#[derive(Debug)]
pub struct Outdated(Box<Proven>);

impl Outdated {
    /// The routing.
    pub fn routing(&self) -> &Routing {
        &self.0.routing
    }

    /// The same, to be changed.
    pub fn routing_mut(&mut self) -> &mut Routing {
        &mut self.0.routing
    }

    /// The routing alone, to be proved again.
    pub fn into_routing(self) -> Routing {
        self.0.into_routing()
    }
}

impl Proven {
    /// Takes a routing that an engine has made for a fabric, and verifies all of it.
    ///
    /// # Errors
    ///
    /// When no repair of such a routing is safe, or it does not hold.
    pub fn new(
        fabric: Fabric,
        lids: Lids,
        routing: Routing,
        options: &EngineOptions,
    ) -> Result<Self, Unrepaired> {
        repairs(&routing, options)?;
        let management = options.management_nodes.clone();
        let ground = Ground::new(&fabric, &lids, &management);
        let books = Books::of_all(&ground, &routing, options.lanes)?;
        let (lanes, log) = (options.lanes, Log::default());
        let input = Input { fabric: &fabric, lids: &lids, options };
        let by_cabling = || ranks_by_cabling(&input);
        let ranks = routing.ranks.clone().or_else(by_cabling);
        Ok(Self { fabric, lids, routing, management, lanes, log, books, ranks })
    }

    /// The routing as it is now.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// Whether repairs can keep what a routing promises, as far as that follows from its engine and the options alone.
    ///
    /// # Errors
    ///
    /// Says what stands against it.
    pub fn may(routing: &Routing, options: &EngineOptions) -> Result<(), Unrepaired> {
        repairs(routing, options)
    }

    /// The routing alone, for tables that are to be proved again.
    pub fn into_routing(self) -> Routing {
        self.routing
    }

    /// For tables that are to be changed, and proved again later.
    pub fn outdate(self: Box<Self>) -> Outdated {
        Outdated(self)
    }

    /// Who has which LIDs.
    pub fn lids(&self) -> &Lids {
        &self.lids
    }

    /// The cabling that the engine routed, and what of it is cut now.
    pub fn cabling(&self) -> (&Fabric, impl Iterator<Item = Ends>) {
        (&self.fabric, self.log.cables())
    }

    /// Whether a cable is one that was cut.
    pub fn is_cut(&self, cable: Ends) -> bool {
        self.log.has(cable)
    }

    /// Finds other ways for all that used these cables, proves them, and gives the rows that are new, in order.
    ///
    /// # Errors
    ///
    /// When that is not possible. Then nothing is left of use but to route everything again.
    pub fn cut(&mut self, cables: &[Ends]) -> Result<Vec<Row>, Unrepaired> {
        for (a, b) in cables {
            let is_switch = |port: &PortRef| self.fabric.node(port.node).is_switch();
            let known = self.fabric.peer(*a) == Some(*b) && is_switch(a) && is_switch(b);
            if !known || a.node == b.node || self.log.has((*a, *b)) {
                return Err(Unrepaired::Cable(*a));
            }
        }
        let mut gone: Vec<PortRef> = self.log.ports();
        let ground = || Ground::new(&self.fabric, &self.lids, &self.management);
        let mut moved = Vec::new();
        // One after the other, so that each can come back by itself.
        for cable in cables {
            gone.extend([cable.0, cable.1]);
            let ground = ground().without(&gone);
            let rows =
                self.books.choose(&ground, &mut self.routing, self.ranks.as_ref(), self.lanes, *cable)?;
            moved.extend(rows.iter().copied());
            self.log.push(*cable, rows);
        }
        let (rows, ground) = (merged(moved), ground().without(&gone));
        let proof = self.books.prove(&ground, &self.routing, self.lanes, &Changed::of(&ground, &rows));
        self.confirm(proof)?;
        Ok(rows)
    }

    /// Takes cables back that were cut: rows are again what they were before; those for LIDs that a later cut
    /// has moved too wait for that cable. Gives the rows that are new, in order.
    ///
    /// # Errors
    ///
    /// As [`Self::cut`] does.
    pub fn restore(&mut self, cables: &[Ends]) -> Result<Vec<Row>, Unrepaired> {
        let mut rows = Vec::new();
        for cable in cables {
            rows.extend(self.log.undo(*cable).ok_or(Unrepaired::Cable(cable.0))?);
        }
        let rows = merged(rows);
        let left: Vec<PortRef> = self.log.ports();
        let ground = Ground::new(&self.fabric, &self.lids, &self.management).without(&left);
        let ends = some_of(&ground, &rows.iter().map(|row| row.lid).collect());
        self.books.weigh(&ground, &self.routing, &ends, false);
        for row in &rows {
            if let Some(table) = self.routing.routes.tables.get_mut(row.before.node.index()) {
                table.set(row.lid, row.after);
            }
        }
        self.books.weigh(&ground, &self.routing, &ends, true);
        let proof = self.books.prove(&ground, &self.routing, self.lanes, &Changed::of(&ground, &rows));
        self.confirm(proof)?;
        Ok(rows)
    }

    /// A circle may be one of waits that are no more: then everything is verified.
    fn confirm(&mut self, proof: Result<(), Unrepaired>) -> Result<(), Unrepaired> {
        if proof == Err(Unrepaired::Circle) { self.verify() } else { proof }
    }

    /// Verifies everything, and forgets the waits of paths that are no more.
    ///
    /// # Errors
    ///
    /// When the routing does not hold, which no repair should leave behind.
    pub fn verify(&mut self) -> Result<(), Unrepaired> {
        let left: Vec<PortRef> = self.log.ports();
        let ground = Ground::new(&self.fabric, &self.lids, &self.management).without(&left);
        let was_free = self.books.free;
        self.books = Books::of_all(&ground, &self.routing, self.lanes)?;
        if was_free && !self.books.free { Err(Unrepaired::Circle) } else { Ok(()) }
    }
}

/// Where switches stand in a tree that is one without its vSwitches, which have no rank.
fn ranks_by_cabling(input: &Input<'_>) -> Option<Ranks> {
    let ranks = |input: &Input<'_>| Some(Tree::new(input).ok()?.ranks_by_node());
    match Collapsed::of(input) {
        Some(collapsed) => Some(collapsed.expand_ranks(&ranks(&collapsed.input(input))?)),
        None => ranks(input),
    }
}

/// Whether repairs of such a routing keep all that it promises.
fn repairs(routing: &Routing, options: &EngineOptions) -> Result<(), Unrepaired> {
    let engine = &routing.report.engine;
    // A program promises nothing of all paths together.
    if !is_program(engine) && !Engine::by_name(engine).is_some_and(Engine::is_repairable) {
        return Err(Unrepaired::Engine(engine.clone()));
    }
    match options.partitions.as_ref().is_some_and(Partitions::isolates) {
        true => Err(Unrepaired::Policies),
        false => Ok(()),
    }
}

/// The ends that have these LIDs.
fn some_of(ground: &Ground<'_>, lids: &BTreeSet<Lid>) -> Vec<End> {
    ground.ends.iter().filter(|end| lids.contains(&end.lid)).copied().collect()
}

/// One row for each that was moved, several times maybe, and is another than before.
fn merged(mut rows: Vec<Row>) -> Vec<Row> {
    sorted::by_key(&mut rows, |row| (row.before.node, row.lid));
    let same = |a: &Row, b: &Row| (a.before.node, a.lid) == (b.before.node, b.lid);
    let last = |rows: &[Row]| {
        let (first, last) = (rows.first()?, rows.last()?);
        Some(Row { after: last.after, ..*first })
    };
    let merged = rows.chunk_by(same).filter_map(last);
    merged.filter(|row| row.before.port != row.after).collect()
}

#[cfg(test)]
mod tests;
