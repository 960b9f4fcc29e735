//! The log of cablings and moves: what tables were computed from, one computation after the other, so that others can
//! compute them again.
//!
//! ```text
//! Routed ─▶ Planned ─▶ Carried ─▶ Repaired ─▶ Planned ─▶ Broken ─▶ Routed ─▶ …
//! ```
//!
//! Kept only where someone wants it ([`SubnetManager::keep_history`](crate::SubnetManager::keep_history)): each entry has
//! a cabling in it. A manager that ends takes its log with it, and the first entry of the next one's is what that has found.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use weft_routing::moves::{Method, Move, Plan, UpdateOrder};
use weft_routing::{Ends, EngineOptions, Lids, Routes};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Lid, PortNum};

use super::route::{Computed, Standing};
use crate::knowledge::{Held, Subnet};

/// Something that tables follow from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Past {
    /// A heavy sweep has computed tables.
    Routed(Box<Computation>),
    /// Rows were computed for cables between switches that are gone or back.
    Repaired {
        /// Those that are gone.
        gone: Vec<Ends>,
        /// Those that are back.
        back: Vec<Ends>,
    },
    /// Everything was verified again after repairs: waits of paths that are no more are forgotten, and block no later repair.
    Verified,
    /// A plan for moves begins: its first write follows.
    Planned(Box<Planned>),
    /// Its prompt writes have been acknowledged: the cabling now.
    Carried(Box<Fabric>),
    /// It has ended before that, or one has of which nothing was written. A heavy sweep follows.
    Broken,
}

/// What a heavy sweep has computed tables from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Computation {
    /// The cabling that it has found.
    pub fabric: Fabric,
    /// The LIDs that ports have.
    pub lids: Lids,
    /// The options that the engine had.
    pub given: EngineOptions,
    /// Whether virtual functions get their LIDs when machines boot.
    pub is_dynamic: bool,
    /// How far LIDs of machines reach, where they get them when they boot.
    pub space: Lid,
    /// The LIDs that have rows and no port.
    pub resting: BTreeSet<Lid>,
    /// The rows that switches hold, and whether all of them are known; none where the operator wants all rows computed.
    pub standing: Option<(Routes, bool)>,
    /// Rows that switches hold for LIDs of machines that are on their way.
    pub away: Vec<(NodeIndex, Lid, PortNum)>,
}

/// A plan that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The cabling that it was made for.
    pub fabric: Fabric,
    /// The LIDs that ports have.
    pub lids: Lids,
    /// The moves.
    pub moves: Vec<Move>,
    /// What made it, after all fallbacks.
    pub method: Method,
    /// What waits for what.
    pub order: UpdateOrder,
    /// Rows that are late, and what is there until another plan writes them: none, or a detour.
    pub late: Vec<(NodeIndex, Lid, PortNum)>,
    /// Detours that it replaces.
    pub detours: BTreeSet<(NodeIndex, Lid)>,
}

/// The log, where it is kept.
#[derive(Debug, Default)]
pub(crate) struct History(Option<Vec<Past>>);

impl History {
    pub(crate) fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    /// What was noted since this was asked last.
    pub(crate) fn take(&mut self) -> Vec<Past> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn note(&mut self, past: impl FnOnce() -> Past) {
        if let Some(all) = &mut self.0 {
            all.push(past());
        }
    }
}

impl Past {
    /// A heavy sweep computes tables; `away` are the LIDs of those who are on their way.
    pub(crate) fn routed(
        subnet: &Subnet,
        computed: &Computed,
        standing: Option<&Standing>,
        away: &[Lid],
        held: &[Held],
        is_dynamic: bool,
    ) -> Self {
        let adapters = &subnet.adapters;
        Self::Routed(Box::new(Computation {
            fabric: subnet.fabric.clone(),
            lids: computed.lids.clone(),
            given: computed.given.clone(),
            is_dynamic,
            space: adapters.space,
            resting: adapters.resting.clone(),
            standing: standing.map(|standing| (standing.routes.clone(), standing.is_whole)),
            away: computed.rows_away(away, subnet, held),
        }))
    }

    pub(crate) fn planned(
        subnet: &Subnet,
        plan: &Plan,
        detours: Option<&BTreeSet<(NodeIndex, Lid)>>,
    ) -> Self {
        Self::Planned(Box::new(Planned {
            fabric: subnet.fabric.clone(),
            lids: subnet.routed.lids.clone(),
            moves: plan.moves.clone(),
            method: plan.method,
            order: plan.order,
            late: late_rows(subnet, plan),
            detours: detours.cloned().unwrap_or_default(),
        }))
    }
}

/// Rows of LIDs that move which late rounds write, as they are from the prompt rounds on.
fn late_rows(subnet: &Subnet, plan: &Plan) -> Vec<(NodeIndex, Lid, PortNum)> {
    let lids: BTreeSet<Lid> = plan.moves.iter().flat_map(Move::lids).collect();
    let stands = |switch: NodeIndex, lid: Lid| {
        subnet.routed.routing().map_or(PortNum::NONE, |routing| routing.routes.port(switch, lid))
    };
    let row = |switch: NodeIndex, lid: Lid| {
        let written =
            plan.prompt_writes().filter(|write| (write.switch, write.block) == (switch, lid.block()));
        written.last().map_or_else(|| stands(switch, lid), |write| write.ports[lid.offset()])
    };
    let late: BTreeSet<(NodeIndex, u16)> =
        plan.late_writes().map(|write| (write.switch, write.block)).collect();
    let rows = late.iter().flat_map(|(switch, block)| {
        let there = lids.iter().filter(move |lid| lid.block() == *block);
        there.map(move |lid| (*switch, *lid))
    });
    rows.map(|(switch, lid)| (switch, lid, row(switch, lid))).collect()
}
