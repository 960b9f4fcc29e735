//! Plans from the tables in force.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

use super::change::{Change, Rows};
use super::draft::{Draft, place};
use super::error::{Counterexample, PlanError};
use super::kept::Kept;
use super::network::Seat;
use super::plan::{Fallback, Plan, Proof, Proved, Round, Smps, Write};
use super::prove;
use super::request::{Method, Move, UpdateOrder};
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
    /// Tables computed from scratch for the new places, for [`Method::Full`].
    pub fresh: Option<&'a Routes>,
}

/// Whether moves that touch no block of a switch together are carried out at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Together,
    /// One after the other, each after packets of the one before have arrived.
    Drained,
}

/// The blocks of moves that are carried out at the same time.
#[derive(Debug, Default)]
struct Stage {
    items: BTreeMap<(u32, u16), Item>,
    after_drain: bool,
    /// Whether packets that are dropped first have time to be gone before new rows are written.
    drains_drops: bool,
}

/// What is written to a block.
#[derive(Debug, Default)]
struct Item {
    round: usize,
    is_active: bool,
    rows: Vec<(Lid, PortNum)>,
    /// The LIDs that packets are on the way to.
    live: Vec<Lid>,
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
            match self.by_method(moves, (*method, order), Packing::Together) {
                Ok(plan) => return Ok(Plan { fallbacks, ..plan }),
                Err(reason) => fallbacks.push(Fallback { method: *method, order, reason }),
            }
        }
        Err(fallbacks.pop().map_or(PlanError::NoFreshTables, |last| last.reason))
    }

    /// Plans moves and proves the plan. Where moves at the same time are not safe, they are carried out one after the other, each
    /// after the packets of the one before; where the method is not, the next of its chain is tried. Where packets under way
    /// could close a circle by each of these, as in damaged trees, they are dropped first and have time to be gone.
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
            let is_circle =
                |reason: &PlanError| matches!(reason, PlanError::Unsafe(Counterexample::Circle { .. }));
            let is_last_resort = order == UpdateOrder::DropFirst && !fallbacks.is_empty();
            if is_last_resort
                && !fallbacks.iter().any(|failed| failed.method == method && is_circle(&failed.reason))
            {
                continue;
            }
            let packings =
                if is_last_resort { &[Packing::Drained][..] } else { &[Packing::Together, Packing::Drained] };
            let mut reason = PlanError::NoFreshTables;
            for packing in packings {
                match self.try_one(moves, (method, order), *packing) {
                    Ok((plan, proof)) => return Ok((Plan { fallbacks, ..plan }, proof)),
                    Err(failure) => reason = failure,
                }
                // Draining helps against packets of other moves alone.
                if !is_circle(&reason) {
                    break;
                }
            }
            fallbacks.push(Fallback { method, order, reason });
        }
        Err(fallbacks.pop().map_or(PlanError::NoFreshTables, |last| last.reason))
    }

    fn try_one(
        &self,
        moves: &[Move],
        how: (Method, UpdateOrder),
        packing: Packing,
    ) -> Result<(Plan, Proof), PlanError> {
        let plan = self.by_method(moves, how, packing)?;
        let proof = self.prove(&plan).map_err(PlanError::Unsafe)?;
        Ok((plan, proof))
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
                vec![Change { lid, before, after, model: Some(of), is_live: true }]
            }
            Move::Swap { lid, from, to, with } => {
                let (before, after) = seats(Some(from), Some(to))?;
                let back = Change {
                    lid: with,
                    before: after,
                    after: before,
                    model: Some(lid),
                    is_live: is_live(with),
                };
                vec![Change { lid, before, after, model: Some(with), is_live: true }, back]
            }
            Move::Boot { lid, to, of } => {
                let (before, after) = seats(None, Some(to))?;
                vec![Change { lid, before, after, model: Some(of), is_live: true }]
            }
            Move::Clear { lid, from } => {
                let (before, after) = seats(Some(from), None)?;
                vec![Change { lid, before, after, model: None, is_live: true }]
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
            Move::Clear { lid, from } => owned(lid, from, from),
        }
    }

    fn by_method(
        &self,
        moves: &[Move],
        (method, order): (Method, UpdateOrder),
        packing: Packing,
    ) -> Result<Plan, PlanError> {
        let mut plan = Plan {
            moves: moves.to_vec(),
            method,
            fallbacks: Vec::new(),
            order,
            marked: Vec::new(),
            rounds: Vec::new(),
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
            self.in_stages(&mut plan, packing)?;
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
    fn in_stages(&self, plan: &mut Plan, packing: Packing) -> Result<(), PlanError> {
        let network = &self.kept.network;
        let mut draft = Draft::new(network, &self.routing.routes);
        let drains = packing == Packing::Drained;
        let drains_drops = drains && plan.order == UpdateOrder::DropFirst;
        // Packets of earlier plans may be under way.
        let after_drain = drains && !self.kept.waits.passing.is_empty();
        let mut stage = Stage { after_drain, drains_drops, ..Stage::default() };
        let mut marked = BTreeSet::new();
        for one in &plan.moves.clone() {
            let rows = self.rows_of(one, &draft, plan.method)?;
            marked.extend(rows.iter().flat_map(|(_, rows)| rows.marked.iter().copied()));
            for items in self.items(&rows, plan.order) {
                let shares = items.keys().any(|key| stage.items.contains_key(key));
                if !stage.items.is_empty() && (shares || drains) {
                    finish(&stage, &mut draft, plan);
                    stage = Stage { items: BTreeMap::new(), after_drain: drains, drains_drops };
                }
                stage.items.extend(items);
            }
        }
        finish(&stage, &mut draft, plan);
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
    fn items(&self, all: &[(Change, Rows)], order: UpdateOrder) -> Vec<BTreeMap<(u32, u16), Item>> {
        let network = &self.kept.network;
        let mut stages = vec![BTreeMap::<(u32, u16), Item>::new()];
        let mut rounds = BTreeMap::new();
        for (at, (change, rows)) in all.iter().enumerate() {
            if change.is_live && order == UpdateOrder::Ordered {
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
                item.round = rounds.get(switch).copied().unwrap_or(0);
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
        UpdateOrder::Ordered => &[UpdateOrder::Ordered, UpdateOrder::DropFirst][..],
        UpdateOrder::DropFirst => &[UpdateOrder::DropFirst],
        UpdateOrder::Unordered => &[UpdateOrder::Unordered],
    };
    orders.iter().flat_map(|order| method.chain().iter().map(|method| (*method, *order))).collect()
}

/// Writes a stage into the draft and adds its rounds to the plan; where packets are dropped first, that is a round of its own.
fn finish(stage: &Stage, draft: &mut Draft<'_>, plan: &mut Plan) {
    let from = plan.rounds.len();
    let mut write =
        |key: (u32, u16), rows: &[(Lid, PortNum)], is_active: bool, round: usize, plan: &mut Plan| {
            let mut ports = draft.block(key.0, key.1);
            for (lid, port) in rows {
                ports[place(*lid).1] = *port;
            }
            draft.write(key.0, key.1, ports);
            let switch = draft.node(key.0);
            plan.rounds.resize_with(plan.rounds.len().max(from + round + 1), Round::default);
            plan.rounds[from + round].writes.push(Write { switch, block: key.1, ports, is_active });
        };
    if plan.order == UpdateOrder::DropFirst {
        for (key, item) in stage.items.iter().filter(|(_, item)| !item.live.is_empty()) {
            let drops: Vec<_> = item.live.iter().map(|lid| (*lid, PortNum::NONE)).collect();
            write(*key, &drops, item.is_active, 0, plan);
        }
    }
    for (key, item) in &stage.items {
        let round = match plan.order {
            UpdateOrder::Ordered => item.round,
            UpdateOrder::DropFirst => 1,
            UpdateOrder::Unordered => 0,
        };
        write(*key, &item.rows, item.is_active, round, plan);
    }
    for round in &mut plan.rounds[from..] {
        // Stable: by switch and block otherwise.
        round.writes.sort_by_key(|write| !write.is_active);
    }
    if let Some(first) = plan.rounds.get_mut(from) {
        first.after_drain = stage.after_drain;
    }
    if let Some(second) = plan.rounds.get_mut(from + 1).filter(|_| stage.drains_drops) {
        second.after_drain = true;
    }
}
