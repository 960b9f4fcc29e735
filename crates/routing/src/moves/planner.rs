//! Plans from the tables in force.

use std::collections::BTreeMap;

use super::asked::Planner;
use super::change::{Change, Parts, Rows};
use super::detour::{Meantime, RowAt, Search};
use super::draft::{Draft, place};
use super::drain::{measure, under_way};
use super::error::{Counterexample, PlanError};
use super::plan::{Fallback, Plan, Proof, Proved, Round, Write};
use super::prove::{self, Refuted};
use super::request::{LatePolicy, Method, Move, UpdateOrder};
use super::stage::{BlockAt, Items, Stage};

use crate::sorted;

/// Proofs that a search for rows of the meantime may take.
const PROOFS_MAX: usize = 256;

/// A plan with its proof.
type Proven = (Plan, Proof);

/// Whether moves that touch no block of a switch together are carried out at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Together,
    /// One after the other, each after packets of the one before have arrived.
    Drained,
}

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
struct How<'a> {
    method: Method,
    order: UpdateOrder,
    packing: Packing,
    /// Rows that switches have until the late rounds.
    meantime: &'a Meantime,
    /// Why the queue pairs to and of the LIDs that move are held, if they are.
    held: Option<&'a Counterexample>,
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    method: Method,
    order: UpdateOrder,
    /// Whether queue pairs to and of the LIDs that move are held.
    holds: bool,
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
            let meantime = match order {
                UpdateOrder::OrderedLate => self.search(moves, *method, true).map(|search| search.meantime),
                _ => Ok(Meantime::new()),
            };
            let planned = meantime.and_then(|meantime| {
                let packing = Packing::Together;
                let how = How { method: *method, order, packing, meantime: &meantime, held: None };
                self.by_method(moves, how)
            });
            match planned {
                Ok(plan) => return Ok(Plan { fallbacks, ..plan }),
                Err(reason) => fallbacks.push(Fallback { method: *method, order, reason }),
            }
        }
        Err(fallbacks.pop().map_or(PlanError::NoFreshTables, |last| last.reason))
    }

    /// Plans moves and proves the plan. Where moves at the same time are not safe, they are carried out one after the other, each
    /// after the packets of the one before; where the method is not, the next of its chain is tried. Where packets under way
    /// could close a circle by each of these, as in damaged trees, the switches that would turn them round have other rows for the
    /// meantime or drop them, by [policy](Self::late), so that as few as possible are silent; and where that does not help, packets
    /// are dropped first everywhere and have time to be gone.
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
        let mut best: Option<Proven> = None;
        let relevels = self.levels_after(moves) != self.routing.levels;
        for Attempt { method, order, holds } in attempts(method, order, self.late, relevels) {
            if best.is_some() && order != UpdateOrder::OrderedLate {
                break;
            }
            let circle = fallbacks
                .iter()
                .filter(|failed| failed.method == method)
                .find_map(|failed| circle_of(&failed.reason))
                .cloned();
            // Other orders help against circles alone.
            let is_resort = holds || fallbacks.iter().any(|failed| failed.order != order);
            if is_resort && circle.is_none() {
                continue;
            }
            let safe = match circle.as_ref().filter(|_| holds) {
                Some(circle) => self.held(moves, method, circle),
                None => self.first_safe(moves, method, order, is_resort),
            };
            match safe {
                Ok((plan, proof)) => {
                    let plan = Plan { fallbacks: fallbacks.clone(), ..plan };
                    if plan.silent.is_empty() || order != UpdateOrder::OrderedLate {
                        return Ok((plan, proof));
                    }
                    if best.as_ref().is_none_or(|(best, _)| is_quieter(best, &plan)) {
                        best = Some((plan, proof));
                    }
                }
                Err(reason) => fallbacks.push(Fallback { method, order, reason }),
            }
        }
        best.ok_or_else(|| fallbacks.pop().map_or(PlanError::NoFreshTables, |last| last.reason))
    }

    /// Queue pairs to and of the LIDs that move are held while rows are written, so that nothing but what stands and what comes to stand
    /// is waited for.
    fn held(&self, moves: &[Move], method: Method, circle: &Counterexample) -> Result<Proven, PlanError> {
        let (order, packing) = (UpdateOrder::Ordered, Packing::Together);
        let how = How { method, order, packing, meantime: &Meantime::new(), held: Some(circle) };
        let plan = self.by_method(moves, how)?;
        let proof = self.prove(&plan).map_err(PlanError::Unsafe)?;
        Ok((plan, proof))
    }

    fn first_safe(
        &self,
        moves: &[Move],
        method: Method,
        order: UpdateOrder,
        is_resort: bool,
    ) -> Result<(Plan, Proof), PlanError> {
        let drops = is_resort && order == UpdateOrder::DropFirst;
        let packings = if drops { &[Packing::Drained][..] } else { &[Packing::Together, Packing::Drained] };
        let mut reason = PlanError::NoFreshTables;
        for packing in packings.iter().copied() {
            let proven = if order == UpdateOrder::OrderedLate {
                self.with_late_rows(moves, method, packing, !is_resort)
            } else {
                let how = How { method, order, packing, meantime: &Meantime::new(), held: None };
                self.by_method(moves, how).and_then(|plan| {
                    let proof = self.prove(&plan).map_err(PlanError::Unsafe)?;
                    Ok((plan, proof))
                })
            };
            match proven {
                Ok(proven) => return Ok(proven),
                Err(failure) => reason = failure,
            }
            // Draining helps against packets of other moves alone.
            if circle_of(&reason).is_none() {
                break;
            }
        }
        Err(reason)
    }

    /// Looks for rows of the meantime by which a plan is safe. Where late rows are asked for, the last switches have them in any case.
    fn with_late_rows(
        &self,
        moves: &[Move],
        method: Method,
        packing: Packing,
        is_asked: bool,
    ) -> Result<Proven, PlanError> {
        let mut search = self.search(moves, method, is_asked)?;
        let attempt = |meantime: &Meantime| {
            let how = How { method, order: UpdateOrder::OrderedLate, packing, meantime, held: None };
            self.by_method(moves, how).map(|plan| (self.refute(&plan), plan))
        };
        let mut reason = PlanError::NoFreshTables;
        for proofs in 1..=PROOFS_MAX {
            match attempt(&search.meantime)? {
                (Ok(proof), plan) if is_asked => return Ok((plan, proof)),
                (Ok(proof), plan) => {
                    let mut best = (plan, proof);
                    for meantime in search.others().take(PROOFS_MAX - proofs) {
                        if let Ok((Ok(proof), plan)) = attempt(&meantime)
                            && is_quieter(&best.0, &plan)
                        {
                            best = (plan, proof);
                        }
                    }
                    return Ok(best);
                }
                (Err(refuted), _) => {
                    let goes_on = search.advance(refuted.circle.as_ref());
                    reason = PlanError::Unsafe(refuted.why);
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        Err(reason)
    }

    fn search(&self, moves: &[Move], method: Method, is_asked: bool) -> Result<Search<'_>, PlanError> {
        let draft = Draft::new(&self.kept.network, &self.routing.routes).with_fresh(self.fresh);
        let mut rows = Vec::new();
        for one in moves {
            rows.extend(self.rows_of(one, &draft, method)?);
        }
        rows.retain(|(change, _)| change.is_live);
        let mut search = Search::new(self.kept, rows, self.late);
        if is_asked {
            search.drop_at_the_last();
        }
        Ok(search)
    }

    /// Proves a plan from its writes alone: what they change in the tables in force, round by round, with packets under way and
    /// those of plans that were [admitted](super::Kept::admit).
    ///
    /// # Errors
    ///
    /// With what can go wrong.
    pub fn prove(&self, plan: &Plan) -> Proved {
        self.refute(plan).map_err(|refuted| refuted.why)
    }

    fn refute(&self, plan: &Plan) -> Result<Proof, Refuted> {
        let changes = self.all_changes(&plan.moves);
        let levels = self.levels_after(&plan.moves);
        let Self { kept, fabric, lids, routing, .. } = *self;
        prove::prove(&prove::Ground { kept, fabric, lids, routing, levels: &levels }, plan, &changes)
    }

    fn all_changes(&self, moves: &[Move]) -> Vec<Change> {
        moves.iter().filter_map(|one| self.changes(one).ok()).flatten().collect()
    }

    fn by_method(&self, moves: &[Move], how: How<'_>) -> Result<Plan, PlanError> {
        let How { method, order, held, .. } = how;
        let held = held.cloned();
        let mut plan = Plan { moves: moves.to_vec(), method, order, held, ..Plan::default() };
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
        let draft = Draft::new(&self.kept.network, &self.routing.routes);
        measure(self.kept, self.fabric, &draft, &mut plan, &self.all_changes(moves));
        if plan.held.is_some() {
            let under_way = under_way(self.kept, self.lids, &draft, &self.all_changes(moves));
            plan.rounds.first_mut().into_iter().for_each(|round| round.drain = under_way);
        }
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
    fn in_stages(&self, plan: &mut Plan, how: How<'_>) -> Result<(), PlanError> {
        let network = &self.kept.network;
        let mut draft = Draft::new(network, &self.routing.routes).with_fresh(self.fresh);
        let drains = how.packing == Packing::Drained;
        let drains_drops = drains && plan.order == UpdateOrder::DropFirst;
        // Packets of earlier plans may be under way.
        let after_drain = how.held.is_some() || drains && !self.kept.waits.passing.is_empty();
        let mut stage = Stage { after_drain, drains_drops, ..Stage::default() };
        let (mut marked, mut missing, mut detoured) = (Vec::new(), Vec::new(), Vec::new());
        for one in &plan.moves.clone() {
            let rows = self.rows_of(one, &draft, plan.method)?;
            marked.extend(rows.iter().flat_map(|(_, rows)| rows.marked.iter().copied()));
            let mut prompt = Vec::new();
            for (change, rows) in rows {
                let lid = change.lid;
                let meantime = |switch: u32| how.meantime.get(&RowAt { lid, switch }).copied();
                let Parts { prompt: now, missing: a, detoured: b } =
                    rows.split(network, &change, &draft, meantime);
                plan.detours.extend(b.written().map(|switch| (draft.node(switch), lid)));
                missing.extend(self.items(&[(change, a)], plan.order));
                detoured.extend(self.items(&[(change, b)], plan.order));
                prompt.push((change, now));
            }
            for items in self.items(&prompt, plan.order) {
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
        [missing, detoured].into_iter().for_each(|late| finish_late(late, &mut draft, plan));
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
            let rows = change.rows(self.kept, draft, method);
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
            for (switch, port) in &rows.writes {
                let Some(stage) = stages.last_mut() else { continue };
                let item = stage.entry(BlockAt { switch: *switch, block }).or_default();
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
        let late = plan.late_writes().filter(|write| is_virtual(write.switch)).count() as u32;
        plan.late_smps.vswitches = late;
        plan.late_smps.physical = plan.late_writes().count() as u32 - late;
        plan.smps.hypervisors = plan.moves.iter().map(Move::hypervisor_smps).sum();
        sorted::by_key(&mut switches, |item| *item);
        switches.dedup();
        plan.vswitches = switches.iter().filter(|node| is_virtual(**node)).count() as u32;
        plan.physical = switches.len() as u32 - plan.vswitches;
    }
}

/// Adds late rounds to a plan: the first waits for packets of earlier rows.
fn finish_late(late: Vec<Items>, draft: &mut Draft<'_>, plan: &mut Plan) {
    let mut after_drain = true;
    for items in late.into_iter().filter(|items| !items.is_empty()) {
        plan.late.get_or_insert(plan.rounds.len());
        Stage { items, after_drain, drains_drops: false }.finish(draft, plan);
        after_drain = false;
    }
}

/// What is tried, in order: queue pairs are held where levels differ, and dropping first is the last resort where order alone may not be safe.
fn attempts(method: Method, order: UpdateOrder, late: LatePolicy, relevels: bool) -> Vec<Attempt> {
    let orders = match order {
        UpdateOrder::Ordered if late == LatePolicy::Refuse => &[UpdateOrder::Ordered][..],
        UpdateOrder::Ordered => &[UpdateOrder::Ordered, UpdateOrder::OrderedLate, UpdateOrder::DropFirst],
        UpdateOrder::OrderedLate => &[UpdateOrder::OrderedLate, UpdateOrder::DropFirst],
        UpdateOrder::DropFirst => &[UpdateOrder::DropFirst],
        UpdateOrder::Unordered => &[UpdateOrder::Unordered],
    };
    let of = |order: UpdateOrder, holds: bool| {
        method.chain().iter().map(move |method| Attempt { method: *method, order, holds })
    };
    let may_hold = relevels && orders.len() > 1;
    let mut all = Vec::new();
    for order in orders {
        if may_hold && *order == UpdateOrder::DropFirst {
            all.extend(of(UpdateOrder::Ordered, true));
        }
        all.extend(of(*order, false));
    }
    all
}

/// Whether hosts are silent for a shorter time by another plan, or fewer of them.
fn is_quieter(plan: &Plan, other: &Plan) -> bool {
    let key = |plan: &Plan| (plan.silence(), plan.silent.len());
    key(other) < key(plan)
}

/// The circle that an attempt has failed by, if it has.
fn circle_of(reason: &PlanError) -> Option<&Counterexample> {
    match reason {
        PlanError::Unsafe(circle @ Counterexample::Circle { .. }) => Some(circle),
        _ => None,
    }
}
