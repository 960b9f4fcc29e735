//! After a link change: only what it touches is asked, computed, proved and written.
//!
//! ```text
//! trap ─▶ Look: ports that changed ─▶ cables gone ─▶ new rows, proved ─▶ LFT blocks that differ
//!           │                     └─▶ cables back: NodeInfo of both ends ─▶ rows as before ─▶ Program ▶ Activate
//!           └── a host, a new cable, another far end, too many cables, no proof ─▶ a full sweep
//! ```
//!
//! The proof is about the paths that are new. All of them are verified again when everything has been written; the tables
//! are also compared with those that the engine would make then, and replaced if they burden cables more than those.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::{BLOCK_ENTRIES, Ends, Proven, Row, Unrepaired};
use weft_wire::PortState;

use super::SubnetManager;
use super::sweep::Sweep;
use super::task::Task;
use crate::knowledge::{Cable, Changes, Held, Memory, Subnet, graph_port, remember};
use crate::sweep::{Past, Program, ReadTables, Standing, route};
use crate::{Event, Reason, SweepKind, SweepPhase};

/// How long after a sweep its routing is proved: what it has to say goes out first.
const PROVE_DELAY: Time = Time::from_millis(1);

/// How long after a move: others are likely to follow, which go before it.
const PROVE_AFTER_MOVE: Time = Time::from_secs(1);

/// What every node holds, in the order of the subnet.
pub(super) fn in_order(subnet: &Subnet, mut memory: Memory) -> Vec<Held> {
    subnet.nodes.iter().map(|node| memory.remove(&node.guid()).unwrap_or_default()).collect()
}

fn ends(cables: &[Cable]) -> Vec<Ends> {
    cables.iter().map(|(a, b)| (graph_port(*a), graph_port(*b))).collect()
}

/// A repair that is computed.
struct Plan {
    gone: Vec<Cable>,
    back: Vec<Cable>,
    /// The blocks that have rows which are new.
    blocks: BTreeSet<(u32, u16)>,
}

impl Plan {
    fn new(changes: &Changes, subnet: &Subnet, proven: &mut Proven) -> Option<Self> {
        let (gone, back) = changes.cables(subnet)?;
        let rows = Self::rows(proven, &ends(&gone), &ends(&back)).ok()?;
        let block = |row: &Row| (row.before.node.0, row.lid.0 / BLOCK_ENTRIES as u16);
        Some(Self { gone, back, blocks: rows.iter().map(block).collect() })
    }

    fn rows(proven: &mut Proven, gone: &[Ends], back: &[Ends]) -> Result<Vec<Row>, Unrepaired> {
        let mut rows = if gone.is_empty() { Vec::new() } else { proven.cut(gone)? };
        if !back.is_empty() {
            rows.extend(proven.restore(back)?);
        }
        Ok(rows)
    }

    fn touched(&self) -> BTreeSet<u32> {
        self.gone.iter().chain(&self.back).flat_map(|(a, b)| [a.node, b.node]).collect()
    }
}

impl SubnetManager {
    /// Repairs what a look has found, if that can be done; gives the subnet back if not.
    pub(super) fn repair(
        &mut self,
        now: Time,
        mut subnet: Subnet,
        changes: &Changes,
        reason: Reason,
    ) -> Option<Subnet> {
        let Some(mut proven) = subnet.routed.take_proven() else { return Some(subnet) };
        let Some(plan) = Plan::new(changes, &subnet, &mut proven) else { return Some(subnet) };
        self.tally.sweeps += 1;
        self.desk.forget_tables();
        self.sweep = Sweep::repair(now, self.requests.stats().retries, plan.touched());
        self.say(Event::SweepStarted { kind: SweepKind::Repair, reason });
        self.enter(now, Some(SweepPhase::Route));
        for (a, b) in &plan.gone {
            subnet.disconnect(*a, *b, &changes.gone);
        }
        for (a, b) in &plan.back {
            subnet.reconnect(*a, *b, &changes.back);
        }
        if !subnet.find_paths() {
            return Some(subnet);
        }
        self.known.history.note(|| Past::Repaired { gone: ends(&plan.gone), back: ends(&plan.back) });
        subnet.routed.repaired(proven);
        let memory = std::mem::take(&mut self.known.memory);
        let program = if plan.back.is_empty() {
            let held = in_order(&subnet, memory);
            Program::of_blocks(subnet, held, &plan.blocks, &self.options)
        } else {
            let ReadTables { subnet, held, .. } = ReadTables::new(subnet, memory, &self.options);
            Program::new(now, subnet, held, self.tenants.layouts(), &self.options)
        };
        let total = program.total() as u64;
        self.turn_to(now, Task::Program(Box::new(program)));
        self.tally.progress.total = total;
        None
    }

    /// Tables are written after cables were cut: nothing else has changed. Gives the step back where more is to be done.
    pub(super) fn repaired(&mut self, now: Time, program: Program) -> Option<Program> {
        let Some(touched) = self.sweep.touched.as_ref() else { return Some(program) };
        let came_up = |at: &u32| {
            let ports = program.subnet.node(*at).map(|node| &node.ports).into_iter().flatten();
            ports.skip(1).any(|port| port.is_up() && port.state() != PortState::Active)
        };
        if touched.iter().any(came_up) {
            return Some(program);
        }
        self.sweep.touched = None;
        self.enter(now, None);
        self.tally.progress.ports_active = program.subnet.ports_active();
        self.known.memory = remember(&program.subnet, program.held);
        self.settle(now, program.subnet, true);
        None
    }

    /// Proves the routing in force some time after the sweep that has just ended.
    pub(super) fn plan_proof(&mut self, now: Time) {
        let is_soon = self.desk.drained.is_some_and(|at| at > now) || self.desk.late.is_any();
        let long = if is_soon { PROVE_AFTER_MOVE } else { PROVE_DELAY };
        self.agenda.prove(now + long);
    }

    /// Verifies everything: what a full sweep has routed, so that it can be repaired, or what repairs have left.
    pub(super) fn prove(&mut self, now: Time) {
        let Some(subnet) = self.known.subnet.as_mut() else { return };
        if subnet.routed.prove(&subnet.fabric) {
            return;
        }
        let Some(proven) = subnet.routed.proven_mut() else { return };
        let is_sound = proven.verify().is_ok();
        let routes = proven.routing().routes.clone();
        let standing = Standing { routes, is_whole: true };
        let mut fresh = || route(subnet, &self.options, Some(&mut self.known.paths));
        let is_fine = is_sound && fresh().is_ok_and(|mut fresh| fresh.keep(subnet, standing));
        if is_fine {
            self.known.history.note(|| Past::Verified);
        } else {
            subnet.routed.withdraw();
            self.agenda.heavy(now, Reason::Unbalanced);
        }
    }
}
