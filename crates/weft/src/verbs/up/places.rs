//! Places of a laboratory's managers.

use std::path::Path;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::plan::seats;
use weft_bundle::plan::wanted::{OtherSm, WantedOpensm};
use weft_topology::{Fabric, Pieces, PortRef, Virtualised};
use weft_wire::GidPrefix;

use crate::cli::plan::{PlanArgs, Sm};

/// Where subnet managers sit that begin their subnets, one in each piece of the fabric. Of OpenSM a piece may have two.
pub(super) fn managers(fabric: &Fabric, file: &Path, args: &PlanArgs) -> anyhow::Result<Vec<PortRef>> {
    match args.sm_program() {
        Sm::Opensm => seats::of_several(fabric, file, &args.sm.sm_at),
        _ => seats::of_managers(fabric, file, &args.sm.sm_at),
    }
}

/// OpenSM at these ports: the first of a piece has its own prefix, and wins elections with others of the piece.
pub(super) fn opensms(fabric: &Fabric, seats: &[PortRef], args: &PlanArgs) -> Vec<WantedOpensm> {
    let polls = (args.sm.election.polling_ms, args.sm.election.polling_retries);
    let pieces = fabric.pieces();
    let piece = |seat: &PortRef| pieces.of_seat(*seat);
    let mut managed: Vec<Option<u32>> = Vec::new();
    let mut all = Vec::new();
    for (at, seat) in seats.iter().enumerate() {
        let stands_by = managed.contains(&piece(seat));
        if !stands_by {
            managed.push(piece(seat));
        }
        let others =
            seats.iter().enumerate().any(|(other, seat_of)| other != at && piece(seat_of) == piece(seat));
        let number = managed.iter().position(|of| *of == piece(seat)).unwrap_or_default() as u64;
        let subnet_prefix = (number > 0).then(|| GidPrefix(GidPrefix::DEFAULT.0.wrapping_add(number)));
        all.push(WantedOpensm { at: *seat, priority: u8::from(others && !stands_by), subnet_prefix, polls });
    }
    all
}

/// Where performance managers sit: in each managed piece one, on an HCA of its own if there is one.
pub(super) fn pms(
    fabric: &Fabric,
    file: &Path,
    managed: &[PortRef],
    args: &PlanArgs,
) -> anyhow::Result<Vec<PortRef>> {
    let named = named(fabric, &args.pm.pm_at, "--pm-at")?;
    one_for_each(fabric, managed, named, |sm_at| {
        let own = beside(fabric, &fabric.pieces(), sm_at).first().copied();
        own.or(sm_at).map_or_else(|| seats::usual(fabric, file), Ok)
    })
}

/// Where VM managers sit: in each managed piece with slots one, at a physical function, of its own if there is one.
pub(super) fn vmms(
    cabling: &Virtualised,
    fabric: &Fabric,
    managed: &[PortRef],
    args: &PlanArgs,
) -> anyhow::Result<Vec<PortRef>> {
    let named = named(fabric, &args.vfs.vmm_at, "--vmm-at")?;
    let is_function = |node| cabling.adapters.iter().any(|adapter| adapter.vfs.contains(&node));
    if let Some(seat) = named.iter().find(|seat| is_function(seat.node)) {
        let name = fabric.label(seat.node);
        return Err(Failure::bad_input(format!("--vmm-at: `{name}` is a virtual function"))
            .hint("the subnet manager takes moves from hosts alone: name a host's adapter"));
    }
    let pieces = fabric.pieces();
    let has_slots = |seat: &PortRef| {
        let piece = pieces.of_seat(*seat);
        cabling.adapters.iter().any(|adapter| piece.is_some_and(|piece| pieces.has(piece, adapter.vswitch)))
    };
    let with_slots: Vec<PortRef> = managed.iter().copied().filter(has_slots).collect();
    // One that could start no machine tells so when it is asked.
    let managed = if with_slots.is_empty() { managed } else { &with_slots };
    let is_pf = |seat: &PortRef| cabling.adapters.iter().any(|adapter| adapter.pf == seat.node);
    one_for_each(fabric, managed, named, |sm_at| {
        let own = beside(fabric, &pieces, sm_at).into_iter().find(is_pf);
        own.or(sm_at).or_else(|| fabric.attach_place()).context("the topology has no node for a VM manager")
    })
}

/// The ports that an option names, each in another piece of the fabric.
fn named(fabric: &Fabric, names: &[String], option: &str) -> anyhow::Result<Vec<PortRef>> {
    let seats = names.iter().map(|name| {
        let (node, port) = seats::find_with_port(fabric, name)?;
        seats::named(fabric, node, port, option)
    });
    let seats: Vec<PortRef> = seats.collect::<anyhow::Result<_>>()?;
    seats::are_apart(fabric, &seats, option, "name one port in each piece")?;
    Ok(seats)
}

/// A port in each piece with a subnet manager: the one that is named there, or the usual one. Without a subnet manager those that are named.
fn one_for_each(
    fabric: &Fabric,
    managed: &[PortRef],
    named: Vec<PortRef>,
    usual: impl Fn(Option<PortRef>) -> anyhow::Result<PortRef>,
) -> anyhow::Result<Vec<PortRef>> {
    let pieces = fabric.pieces();
    if managed.is_empty() {
        return if named.is_empty() { Ok(vec![usual(None)?]) } else { Ok(named) };
    }
    let mut all: Vec<PortRef> = Vec::new();
    for sm_at in managed {
        let is_there = |seat: &&PortRef| pieces.of_seat(**seat) == pieces.of_seat(*sm_at);
        if all.iter().any(|seat| is_there(&seat)) {
            continue;
        }
        let named = named.iter().find(is_there).copied();
        all.push(named.map_or_else(|| usual(Some(*sm_at)), Ok)?);
    }
    let elsewhere = named.into_iter().find(|seat| !all.contains(seat));
    match elsewhere {
        None => Ok(all),
        Some(seat) => {
            let message = format!("no subnet manager is in the piece of {}", fabric.port_label(seat));
            Err(Failure::bad_input(message)
                .hint("name a port of the subnet manager's piece, or add --sm-at in this one"))
        }
    }
}

/// The subnet managers beside the first: those of other pieces, and in each piece those that stand by, at hosts of their
/// own, the performance manager's last.
pub(super) fn others(
    fabric: &Fabric,
    leaders: &[PortRef],
    pms: &[PortRef],
    args: &PlanArgs,
) -> anyhow::Result<Vec<OtherSm>> {
    if args.standby > 0 && args.sm.election.priority == Some(0) {
        return Err(Failure::bad_input("--priority 0 leaves no lower priority for the standby managers")
            .hint("use --priority 1 or higher with --standby"));
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
            let mut all = leaders.iter().copied().chain(others).chain(pms.iter().copied());
            all.any(|other| other.node == place.node)
        };
        places.sort_by_key(taken);
        let wanted = usize::from(args.standby);
        if places.len() < wanted {
            let there = places.len();
            let message = format!("{wanted} standby managers want hosts of their own, and there are {there}");
            return Err(Failure::bad_input(message).hint(format!("use --standby {there}")));
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
