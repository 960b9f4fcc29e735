//! Requests to a planner, on the fabric that they are about.

use std::collections::BTreeSet;

use weft_topology::{Fabric, PortRef};
use weft_wire::Lid;

use super::change::{Change, Model};
use super::error::PlanError;
use super::kept::Kept;
use super::network::Seat;
use super::request::{LatePolicy, Move};
use crate::lanes::ServiceLevels;
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
    /// Tables computed from scratch for the new places, for [`Method::Full`](super::Method::Full) and [`Move::Rebalance`].
    pub fresh: Option<&'a Routes>,
    /// What is done where order alone is not safe.
    pub late: LatePolicy,
}

impl Planner<'_> {
    fn name(&self, port: PortRef) -> String {
        self.fabric.port_name(port).to_string()
    }

    fn seat(&self, port: PortRef) -> Result<Seat, PlanError> {
        self.kept.network.seat(self.fabric, port).ok_or_else(|| PlanError::Unattached(self.name(port)))
    }

    /// One LID or two that change their places.
    pub(super) fn changes(&self, one: &Move) -> Result<Vec<Change>, PlanError> {
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

    /// The service levels once all are at their new places: each LID has the classes of the port whose rows it takes over.
    pub fn levels_after(&self, moves: &[Move]) -> ServiceLevels {
        let mut levels = self.routing.levels.clone();
        levels.take_over(&moves.iter().flat_map(Move::takeovers).collect::<Vec<_>>());
        levels
    }

    /// Whether the request agrees with the fabric and with itself.
    pub(super) fn validate(&self, moves: &[Move]) -> Result<(), PlanError> {
        let (mut lids, levels) = (BTreeSet::new(), self.levels_after(moves));
        for one in moves {
            for change in self.changes(one)? {
                if !lids.insert(change.lid) {
                    return Err(PlanError::Twice(change.lid));
                }
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
}
