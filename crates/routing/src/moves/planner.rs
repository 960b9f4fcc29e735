//! Plans from the tables in force.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use weft_topology::{Fabric, PortRef};
use weft_wire::Lid;

use super::change::{Change, Model, Rows};
use super::draft::{Draft, place};
use super::error::{Counterexample, PlanError};
use super::kept::Kept;
use super::network::Seat;
use super::plan::{Fallback, Plan, Proof, Proved, Round, Smps, Write};
use super::prove;
use super::request::{Method, Move, UpdateOrder};
use super::stage::{Items, Stage, postpone};
use crate::lids::Lids;
use crate::routing::Routing;
use crate::tables::Routes;

/// Makes plans and proves them. Writes nothing: the tables are those of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    /// What was kept of these tables.
    pub kept: &'a Kept,
    /// The cabling, vSwitches included where the fabric has them.
    pub fabric: &'a Fabric,
    /// The owners of LIDs before the moves.
    pub lids: &'a Lids,
    /// The tables in force, and the levels and lanes.
    pub routing: &'a Routing,
    /// Tables computed from scratch for the new places, for [`Method::Full`] and [`Move::Rebalance`].
    pub fresh: Option<&'a Routes>,
}

/// Whether moves that touch no block of a switch together are carried out at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Together,
    /// One after the other, each after packets of the one before have arrived.
    Drained,
}

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
struct How {
    method: Method,
    order: UpdateOrder,
    packing: Packing,
    /// How many of the last rounds of a LID are late.
    late: usize,
}

impl Planner<'_> {
    /// Plans moves by a method, or by the next of its [chain](Method::chain) where that leaves a switch without a path. Moves that
    /// touch no block of a switch together are carried out at the same time, others in order. Nothing is proved.
    ///
    /// # Errors
    ///
    /// When the request contradicts the fabric, or no method leaves paths.
    pub fn plan(&self, moves: &[Move], method: Method, order: UpdateOrder) -> Result<Plan, PlanError> {
        self.validate(moves)?;
        let mut fallbacks = Vec::new();
        for method in method.chain() {
            let late = usize::from(order == UpdateOrder::OrderedLate);
            match self.by_method(moves, How { method: *method, order, packing: Packing::Together, late }) {
                Ok(plan) => return Ok(Plan { fallbacks, ..plan }),
                Err(reason) => fallbacks.push(Fallback { method: *method, order, reason }),
            }
        }
        Err(fallbacks.pop().map_or(PlanError::NoFreshTables, |last| last.reason))
    }

    /// Plans moves and proves the plan. Where moves at the same time are not safe, they are carried out one after the other, each
    /// after the packets of the one before; where the method is not, the next of its chain is tried. Where packets under way
    /// could close a circle by each of these, as in damaged trees, the last switches get their rows late, as few of them as will
    /// do; and where that does not help, packets are dropped first everywhere and have time to be gone.
    ///
    /// # Errors
    ///
    /// When the request contradicts the fabric, or no plan that was tried is safe.
    pub fn plan_and_prove(
        &self,
        moves: &[Move],
        method: Method,
        order: UpdateOrder,
    ) -> Result<(Plan, Proof), PlanError> {
        self.validate(moves)?;
        let mut fallbacks: Vec<Fallback> = Vec::new();
        for (method, order) in attempts(method, order) {
            let circled = |failed: &Fallback| failed.method == method && is_circle(&failed.reason);
            // Other orders help against circles alone.
            let is_resort = fallbacks.iter().any(|failed| failed.order != order);
            if is_resort && !fallbacks.iter().any(circled) {
                continue;
            }
            match self.first_safe(moves, (method, order), is_resort) {
                Ok((plan, proof)) => return Ok((Plan { fallbacks, ..plan }, proof)),
                Err(reason) => fallbacks.push(Fallback { method, order, reason }),
            }
        }
        Err(fallbacks.pop().map_or(PlanError::NoFreshTables, |last| last.reason))
    }

    fn first_safe(
        &self,
        moves: &[Move],
        (method, order): (Method, UpdateOrder),
        is_resort: bool,
    ) -> Result<(Plan, Proof), PlanError> {
        let drops = is_resort && order == UpdateOrder::DropFirst;
        let packings = if drops { &[Packing::Drained][..] } else { &[Packing::Together, Packing::Drained] };
        let late = self.late(moves, method, order);
        let mut reason = PlanError::NoFreshTables;
        for packing in packings.iter().copied() {
            for late in late.clone() {
                let proven = self.by_method(moves, How { method, order, packing, late }).and_then(|plan| {
                    let proof = self.prove(&plan).map_err(PlanError::Unsafe)?;
                    Ok((plan, proof))
                });
                match proven {
                    Ok(proven) => return Ok(proven),
                    Err(failure) => reason = failure,
                }
            }
            // Draining helps against packets of other moves alone.
            if !is_circle(&reason) {
                break;
            }
        }
        Err(reason)
    }

    /// How many rounds may be late, the fewest first.
    fn late(&self, moves: &[Move], method: Method, order: UpdateOrder) -> RangeInclusive<usize> {
        if order != UpdateOrder::OrderedLate {
            return 0..=0;
        }
        let ordered = How { method, order: UpdateOrder::Ordered, packing: Packing::Together, late: 0 };
        let rounds = self.by_method(moves, ordered).map_or(0, |plan| plan.rounds.len());
        1..=rounds.saturating_sub(1).max(1)
    }

    /// Proves a plan from its writes alone: what they change in the tables in force, round by round, with packets under way and
    /// those of plans that were [admitted](Kept::admit).
    ///
    /// # Errors
    ///
    /// With what can go wrong.
    pub fn prove(&self, plan: &Plan) -> Proved {
        let changes: Vec<Change> =
            plan.moves.iter().filter_map(|one| self.changes(one).ok()).flatten().collect();
        prove::prove(self.kept, (self.fabric, self.lids, self.routing), plan, &changes)
    }

    fn name(&self, port: PortRef) -> String {
        self.fabric.port_name(port).to_string()
    }

    fn seat(&self, port: PortRef) -> Result<Seat, PlanError> {
        self.kept.network.seat(self.fabric, port).ok_or_else(|| PlanError::Unattached(self.name(port)))
    }

    /// One LID or two that change their places.
    fn changes(&self, one: &Move) -> Result<Vec<Change>, PlanError> {
        let seats = |from: Option<PortRef>, to: Option<PortRef>| {
            let seat = |port: Option<PortRef>| port.map(|port| self.seat(port)).transpose();
            Ok::<_, PlanError>((seat(from)?, seat(to)?))
        };
        let is_live = |lid: Lid| !self.kept.idle.contains(&lid);
        Ok(match *one {
            Move::Copy { lid, from, to, of } => {
                let (before, after) = seats(Some(from), Some(to))?;
                vec![Change { lid, before, after, model: Model::All(of), is_live: true }]
            }
            Move::Swap { lid, from, to, with } => {
                let (before, after) = seats(Some(from), Some(to))?;
                let back = Change {
                    lid: with,
                    before: after,
                    after: before,
                    model: Model::All(lid),
                    is_live: is_live(with),
                };
                vec![Change { lid, before, after, model: Model::All(with), is_live: true }, back]
            }
            Move::Boot { lid, to, of } => {
                let (before, after) = seats(None, Some(to))?;
                vec![Change { lid, before, after, model: Model::All(of), is_live: true }]
            }
            Move::Rebalance { lid, at } => {
                let (before, after) = seats(Some(at), Some(at))?;
                vec![Change { lid, before, after, model: Model::Fresh, is_live: is_live(lid) }]
            }
            Move::Clear { lid, from } => {
                let (before, after) = seats(Some(from), None)?;
                vec![Change { lid, before, after, model: Model::Nothing, is_live: true }]
            }
            Move::Finish { lid, at, of } => {
                let (before, after) = seats(Some(at), Some(at))?;
                vec![Change { lid, before, after, model: Model::Missing(of), is_live: true }]
            }
        })
    }

    /// Whether the request agrees with the fabric and with itself.
    fn validate(&self, moves: &[Move]) -> Result<(), PlanError> {
        let mut lids = BTreeSet::new();
        for one in moves {
            for change in self.changes(one)? {
                if !lids.insert(change.lid) {
                    return Err(PlanError::Twice(change.lid));
                }
                let levels = &self.routing.levels;
                let class = levels.source_class(change.lid);
                let covers = |seat: Seat| self.kept.senders.binary_search(&(seat.switch, class)).is_ok();
                if change.is_live && change.after.is_some_and(|seat| !covers(seat)) {
                    return Err(PlanError::Levels(change.lid));
                }
            }
            self.check_owners(one)?;
        }
        Ok(())
    }

    fn check_owners(&self, one: &Move) -> Result<(), PlanError> {
        let owned = |lid: Lid, port: PortRef, other: PortRef| match self.lids.owner(lid) {
            // A request that is made again may find the LID where it was to go.
            Some(owner) if owner != port && owner != other => {
                Err(PlanError::Owner { lid, owner: self.name(owner), port: self.name(port) })
            }
            _ => Ok(()),
        };
        let leads = |of: Lid, port: PortRef| {
            let owner = self.lids.owner(of).and_then(|owner| self.kept.network.seat(self.fabric, owner));
            let switch = self.seat(port)?.switch;
            // In a fabric without vSwitches the copied LID is of the same port, with them of another at the same switch.
            let same = owner.is_some_and(|owner| owner.switch == switch);
            if same { Ok(()) } else { Err(PlanError::Model { of, port: self.name(port) }) }
        };
        match *one {
            Move::Copy { lid, from, to, of } => owned(lid, from, to).and_then(|()| leads(of, to)),
            Move::Swap { lid, from, to, with } => owned(lid, from, to).and_then(|()| owned(with, to, from)),
            Move::Boot { lid, to, of } => owned(lid, to, to).and_then(|()| leads(of, to)),
            Move::Rebalance { lid, at: from } | Move::Clear { lid, from } => owned(lid, from, from),
            Move::Finish { lid, at, of } => owned(lid, at, at).and_then(|()| leads(of, at)),
        }
    }

    fn by_method(&self, moves: &[Move], how: How) -> Result<Plan, PlanError> {
        let How { method, order, .. } = how;
        let mut plan = Plan {
            moves: moves.to_vec(),
            method,
            fallbacks: Vec::new(),
            order,
            marked: Vec::new(),
            rounds: Vec::new(),
            late: None,
            physical: 0,
            vswitches: 0,
            smps: Smps::default(),
        };
        if method == Method::Full {
            plan.order = UpdateOrder::Unordered;
            self.rewrite_all(&mut plan)?;
        } else {
            if let (Method::FtreeMinrc, Err(reason)) = (method, &self.kept.skylines) {
                return Err(PlanError::NoTree(reason.clone()));
            }
            self.in_stages(&mut plan, how)?;
        }
        self.count(&mut plan);
        Ok(plan)
    }

    /// Every block of every switch, by fresh tables.
    fn rewrite_all(&self, plan: &mut Plan) -> Result<(), PlanError> {
        let fresh = self.fresh.ok_or(PlanError::NoFreshTables)?;
        let mut round = Round::default();
        for node in &self.kept.network.graph.nodes {
            let Some(table) = fresh.table(*node) else { continue };
            let write = |(block, ports)| Write { switch: *node, block, ports, is_active: false };
            round.writes.extend(table.blocks().map(write));
            plan.marked.push(*node);
        }
        plan.rounds.push(round);
        Ok(())
    }

    /// Puts each LID's rows into the stage before if they share no block with it, else into one of their own.
    fn in_stages(&self, plan: &mut Plan, how: How) -> Result<(), PlanError> {
        let network = &self.kept.network;
        let mut draft = Draft::new(network, &self.routing.routes).with_fresh(self.fresh);
        let drains = how.packing == Packing::Drained;
        let drains_drops = drains && plan.order == UpdateOrder::DropFirst;
        // Packets of earlier plans may be under way.
        let after_drain = drains && !self.kept.waits.passing.is_empty();
        let mut stage = Stage { after_drain, drains_drops, ..Stage::default() };
        let (mut marked, mut late) = (Vec::new(), Vec::new());
        for one in &plan.moves.clone() {
            let rows = self.rows_of(one, &draft, plan.method)?;
            marked.extend(rows.iter().flat_map(|(_, rows)| rows.marked.iter().copied()));
            for mut items in self.items(&rows, plan.order) {
                late.extend((how.late > 0).then(|| postpone(&mut items, how.late, &draft)));
                let shares = items.keys().any(|key| stage.items.contains_key(key));
                if !stage.items.is_empty() && (shares || drains) {
                    stage.finish(&mut draft, plan);
                    stage = Stage { items: BTreeMap::new(), after_drain: drains, drains_drops };
                }
                if stage.items.is_empty() {
                    stage.items = items;
                } else {
                    stage.items.extend(items);
                }
            }
        }
        stage.finish(&mut draft, plan);
        for items in late.into_iter().filter(|items: &Items| !items.is_empty()) {
            let after_drain = plan.late.is_none();
            plan.late.get_or_insert(plan.rounds.len());
            Stage { items, after_drain, drains_drops: false }.finish(&mut draft, plan);
        }
        marked.sort_unstable();
        marked.dedup();
        plan.marked = marked.into_iter().map(|switch| network.graph.nodes[switch as usize]).collect();
        Ok(())
    }

    /// The rows of each LID of a move, all by the tables before it.
    fn rows_of(
        &self,
        one: &Move,
        draft: &Draft<'_>,
        method: Method,
    ) -> Result<Vec<(Change, Rows)>, PlanError> {
        let network = &self.kept.network;
        let mut all = Vec::new();
        for change in self.changes(one)? {
            let rows = change.rows((network, self.kept.skylines.as_ref().ok()), draft, method);
            let rows = rows.map_err(|switch| {
                let id = &self.fabric.node(network.graph.nodes[switch as usize]).id;
                PlanError::NoPath { method, switch: id.clone(), lid: change.lid }
            })?;
            all.push((change, rows));
        }
        Ok(all)
    }

    /// The blocks of a move. Of two LIDs that machines have, the second follows the first where order matters; a LID without
    /// traffic goes along with the other.
    fn items(&self, all: &[(Change, Rows)], order: UpdateOrder) -> Vec<Items> {
        let network = &self.kept.network;
        let mut stages = vec![Items::new()];
        let mut rounds = Vec::new();
        let is_ordered = matches!(order, UpdateOrder::Ordered | UpdateOrder::OrderedLate);
        for (at, (change, rows)) in all.iter().enumerate() {
            if change.is_live && is_ordered {
                if at > 0 {
                    stages.push(BTreeMap::new());
                }
                rounds = rows.rounds(network);
            }
            let active = rows.active(network, change);
            let (block, _) = place(change.lid);
            for (switch, port) in &rows.written {
                let Some(stage) = stages.last_mut() else { continue };
                let item = stage.entry((*switch, block)).or_default();
                item.round = rounds.get(*switch as usize).copied().unwrap_or(0);
                item.is_active |= change.is_live && active.binary_search(switch).is_ok();
                item.rows.push((change.lid, *port));
                item.live.extend(change.is_live.then_some(change.lid));
            }
        }
        stages
    }

    fn count(&self, plan: &mut Plan) {
        let network = &self.kept.network;
        let is_virtual = |node| network.graph.number(node).is_some_and(|switch| network.is_virtual(switch));
        let mut switches: Vec<_> = plan.writes().map(|write| write.switch).collect();
        plan.smps.vswitches = switches.iter().filter(|node| is_virtual(**node)).count() as u32;
        plan.smps.physical = switches.len() as u32 - plan.smps.vswitches;
        plan.smps.hypervisors = plan.moves.iter().map(Move::hypervisor_smps).sum();
        switches.sort_unstable();
        switches.dedup();
        plan.vswitches = switches.iter().filter(|node| is_virtual(**node)).count() as u32;
        plan.physical = switches.len() as u32 - plan.vswitches;
    }
}

/// What is tried, in order: dropping first is the last resort where order alone may not be safe.
fn attempts(method: Method, order: UpdateOrder) -> Vec<(Method, UpdateOrder)> {
    let orders = match order {
        UpdateOrder::Ordered => &[UpdateOrder::Ordered, UpdateOrder::OrderedLate, UpdateOrder::DropFirst][..],
        UpdateOrder::OrderedLate => &[UpdateOrder::OrderedLate, UpdateOrder::DropFirst],
        UpdateOrder::DropFirst => &[UpdateOrder::DropFirst],
        UpdateOrder::Unordered => &[UpdateOrder::Unordered],
    };
    orders.iter().flat_map(|order| method.chain().iter().map(|method| (*method, *order))).collect()
}

fn is_circle(reason: &PlanError) -> bool {
    matches!(reason, PlanError::Unsafe(Counterexample::Circle { .. }))
}
