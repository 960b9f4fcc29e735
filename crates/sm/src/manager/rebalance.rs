//! Rows of machines' LIDs that become those of a fresh routing again, once moves have left links too unevenly loaded.
//!
//! ```text
//! move ─▶ … quiet for a second ─▶ Prove ─▶ weigh: fresh tables, the worst link by both ─▶ below Q? choose LIDs
//!                                                                                             │
//!   event ◀── none left ◀── Rebalance: one LID, its plan proved and ordered, carried out as a move ◀──┘
//! ```
//!
//! Requests to move LIDs go before each plan, and end the run: its fresh tables are for other places.

use std::collections::{BTreeSet, VecDeque};

use weft_machine::Time;
use weft_routing::Routes;
use weft_routing::moves::{LatePolicy, Method, Move, Plan, Rebalance, UpdateOrder};
use weft_wire::Lid;

use super::SubnetManager;
use super::moves::Proven;
use crate::Event;
use crate::knowledge::Subnet;
use crate::moves::Carry;

/// How long to wait for machines that are on their way.
const LATER: Time = Time::from_secs(1);

/// Whether tables are to be weighed, and what is being carried out.
#[derive(Debug, Default)]
pub(super) struct Rebalancing {
    is_due: bool,
    run: Option<Run>,
}

/// What was chosen, and what has come of it.
#[derive(Debug)]
struct Run {
    /// Sweeps and repairs when it was chosen; after another one rows may be others.
    sweeps: u64,
    fresh: Routes,
    left: VecDeque<Lid>,
    /// Of fresh tables, in thousandths.
    before: u32,
    done: u32,
    smps: u32,
    /// LIDs that no plan could be proved for that writes them in order and drops no packets.
    kept: u32,
}

/// What is done with a LID.
enum Next {
    Carry(Box<Proven>),
    /// Packets of earlier plans have to be gone first.
    Wait(Time),
    /// Its rows stay as they are.
    Keep,
}

impl SubnetManager {
    /// A plan was carried out, for this number of requests; for none it was one of a rebalance.
    pub(super) fn note_moved(&mut self, now: Time, requests: usize, plan: &Plan) {
        if self.options.vm_lids.rebalance_below == 0 {
            return;
        }
        if requests > 0 {
            self.break_off();
        } else if let Some(run) = &mut self.rebalancing.run {
            let smps = plan.smps.physical + plan.smps.vswitches;
            (run.done, run.smps) = (run.done + 1, run.smps + smps);
            self.tally.rebalanced_lid(smps);
            self.agenda.rebalance(now);
        }
    }

    /// Goes on with a rebalance, or begins one if tables are to be weighed and are too bad.
    pub(super) fn rebalance(&mut self, now: Time) {
        let sweeps = self.tally.sweeps;
        if self.rebalancing.run.as_ref().is_some_and(|run| run.sweeps != sweeps) {
            self.break_off();
        }
        if self.options.vm_lids.rebalance_below == 0
            || !(self.rebalancing.is_due || self.rebalancing.run.is_some())
        {
            return;
        }
        if self.desk.is_anyone_away() {
            return self.agenda.rebalance(now + LATER);
        }
        let Some(mut subnet) = self.known.take_subnet() else { return };
        if std::mem::take(&mut self.rebalancing.is_due) {
            self.rebalancing.run = self.choose(&mut subnet);
        }
        while let Some(lid) = self.rebalancing.run.as_mut().and_then(|run| run.left.pop_front()) {
            match self.next(now, &subnet, lid) {
                Next::Carry(proven) => {
                    let (plan, proof) = *proven;
                    return self.begin_move(now, Carry::new(subnet, Vec::new(), plan, proof, &self.options));
                }
                Next::Wait(until) => {
                    self.rebalancing.run.iter_mut().for_each(|run| run.left.push_front(lid));
                    self.agenda.rebalance(until);
                    return self.known.keep_subnet(subnet);
                }
                Next::Keep => self.rebalancing.run.iter_mut().for_each(|run| run.kept += 1),
            }
        }
        self.end(&subnet);
        self.known.keep_subnet(subnet);
    }

    /// Weighs the tables in force; `None` where they are good enough, or cannot be weighed.
    fn choose(&mut self, subnet: &mut Subnet) -> Option<Run> {
        // Why tables cannot be kept, or no engine serves, is said by the next request or sweep.
        self.keep_tables(subnet).ok()?;
        let fresh = self.tables_after(subnet, &[]).ok()?;
        let chosen = self.weigh(subnet, &fresh)?;
        let before = chosen.before.thousandths();
        self.tally.progress.vm_lids.rebalances.balance = before;
        let sweeps = self.tally.sweeps;
        let run = Run { sweeps, fresh, left: chosen.lids.into(), before, done: 0, smps: 0, kept: 0 };
        (!run.left.is_empty()).then_some(run)
    }

    fn weigh(&self, subnet: &Subnet, fresh: &Routes) -> Option<Rebalance> {
        let (kept, _) = self.desk.kept()?;
        let routes = &subnet.routed.routing()?.routes;
        let adapters = subnet.adapters.find_again(&subnet.fabric, &self.options);
        let functions = subnet.end_ports().filter(|(at, _)| adapters.is_function(*at));
        let machines: Vec<Lid> = functions.filter_map(|(_, port)| port.lid.map(|lids| lids.min)).collect();
        let (fabric, lids) = (&subnet.fabric, &subnet.routed.lids);
        let below = self.options.vm_lids.rebalance_below;
        Some(kept.rebalance(fabric, lids, routes, fresh, &machines, below))
    }

    fn next(&mut self, now: Time, subnet: &Subnet, lid: Lid) -> Next {
        let Some((plan, proof)) = self.plan_one(now, subnet, lid) else { return Next::Keep };
        // For balance alone no packet is dropped.
        let is_gentle = plan.order == UpdateOrder::Ordered && !plan.drains();
        match self.desk.drained.filter(|until| *until > now) {
            _ if is_gentle => Next::Carry(Box::new((plan, proof))),
            Some(until) => Next::Wait(until),
            None => Next::Keep,
        }
    }

    fn plan_one(&mut self, now: Time, subnet: &Subnet, lid: Lid) -> Option<Proven> {
        let at = subnet.routed.lids.owner(lid)?;
        let run = self.rebalancing.run.take();
        let fresh = run.as_ref().map(|run| &run.fresh);
        let how = (Method::Itrc, UpdateOrder::Ordered, LatePolicy::Refuse);
        let moves = [Move::Rebalance { lid, at }];
        let planned = self.plan_moves(now, subnet, &moves, BTreeSet::new(), fresh, how);
        self.rebalancing.run = run;
        planned.ok()
    }

    /// Says what came of a run that is over.
    fn end(&mut self, subnet: &Subnet) {
        let Some(run) = self.rebalancing.run.take() else { return };
        let after = self.weigh(subnet, &run.fresh).map(|now| now.before.thousandths());
        self.tally.rebalanced(after);
        self.say_run(&run, after);
    }

    /// A move or a sweep ends what is under way: tables are to be weighed again.
    fn break_off(&mut self) {
        self.rebalancing.is_due = true;
        if let Some(run) = self.rebalancing.run.take().filter(|run| run.done > 0) {
            self.say_run(&run, None);
        }
    }

    fn say_run(&mut self, run: &Run, after: Option<u32>) {
        let Run { before, done: lids, smps, kept, .. } = *run;
        self.say(Event::Rebalanced { lids, smps, kept, before, after });
    }
}
