//! The port that a check looks from: the one that sees most of the fabric.

use std::collections::BTreeSet;
use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::plan::seats;
use weft_sm::Surveyed;
use weft_topology::{NodeIndex, PortRef};

use crate::check::Clock;
use crate::survey::{Session, survey};
use crate::view::Lab;

/// How long an agent is waited for at least, as far as there is time.
const SHARE_MIN: Duration = Duration::from_secs(1);

/// Reads the fabric from where most of it is seen, or from `from`. A manager may be the one that is cut off.
pub(crate) fn take(lab: &Lab, from: Option<&str>, clock: &mut Clock) -> anyhow::Result<(Session, Surveyed)> {
    if let Some(name) = from {
        let (node, port) = lab.find_seat(name)?;
        let seat = seats::named(&lab.fabric, node, port, "--from")?;
        let left = clock.left();
        let node = lab.fabric.node(seat.node).guid;
        let mut session = Session::attach_within(left, &lab.folder, &lab.record, node, seat.port)?;
        let live = survey(&mut session, false, |sent| clock.watch("the fabric", sent))?;
        return Ok((session, live));
    }
    let mut unseen = expected(lab);
    let mut best: Option<(Session, Surveyed)> = None;
    for seat in seats(lab) {
        if best.is_some() && !unseen.contains(&seat.node) {
            continue;
        }
        let left = clock.left();
        if left.is_zero() && best.is_none() {
            let message = format!("no host's agent has answered within {} s", clock.limit);
            return Err(Failure::new(message).hint("`weft ps` lists the processes"));
        }
        let node = lab.fabric.node(seat.node).guid;
        // One that hangs leaves time for others.
        let share = (left / 2).max(SHARE_MIN).min(left);
        let attached = Session::attach_within(share, &lab.folder, &lab.record, node, seat.port);
        let Ok(mut session) = attached else { continue };
        let live = survey(&mut session, false, |sent| clock.watch("the fabric", sent))?;
        unseen.retain(|node| live.fabric.by_guid(lab.fabric.node(*node).guid).is_none());
        let seen = |live: &Surveyed| live.fabric.nodes().len();
        if best.as_ref().is_none_or(|(_, best)| seen(&live) > seen(best)) {
            best = Some((session, live));
        }
        // No other view can show more.
        if best.as_ref().is_some_and(|(_, best)| unseen.len() <= seen(best)) {
            break;
        }
    }
    let nowhere = || Failure::new("no host's agent is running").hint("`weft ps` lists the processes");
    best.ok_or_else(nowhere)
}

/// The nodes with a cable.
fn expected(lab: &Lab) -> BTreeSet<NodeIndex> {
    let cabled = lab.fabric.iter().filter(|(_, node)| node.cabled_ports().next().is_some());
    cabled.map(|(index, _)| index).collect()
}

/// Where it may look from: first where the subnet manager sits, then at hosts, then at switches.
fn seats(lab: &Lab) -> impl Iterator<Item = PortRef> {
    let place = lab.record.sm.as_ref();
    let sm = place.and_then(|sm| Some(PortRef::new(lab.fabric.by_guid(sm.node)?, sm.port)));
    let sm = sm.filter(|seat| lab.fabric.node(seat.node).is_switch() || lab.fabric.peer(*seat).is_some());
    let (hosts, switches): (Vec<_>, Vec<_>) = lab.fabric.iter().partition(|(_, node)| !node.is_switch());
    let others = hosts.into_iter().chain(switches);
    // SMPs of virtual functions may be refused.
    let others = others.filter(|(_, node)| !lab.record.denies_qp0(node.guid));
    let others: Vec<PortRef> =
        others.filter_map(|(index, node)| Some(PortRef::new(index, node.attach_port()?))).collect();
    sm.into_iter().chain(others)
}
