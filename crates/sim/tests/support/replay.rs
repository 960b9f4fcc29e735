//! The subnet manager's log of cablings and moves, replayed: which rows every switch holds once everything is at rest.
//!
//! Pure: engines, planners and repairs compute from the log alone. A plan that broke, or whose manager died, may have been
//! written in part, so the next sweep says what it has found; each of those rows of machines' LIDs must be one that the log
//! had for its switch before.

use std::collections::{BTreeMap, BTreeSet};

use weft_routing::moves::{Kept, Move, Planner, UpdateOrder};
use weft_routing::{
    Chain, Ends, EngineOptions, ForwardingTable, Lids, PortLids, Proven, Routes, Routing, VSwitch,
    VirtualRows, keeps, vswitches,
};
use weft_sm::{Computation, Past, Planned};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Guid, Lid, PortNum};

/// The entries of some of the log's lines, as a process writes them.
pub(crate) fn entries(lines: &str) -> Result<Vec<Past>, String> {
    let entry =
        |line| serde_json::from_str(line).map_err(|error| format!("no entry of a log: {error}: {line}"));
    lines.lines().map(entry).collect()
}

/// What has been replayed so far.
pub(crate) struct Replay {
    chain: Chain,
    now: Option<Now>,
    /// By switch and LID: all rows that the log ever had.
    known: BTreeMap<(Guid, Lid), BTreeSet<PortNum>>,
    top: Lid,
    /// A plan has broken since tables were computed last.
    is_broken: bool,
    /// Moves and repairs that were replayed.
    pub(crate) moves: u64,
    pub(crate) repairs: u64,
}

/// The tables in force, and what they are for.
struct Now {
    fabric: Fabric,
    lids: Lids,
    given: EngineOptions,
    routing: Routing,
    /// With the cables that repairs have cut.
    proven: Option<Proven>,
    /// Tables once the plan under way is carried out.
    planned: Option<Routes>,
}

impl Replay {
    pub(crate) fn new(chain: Chain) -> Self {
        Self { chain, now: None, known: BTreeMap::new(), top: Lid(0), is_broken: false, moves: 0, repairs: 0 }
    }

    /// Goes on by what the log has. `restarted` are switches that may have lost their tables.
    pub(crate) fn go_on(&mut self, log: Vec<Past>, restarted: &BTreeSet<Guid>) -> Result<(), String> {
        for past in log {
            match past {
                Past::Routed(computation) => self.routed(*computation, restarted)?,
                Past::Repaired { gone, back } => self.repaired(&gone, &back)?,
                Past::Planned(planned) => self.planned(*planned)?,
                Past::Carried(fabric) => self.carried(*fabric)?,
                Past::Broken => {
                    self.in_force()?.planned = None;
                    self.is_broken = true;
                }
            }
        }
        Ok(())
    }

    fn in_force(&mut self) -> Result<&mut Now, String> {
        self.now.as_mut().ok_or_else(|| "the log begins without tables".to_owned())
    }

    /// Rows that stand stay where they hold, LID by LID; others are the engine's, or those of the physical function.
    fn routed(&mut self, of: Computation, restarted: &BTreeSet<Guid>) -> Result<(), String> {
        let inner = vswitches(&of.fabric, &of.given.management_nodes);
        let mut routing = self.by_engine(&of, &inner)?;
        let rows = VirtualRows { fabric: &of.fabric, vswitches: &inner, lids: &of.lids, options: &of.given };
        let machines = machines(&of, &inner);
        if let Some(found) = &of.standing {
            self.were_known(&of, &machines, found, restarted)?;
            let (standing, is_whole) = found;
            rows.rest(&mut routing, standing, &of.resting);
            rows.keep(&mut routing, standing);
            if *is_whole && routing.routes != *standing {
                let physical = rows.others(&routing, standing);
                let kept = keeps(&of.fabric, &of.lids, &routing, physical, &of.given);
                routing = kept.unwrap_or(routing);
            }
        }
        for (node, lid, port) in &of.away {
            routing.routes.tables[node.index()].set(*lid, *port);
        }
        self.note(&of.fabric, &routing.routes);
        let Computation { fabric, lids, given, .. } = of;
        self.now = Some(Now { fabric, lids, given, routing, proven: None, planned: None });
        self.is_broken = false;
        Ok(())
    }

    fn by_engine(&self, of: &Computation, inner: &[VSwitch]) -> Result<Routing, String> {
        let route = |lids: &Lids| {
            let routed = self.chain.route(&of.fabric, lids, &of.given);
            routed.map_err(|refusals| format!("no engine serves a cabling of the log: {refusals:?}"))
        };
        if !of.is_dynamic {
            return route(&of.lids);
        }
        let functions: BTreeSet<_> = inner.iter().flat_map(VSwitch::virtual_functions).collect();
        let mut physical = Lids::new();
        for one in of.lids.iter().filter(|one| !functions.contains(&one.port)) {
            physical.insert(one.port, one.base, one.lmc).map_err(|error| error.to_string())?;
        }
        let mut routing = route(&physical)?;
        let rows = VirtualRows { fabric: &of.fabric, vswitches: inner, lids: &of.lids, options: &of.given };
        rows.copy(&mut routing, of.space);
        Ok(routing)
    }

    /// What a sweep finds of machines' rows at a switch was there by the log before, unless the switch has lost its table. A
    /// row that the log has not had yet is none: what writes rows is in the log before they are written. Where the log begins,
    /// rows are as they are found.
    fn were_known(
        &mut self,
        of: &Computation,
        machines: &BTreeSet<Lid>,
        standing: &(Routes, bool),
        restarted: &BTreeSet<Guid>,
    ) -> Result<(), String> {
        let (standing, is_whole) = standing;
        let is_first = self.now.is_none();
        for (node, switch) in of.fabric.switches() {
            let may_be_lost = restarted.contains(&switch.guid) || !is_whole;
            for lid in machines {
                let port = standing.port(node, *lid);
                let first = if is_first { port } else { PortNum::NONE };
                let known = self.known.entry((switch.guid, *lid)).or_insert_with(|| BTreeSet::from([first]));
                let is_lost = may_be_lost && port == PortNum::NONE;
                if !is_lost && !known.contains(&port) {
                    let name = &switch.description;
                    return Err(format!(
                        "a sweep finds port {port} for LID {lid} at {name}, and the log has {known:?} alone"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Takes down all rows of some tables: those of LIDs that there are none for too, up to all that are known.
    fn note(&mut self, fabric: &Fabric, routes: &Routes) {
        self.top = routes.tables.iter().map(ForwardingTable::top).fold(self.top, Lid::max);
        for (node, switch) in fabric.switches() {
            for lid in (1..=self.top.0).map(Lid) {
                self.known.entry((switch.guid, lid)).or_default().insert(routes.port(node, lid));
            }
        }
    }

    fn repaired(&mut self, gone: &[Ends], back: &[Ends]) -> Result<(), String> {
        let now = self.in_force()?;
        let mut proven = match now.proven.take() {
            Some(proven) => proven,
            None => {
                let (fabric, lids, routing) = (now.fabric.clone(), now.lids.clone(), now.routing.clone());
                Proven::new(fabric, lids, routing, &now.given).map_err(|error| error.to_string())?
            }
        };
        let failed = |error: weft_routing::Unrepaired| format!("a repair of the log is none: {error}");
        let mut rows = if gone.is_empty() { Vec::new() } else { proven.cut(gone).map_err(failed)? };
        if !back.is_empty() {
            rows.extend(proven.restore(back).map_err(failed)?);
        }
        now.routing = proven.routing().clone();
        now.proven = Some(proven);
        let fabric = now.fabric.clone();
        for row in rows {
            let switch = fabric.node(row.before.node).guid;
            self.known.entry((switch, row.lid)).or_default().insert(row.after);
        }
        self.repairs += 1;
        Ok(())
    }

    /// A plan is made again from the tables in force.
    fn planned(&mut self, of: Planned) -> Result<(), String> {
        let now = self.in_force()?;
        (now.fabric, now.lids) = (of.fabric, of.lids);
        let inner: Vec<NodeIndex> =
            vswitches(&now.fabric, &now.given.management_nodes).iter().map(|one| one.node).collect();
        let kept = Kept::new(&now.fabric, &now.lids, &now.routing, &now.given, &inner, &BTreeSet::new());
        let kept = kept.map_err(|error| error.to_string())?;
        let (fabric, lids, routing) = (&now.fabric, &now.lids, &now.routing);
        let planner = Planner { kept: &kept, fabric, lids, routing, fresh: None };
        let failed = |error| format!("a plan of the log is none: {error}: {:?}", of.moves);
        let plan = planner.plan(&of.moves, of.method, UpdateOrder::Ordered).map_err(failed)?;
        if plan.method != of.method {
            return Err(format!("{} makes the plan, and not {}: {:?}", plan.method, of.method, of.moves));
        }
        let mut routes = routing.routes.clone();
        for write in plan.writes() {
            routes.tables[write.switch.index()].set_block(write.block, &write.ports);
        }
        for (switch, lid) in &of.late {
            routes.tables[switch.index()].set(*lid, PortNum::NONE);
        }
        let moved: BTreeSet<Lid> = of.moves.iter().flat_map(Move::lids).collect();
        let fabric = now.fabric.clone();
        now.planned = Some(routes.clone());
        self.note(&fabric, &routes);
        for (_, switch) in fabric.switches() {
            for lid in &moved {
                // Rows may be dropped on the way.
                self.known.entry((switch.guid, *lid)).or_default().insert(PortNum::NONE);
            }
        }
        Ok(())
    }

    fn carried(&mut self, fabric: Fabric) -> Result<(), String> {
        let now = self.in_force()?;
        let routes = now.planned.take().ok_or("a plan is carried out that was not begun")?;
        if routes != now.routing.routes {
            now.proven = None;
        }
        (now.routing.routes, now.fabric) = (routes, fabric);
        self.moves += 1;
        Ok(())
    }

    /// Whether what was replayed leaves nothing under way: no plan, and no sweep that follows from a broken one.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_broken && self.now.as_ref().is_some_and(|now| now.planned.is_none())
    }

    /// Compares what a switch holds, up to what it looks up; how many rows.
    pub(crate) fn compare(
        &self,
        switch: Guid,
        holds: impl Fn(Lid) -> PortNum,
        top: Lid,
    ) -> Result<u64, String> {
        let now = self.now.as_ref().ok_or("the log has no tables")?;
        let node = now.fabric.by_guid(switch).ok_or_else(|| format!("the log has no switch {switch}"))?;
        let table =
            now.routing.routes.table(node).ok_or_else(|| format!("the log has no table of {switch}"))?;
        let differs = (1..=top.0.max(table.top().0)).map(Lid).find(|lid| table.port(*lid) != holds(*lid));
        match differs {
            None => Ok(u64::from(table.top().0)),
            Some(lid) => Err(format!(
                "{} has port {} for LID {lid}, and {} by the log replayed",
                now.fabric.node(node).description,
                holds(lid),
                table.port(lid)
            )),
        }
    }
}

/// The LIDs of machines: those of virtual functions, and those that rest.
fn machines(of: &Computation, inner: &[VSwitch]) -> BTreeSet<Lid> {
    let functions: BTreeSet<_> = inner.iter().flat_map(VSwitch::virtual_functions).collect();
    let ranges = of.lids.iter().filter(|one| functions.contains(&one.port));
    ranges.flat_map(PortLids::iter).chain(of.resting.iter().copied()).collect()
}
