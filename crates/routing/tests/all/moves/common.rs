//! A fabric with virtual machines, routed and kept.

use std::collections::BTreeSet;

use weft_routing::moves::{Kept, LatePolicy, Method, Move, Plan, PlanError, Planner, Proof, UpdateOrder};
use weft_routing::{EngineOptions, Lids, Routes, Routing};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use super::trees::{node, route};

/// A fabric whose hosts have virtual functions; vSwitches are no switches of it.
pub(crate) struct Site {
    pub(crate) fabric: Fabric,
    pub(crate) lids: Lids,
    pub(crate) routing: Routing,
    pub(crate) options: EngineOptions,
    /// LIDs of functions that no machine has.
    pub(crate) idle: BTreeSet<Lid>,
    pub(crate) kept: Kept,
}

impl Site {
    /// Every host has `functions` LIDs besides its own, routed by an engine.
    pub(crate) fn new(fabric: Fabric, engine: &str, functions: u16) -> Self {
        let mut lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
        lids.add_virtual(&fabric, functions).expect("there are enough LIDs");
        let options = EngineOptions::default();
        let routing = route(engine, &fabric, &lids, &options).expect("the engine takes it");
        Self::of(fabric, lids, routing, BTreeSet::new())
    }

    pub(crate) fn of(fabric: Fabric, lids: Lids, routing: Routing, idle: BTreeSet<Lid>) -> Self {
        let options = EngineOptions::default();
        let kept = Kept::new(&fabric, &lids, &routing, &options, &[], &idle).expect("one lane a level");
        Self { fabric, lids, routing, options, idle, kept }
    }

    pub(crate) fn keep(&mut self) {
        let kept = Kept::new(&self.fabric, &self.lids, &self.routing, &self.options, &[], &self.idle);
        self.kept = kept.expect("one lane a level");
    }

    pub(crate) fn planner(&self) -> Planner<'_> {
        let Self { fabric, lids, routing, kept, .. } = self;
        Planner { kept, fabric, lids, routing, fresh: None, late: LatePolicy::default() }
    }

    pub(crate) fn host(&self, number: usize) -> PortRef {
        PortRef::new(node(&self.fabric, &format!("host-{number}")), PortNum(1))
    }

    /// The LIDs of a host: its own, then those of its functions.
    pub(crate) fn lids_of(&self, host: usize) -> Vec<Lid> {
        let port = self.host(host);
        self.lids.iter().filter(|lids| lids.port == port).map(|lids| lids.base).collect()
    }

    pub(crate) fn leaf(&self, host: usize) -> NodeIndex {
        self.fabric.peer(self.host(host)).expect("it has a cable").node
    }

    /// A function of a host moves with its LID; its rows become those of the other host's own LID.
    pub(crate) fn copy(&self, function: usize, from: usize, to: usize) -> Move {
        let lid = self.lids_of(from)[function];
        Move::Copy { lid, from: self.host(from), to: self.host(to), of: self.lids_of(to)[0] }
    }

    pub(crate) fn swap(&self, from: (usize, usize), to: (usize, usize)) -> Move {
        let (lid, with) = (self.lids_of(from.0)[from.1], self.lids_of(to.0)[to.1]);
        Move::Swap { lid, from: self.host(from.0), to: self.host(to.0), with }
    }

    pub(crate) fn plan(&self, moves: &[Move], method: Method) -> Plan {
        self.planner().plan(moves, method, UpdateOrder::Ordered).expect("there is a plan")
    }

    pub(crate) fn prove(&self, moves: &[Move], method: Method) -> Result<(Plan, Proof), PlanError> {
        self.planner().plan_and_prove(moves, method, UpdateOrder::Ordered)
    }
}

/// Writes a plan.
pub(crate) fn write(routes: &mut Routes, plan: &Plan) {
    for write in plan.writes() {
        routes.tables[write.switch.index()].set_block(write.block, &write.ports);
    }
}

/// A LID gets another owner.
pub(crate) fn moved(lids: &Lids, moves: &[Move]) -> Lids {
    let owner = |lid: Lid, port: PortRef| {
        let new = moves.iter().find_map(|one| match *one {
            Move::Copy { lid: other, to, .. } | Move::Boot { lid: other, to, .. } if other == lid => Some(to),
            Move::Swap { lid: other, to, .. } if other == lid => Some(to),
            Move::Swap { with, from, .. } if with == lid => Some(from),
            _ => None,
        });
        new.unwrap_or(port)
    };
    let mut all = Lids::new();
    for entry in lids.iter() {
        all.insert(owner(entry.base, entry.port), entry.base, entry.lmc).expect("as before");
    }
    all
}
