//! The subnet manager's log of cablings and moves, replayed: which rows every switch holds once everything is at rest.
//!
//! Pure: engines, planners and repairs compute from the log alone. A plan that broke, or whose manager died, may have been
//! written in part, so the next sweep says what it has found; each of those rows of machines' LIDs must be one that the log
//! had for its switch before.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_routing::moves::{Kept, LatePolicy, Method, Move, Plan, Planner, UpdateOrder};
use weft_routing::{
    Chain, Ends, EngineOptions, ForwardingTable, Lids, PortLids, Proven, Routes, Routing, VSwitch,
    VirtualRows, keeps, vswitches,
};
use weft_sm::{Computation, Past, Planned};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

/// Entries that an error shows.
const TRAIL_MAX: usize = 12;

/// An entry in a line.
fn outline(past: &Past) -> String {
    let cables = |fabric: &Fabric| {
        let name = |port: PortRef| format!("{}:{}", fabric.node(port.node).description, port.port);
        fabric
            .cables()
            .map(|cable| format!("{}-{}", name(cable.a), name(cable.b)))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match past {
        Past::Routed(of) => format!("routed, {} LIDs: {}", of.lids.iter().count(), cables(&of.fabric)),
        Past::Repaired { gone, back } => format!("repaired, gone {gone:?}, back {back:?}"),
        Past::Verified => "verified".to_owned(),
        Past::Planned(of) => format!("planned {:?} by {:?}: {}", of.moves, of.method, cables(&of.fabric)),
        Past::Carried(fabric) => format!("carried: {}", cables(fabric)),
        Past::Broken => "broken".to_owned(),
    }
}

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
    /// The last entries, for people who look for what is wrong.
    trail: VecDeque<String>,
    /// Moves and repairs that were replayed.
    pub(crate) moves: u64,
    pub(crate) repairs: u64,
    /// LIDs whose rows became fresh by a rebalance, and those whose plan ended on the way: it broke, or its manager died.
    pub(crate) rebalanced: u64,
    pub(crate) rebalances_cut: u64,
    /// The blocks that plans of rebalances write, by switch.
    pub(crate) rebalance_writes: BTreeMap<Guid, u64>,
}

/// The tables in force, and what they are for.
struct Now {
    fabric: Fabric,
    lids: Lids,
    given: EngineOptions,
    /// Whether virtual functions get LIDs when machines boot, and how far those reach.
    is_dynamic: bool,
    space: Lid,
    routing: Routing,
    /// With the cables that repairs have cut.
    proven: Option<Proven>,
    /// Tables once the plan under way is carried out.
    planned: Option<Routes>,
    /// Whether that is a rebalance's.
    is_for_balance: bool,
}

impl Replay {
    pub(crate) fn new(chain: Chain) -> Self {
        Self {
            chain,
            now: None,
            known: BTreeMap::new(),
            top: Lid(0),
            is_broken: false,
            trail: VecDeque::new(),
            moves: 0,
            repairs: 0,
            rebalanced: 0,
            rebalances_cut: 0,
            rebalance_writes: BTreeMap::new(),
        }
    }

    /// Goes on by what the log has. `restarted` are switches that may have lost their tables.
    pub(crate) fn go_on(&mut self, log: Vec<Past>, restarted: &BTreeSet<Guid>) -> Result<(), String> {
        for past in log {
            self.trail.push_back(outline(&past));
            self.trail.drain(..self.trail.len().saturating_sub(TRAIL_MAX));
            self.one(past, restarted).map_err(|error| {
                let trail: Vec<&str> = self.trail.iter().map(String::as_str).collect();
                format!("{error}\n  entries of the log up to it:\n    {}", trail.join("\n    "))
            })?;
        }
        Ok(())
    }

    fn one(&mut self, past: Past, restarted: &BTreeSet<Guid>) -> Result<(), String> {
        match past {
            Past::Routed(computation) => self.routed(*computation, restarted),
            Past::Repaired { gone, back } => self.repaired(&gone, &back),
            Past::Verified => self.verified(),
            Past::Planned(planned) => self.planned(&planned),
            Past::Carried(fabric) => self.carried(*fabric),
            Past::Broken => {
                self.rebalances_cut += u64::from(self.is_rebalancing());
                self.in_force()?.planned = None;
                self.is_broken = true;
                Ok(())
            }
        }
    }

    fn in_force(&mut self) -> Result<&mut Now, String> {
        self.now.as_mut().ok_or_else(|| "the log begins without tables".to_owned())
    }

    /// Whether a plan of a rebalance has begun and has not ended.
    pub(crate) fn is_rebalancing(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.planned.is_some() && now.is_for_balance)
    }

    /// Rows that stand stay where they hold, LID by LID; others are the engine's, or those of the physical function.
    fn routed(&mut self, of: Computation, restarted: &BTreeSet<Guid>) -> Result<(), String> {
        let inner = vswitches(&of.fabric, &of.given.management_nodes);
        self.rebalances_cut += u64::from(self.is_rebalancing());
        let how = (&of.given, of.is_dynamic, of.space);
        let mut routing = self.by_engine((&of.fabric, &of.lids), how)?;
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
        let Computation { fabric, lids, given, is_dynamic, space, .. } = of;
        let (proven, planned, is_for_balance) = (None, None, false);
        self.now =
            Some(Now { fabric, lids, given, is_dynamic, space, routing, proven, planned, is_for_balance });
        self.is_broken = false;
        Ok(())
    }

    fn by_engine(
        &self,
        (fabric, lids): (&Fabric, &Lids),
        (given, is_dynamic, space): (&EngineOptions, bool, Lid),
    ) -> Result<Routing, String> {
        let route = |lids: &Lids| {
            let routed = self.chain.route(fabric, lids, given);
            routed.map_err(|refusals| format!("no engine serves a cabling of the log: {refusals:?}"))
        };
        if !is_dynamic {
            return route(lids);
        }
        let inner = vswitches(fabric, &given.management_nodes);
        let functions: BTreeSet<_> = inner.iter().flat_map(VSwitch::virtual_functions).collect();
        let mut physical = Lids::new();
        for one in lids.iter().filter(|one| !functions.contains(&one.port)) {
            physical.insert(one.port, one.base, one.lmc).map_err(|error| error.to_string())?;
        }
        let mut routing = route(&physical)?;
        VirtualRows { fabric, vswitches: &inner, lids, options: given }.copy(&mut routing, space);
        Ok(routing)
    }

    /// The tables that a heavy sweep would compute from nothing for a cabling, the LIDs being those in force.
    fn fresh(&self, fabric: &Fabric) -> Result<Routes, String> {
        let now = self.now.as_ref().ok_or("the log has no tables")?;
        let how = (&now.given, now.is_dynamic, now.space);
        Ok(self.by_engine((fabric, &now.lids), how)?.routes)
    }

    /// The cabling and the LIDs in force, the tables, and those that a heavy sweep would compute from nothing.
    pub(crate) fn beside_fresh(&self) -> Result<(&Fabric, &Lids, &Routes, Routes), String> {
        let now = self.now.as_ref().ok_or("the log has no tables")?;
        Ok((&now.fabric, &now.lids, &now.routing.routes, self.fresh(&now.fabric)?))
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

    /// What waits for what after it decides about later repairs.
    fn verified(&mut self) -> Result<(), String> {
        let Some(proven) = self.in_force()?.proven.as_mut() else { return Ok(()) };
        proven.verify().map_err(|error| format!("tables that were verified do not hold: {error}"))
    }

    /// A plan is made again from the tables in force.
    fn planned(&mut self, of: &Planned) -> Result<(), String> {
        let now = self.in_force()?;
        (now.fabric, now.lids) = (of.fabric.clone(), of.lids.clone());
        now.is_for_balance = of.moves.iter().all(|one| matches!(one, Move::Rebalance { .. }));
        let is_for_balance = now.is_for_balance;
        let plan = self.plan_again(of)?;
        let now = self.in_force()?;
        let mut routes = now.routing.routes.clone();
        for write in plan.writes() {
            routes.tables[write.switch.index()].set_block(write.block, &write.ports);
        }
        for (switch, lid, port) in &of.late {
            routes.tables[switch.index()].set(*lid, *port);
        }
        let moved: BTreeSet<Lid> = of.moves.iter().flat_map(Move::lids).collect();
        let fabric = now.fabric.clone();
        now.planned = Some(routes.clone());
        for write in plan.writes().filter(|_| is_for_balance) {
            *self.rebalance_writes.entry(fabric.node(write.switch).guid).or_default() += 1;
        }
        self.note(&fabric, &routes);
        for (_, switch) in fabric.switches() {
            for lid in &moved {
                // Rows may be dropped on the way.
                self.known.entry((switch.guid, *lid)).or_default().insert(PortNum::NONE);
            }
        }
        Ok(())
    }

    fn plan_again(&self, of: &Planned) -> Result<Plan, String> {
        let now = self.now.as_ref().ok_or("the log has no tables")?;
        let (fabric, lids, routing) = (&now.fabric, &now.lids, &now.routing);
        let fresh = match of.method {
            Method::Full => Some(self.fresh(&moved(fabric, &of.moves))?),
            _ if now.is_for_balance => Some(self.fresh(fabric)?),
            _ => None,
        };
        let inner = vswitches(fabric, &now.given.management_nodes);
        let inner: Vec<NodeIndex> = inner.iter().map(|one| one.node).collect();
        let kept = Kept::new(fabric, lids, routing, &now.given, &inner, &BTreeSet::new());
        let mut kept = kept.map_err(|error| error.to_string())?;
        kept.set_detours(of.detours.clone());
        let planner = Planner {
            kept: &kept,
            fabric,
            lids,
            routing,
            fresh: fresh.as_ref(),
            late: LatePolicy::default(),
        };
        let failed = |error| format!("a plan of the log is none: {error}: {:?}", of.moves);
        let plan = planner.plan(&of.moves, of.method, UpdateOrder::Ordered).map_err(failed)?;
        if plan.method != of.method {
            return Err(format!("{} makes the plan, and not {}: {:?}", plan.method, of.method, of.moves));
        }
        Ok(plan)
    }

    fn carried(&mut self, fabric: Fabric) -> Result<(), String> {
        let now = self.in_force()?;
        let routes = now.planned.take().ok_or("a plan is carried out that was not begun")?;
        if routes != now.routing.routes {
            now.proven = None;
        }
        (now.routing.routes, now.fabric) = (routes, fabric);
        let is_for_balance = now.is_for_balance;
        self.moves += 1;
        self.rebalanced += u64::from(is_for_balance);
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

/// A cabling once machines have moved that are plugged in. Places are ports of vSwitches.
fn moved(fabric: &Fabric, moves: &[Move]) -> Fabric {
    let mut after = fabric.clone();
    let place = |port: PortRef| match fabric.node(port.node).is_switch() {
        true => Some(port),
        false => fabric.peer(port),
    };
    let ends = moves.iter().flat_map(|one| match *one {
        Move::Copy { from, to, .. } => vec![(from, to)],
        Move::Swap { from, to, .. } => vec![(from, to), (to, from)],
        _ => Vec::new(),
    });
    let ends = ends.filter(|(end, _)| !fabric.node(end.node).is_switch());
    let cables: Vec<_> = ends.filter_map(|(end, to)| Some((end, place(to)?))).collect();
    cables.iter().for_each(|(end, _)| after.disconnect(*end));
    cables.iter().for_each(|(_, place)| after.disconnect(*place));
    for (end, place) in cables {
        let rate = fabric.port(end).map(|port| port.link).unwrap_or_default();
        after.reconnect(end, place, rate);
        after.set_system(end.node, fabric.node(place.node).system_image_guid);
    }
    after
}
