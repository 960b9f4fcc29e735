//! Where the managers of a laboratory sit.

use std::path::Path;

use anyhow::Context;
use weft_topology::{Fabric, Pieces, PortRef, Virtualised};
use weft_wire::GidPrefix;

use super::super::seats;
use crate::cli::{PlanArgs, Sm};
use crate::failure::Failure;
use crate::lab::wanted::OtherSm;

/// Where subnet managers sit that begin their subnets, one in each piece of the fabric.
pub(super) fn managers(fabric: &Fabric, file: &Path, args: &PlanArgs) -> anyhow::Result<Vec<PortRef>> {
    let seats = seats::of_managers(fabric, file, &args.sm.sm_at)?;
    if seats.len() > 1 && args.sm_program() != Sm::Weft {
        return Err(Failure::bad_input("--sm opensm manages one piece of the fabric")
            .hint("give --sm-at once; `weft shell NODE -- opensm` runs another one by hand")
            .into());
    }
    Ok(seats)
}

/// Where the performance manager sits: on an HCA of its own if there is one with a way to the subnet manager.
pub(super) fn pm(
    fabric: &Fabric,
    file: &Path,
    sm_at: Option<PortRef>,
    args: &PlanArgs,
) -> anyhow::Result<PortRef> {
    if let Some(name) = &args.pm.pm_at {
        return seats::named(fabric, seats::find(fabric, name)?, "--pm-at");
    }
    let own = beside(fabric, &fabric.pieces(), sm_at).first().copied();
    own.or(sm_at).map_or_else(|| seats::usual(fabric, file), Ok)
}

/// Where the VM manager sits: at a physical function, of its own if there is one with a way to the subnet manager.
pub(super) fn vmm(
    cabling: &Virtualised,
    fabric: &Fabric,
    sm_at: Option<PortRef>,
    args: &PlanArgs,
) -> anyhow::Result<PortRef> {
    let is_function = |node| cabling.adapters.iter().any(|adapter| adapter.vfs.contains(&node));
    if let Some(name) = &args.vfs.vmm_at {
        let place = seats::named(fabric, seats::find(fabric, name)?, "--vmm-at")?;
        if is_function(place.node) {
            return Err(Failure::bad_input(format!("--vmm-at: `{name}` is a virtual function"))
                .hint("the subnet manager takes moves from hosts alone: name a host's adapter")
                .into());
        }
        return Ok(place);
    }
    let is_pf = |seat: &PortRef| cabling.adapters.iter().any(|adapter| adapter.pf == seat.node);
    let own = beside(fabric, &fabric.pieces(), sm_at).into_iter().find(is_pf);
    own.or(sm_at).or_else(|| fabric.attach_place()).context("the topology has no node for a VM manager")
}

/// The subnet managers beside the first: those of other pieces, and in each piece those that stand by, at hosts of their
/// own, the performance manager's last.
pub(super) fn others(
    fabric: &Fabric,
    leaders: &[PortRef],
    pm_at: Option<PortRef>,
    args: &PlanArgs,
) -> anyhow::Result<Vec<OtherSm>> {
    if args.standby > 0 && args.sm.election.priority == Some(0) {
        return Err(Failure::bad_input("--priority 0 leaves no lower priority for the standby managers")
            .hint("use --priority 1 or higher with --standby")
            .into());
    }
    let pieces = fabric.pieces();
    let first = args.sm.subnet_prefix;
    let mut all = Vec::new();
    let mut standbys = Vec::new();
    for (number, at) in (0..).zip(leaders) {
        let subnet_prefix = (number > 0).then(|| GidPrefix(first.0.wrapping_add(number)));
        if number > 0 {
            all.push(OtherSm { at: *at, leads: true, subnet_prefix });
        }
        let mut places = beside(fabric, &pieces, Some(*at));
        // In other pieces other managers may have the same hosts.
        let taken = |place: &PortRef| {
            let others = standbys.iter().map(|other: &OtherSm| other.at);
            leaders.iter().copied().chain(others).chain(pm_at).any(|other| other.node == place.node)
        };
        places.sort_by_key(taken);
        let wanted = usize::from(args.standby);
        if places.len() < wanted {
            let there = places.len();
            let message = format!("{wanted} standby managers want hosts of their own, and there are {there}");
            return Err(Failure::bad_input(message).hint(format!("use --standby {there}")).into());
        }
        places.truncate(wanted);
        standbys.extend(places.into_iter().map(|at| OtherSm { at, leads: false, subnet_prefix }));
    }
    all.extend(standbys);
    Ok(all)
}

/// The hosts beside a subnet manager's in its piece, by their ports there; all hosts without one.
fn beside(fabric: &Fabric, pieces: &Pieces, sm_at: Option<PortRef>) -> Vec<PortRef> {
    let piece = sm_at.and_then(|sm| pieces.of_seat(sm));
    let in_piece = |seat: PortRef| {
        let Some(piece) = piece else { return Some(seat) };
        Some(PortRef::new(seat.node, pieces.port_in(piece, seat.node)?))
    };
    let others = fabric.seats().filter(|seat| sm_at.is_none_or(|sm| sm.node != seat.node));
    others.filter_map(in_piece).collect()
}
