//! Paths of packets by the switches' tables, as they are read when they are asked for.

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_sm::Surveyed;
use weft_topology::{Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use crate::pieces::LabPieces;
use crate::survey::{Session, survey};
use crate::view::Lab;

/// One cable of a path.
#[derive(Clone, Debug, Serialize)]
pub struct Hop {
    /// The node that sends, as people call it.
    pub node: String,
    /// Its GUID.
    pub guid: Guid,
    /// The port by which it sends.
    pub out_port: PortNum,
    /// The node at the other end.
    pub peer: String,
    /// Its GUID.
    pub peer_guid: Guid,
    /// Its port.
    pub in_port: PortNum,
}

/// A path, and the LID that it leads to.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// The destination's LID.
    pub lid: Lid,
    /// Its cables in the order of the journey.
    pub hops: Vec<Hop>,
}

/// The way from one node to another in the pieces that both are in: the first that leads there.
///
/// # Errors
/// When none leads there, or a node does not answer.
pub fn through(lab: &Lab, from: NodeIndex, to: NodeIndex) -> anyhow::Result<Way> {
    let pieces = LabPieces::of(lab);
    if pieces.pieces.len() < 2 {
        return alone(lab, from, to);
    }
    // A node without a cable is not in another piece: it is in none.
    attach_port(lab, from)?;
    let mut failure = None;
    for piece in pieces.shared(from, to) {
        let part = lab.piece(&pieces.pieces, piece);
        let there = |node: NodeIndex| part.fabric.by_guid(lab.fabric.node(node).guid);
        let Some((from, to)) = there(from).zip(there(to)) else { continue };
        match alone(&part, from, to) {
            Ok(found) => return Ok(found),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or_else(|| {
        let (from, to) = (lab.fabric.label(from), lab.fabric.label(to));
        Failure::new(format!("no switch or cable joins the pieces of `{from}` and `{to}`"))
            .hint("packets do not pass adapters and routers; `weft links` lists the cables")
    }))
}

/// The way by the tables, as they are read at its start.
fn alone(lab: &Lab, from: NodeIndex, to: NodeIndex) -> anyhow::Result<Way> {
    let (session, live) = look(lab, from)?;
    walk(&live, lab, PortRef::new(from, session.attached().port), to)
}

/// Attaches to a port of a node, and reads the fabric from there with its tables.
///
/// # Errors
/// When no port of the node can be attached to, or the fabric cannot be read.
pub fn look(lab: &Lab, from: NodeIndex) -> anyhow::Result<(Session, Surveyed)> {
    let port = attach_port(lab, from)?;
    let mut session = Session::attach(&lab.folder, &lab.record, lab.fabric.node(from).guid, port)?;
    let live = survey(&mut session, true, |_| Ok(()))?;
    Ok((session, live))
}

/// A port of a node that a program can attach to with profit.
///
/// # Errors
/// When the node has no cable.
fn attach_port(lab: &Lab, node: NodeIndex) -> anyhow::Result<PortNum> {
    let port = lab.fabric.node(node).attach_port();
    port.with_context(|| format!("`{}` has no cable", lab.fabric.label(node)))
}

/// The path that a packet takes from a port to the node's LID, by tables that were read.
pub(crate) fn walk(live: &Surveyed, lab: &Lab, from: PortRef, to: NodeIndex) -> anyhow::Result<Way> {
    let (source, target) = (lab.fabric.node(from.node), lab.fabric.node(to));
    let fabric = &live.fabric;
    let lids = live.lids.as_ref().map_err(Clone::clone).context("the LIDs contradict each other")?;
    let index = |node: &Node| fabric.by_guid(node.guid);
    let (Some(start), Some(end)) = (index(source), index(target)) else {
        let (target, source) = (lab.fabric.label(to), lab.fabric.label(from.node));
        let message = format!("`{target}` cannot be reached from `{source}`");
        return Err(Failure::new(message).hint("no cable leads there now; see `weft links`"));
    };
    let lid_of = |index: NodeIndex| {
        let ports = fabric.node(index).end_ports();
        ports.filter(|(_, port)| port.lid.is_unicast()).map(|(number, port)| (number, port.lid)).next()
    };
    let (_, lid) = lid_of(end).with_context(|| format!("`{}` has no LID", lab.fabric.label(to)))?;
    let path = weft_routing::trace(fabric, lids, &live.routes, PortRef::new(start, from.port), lid)
        .map_err(|error| Failure::new(error.to_string()).hint("`weft check` looks at all tables"))?;
    let hops = path.hops.windows(2).map(|pair| {
        let (here, next) = (&pair[0], &pair[1]);
        let (node, peer) = (fabric.node(here.node), fabric.node(next.node));
        Hop {
            node: lab.label(node.guid, &node.description),
            guid: node.guid,
            out_port: here.exit,
            peer: lab.label(peer.guid, &peer.description),
            peer_guid: peer.guid,
            in_port: next.entry,
        }
    });
    Ok(Way { lid, hops: hops.collect() })
}
