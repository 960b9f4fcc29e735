//! `weft trace`

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::pieces::LabPieces;
use weft_lab::survey::{Session, survey};
use weft_lab::view::Lab;
use weft_sm::Surveyed;
use weft_topology::{Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use crate::cli::TraceArgs;
use crate::output::{Table, print, print_json};

#[derive(Serialize)]
struct Trace {
    from: String,
    from_guid: Guid,
    to: String,
    to_guid: Guid,
    lid: Lid,
    hops: Vec<Hop>,
}

/// One cable of the path.
#[derive(Serialize)]
pub(super) struct Hop {
    node: String,
    pub(super) guid: Guid,
    pub(super) out_port: PortNum,
    peer: String,
    peer_guid: Guid,
    in_port: PortNum,
}

pub(super) fn run(folder: &LabFolder, args: &TraceArgs) -> anyhow::Result<()> {
    let lab = Lab::load_live(folder)?;
    let (from, to) = (lab.find(&args.from)?, lab.find(&args.to)?);
    if lab.record.denies_qp0(lab.fabric.node(from).guid) {
        return Err(Failure::bad_input(format!("`{}` may send no SMPs (--vf-qp0 deny)", args.from))
            .hint("trace the way back: swap the two nodes")
            .into());
    }
    let (lid, hops) = through(&lab, from, to)?;
    let name = |node: NodeIndex| lab.fabric.label(node);
    let guid = |node: NodeIndex| lab.fabric.node(node).guid;
    let (from_guid, to_guid) = (guid(from), guid(to));
    let trace = Trace { from: name(from), from_guid, to: name(to), to_guid, lid, hops };
    if args.json {
        return print_json(&trace);
    }
    let mut table = Table::new(&["hop", "node", "out", "in", "next"]);
    for (index, hop) in trace.hops.into_iter().enumerate() {
        table.row([
            (index + 1).to_string(),
            hop.node,
            hop.out_port.to_string(),
            hop.in_port.to_string(),
            hop.peer,
        ]);
    }
    print(&format!("{} -> {} (LID {lid})\n{table}", trace.from, trace.to))
}

/// The way from one node to another in the pieces that both are in: the first that leads there.
pub(super) fn through(lab: &Lab, from: NodeIndex, to: NodeIndex) -> anyhow::Result<(Lid, Vec<Hop>)> {
    let pieces = LabPieces::of(lab);
    if pieces.pieces.len() < 2 {
        return way(lab, from, to);
    }
    // A node without a cable is not in another piece: it is in none.
    attach_port(lab, from)?;
    let mut failure = None;
    for piece in pieces.shared(from, to) {
        let part = lab.piece(&pieces.pieces, piece);
        let there = |node: NodeIndex| part.fabric.by_guid(lab.fabric.node(node).guid);
        let Some((from, to)) = there(from).zip(there(to)) else { continue };
        match way(&part, from, to) {
            Ok(found) => return Ok(found),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or_else(|| {
        let (from, to) = (lab.fabric.label(from), lab.fabric.label(to));
        Failure::new(format!("no switch or cable joins the pieces of `{from}` and `{to}`"))
            .hint("packets do not pass adapters and routers; `weft links` lists the cables")
            .into()
    }))
}

/// The way by the tables, as they are read at its start.
fn way(lab: &Lab, from: NodeIndex, to: NodeIndex) -> anyhow::Result<(Lid, Vec<Hop>)> {
    let port = attach_port(lab, from)?;
    let mut session = Session::attach(&lab.folder, &lab.record, lab.fabric.node(from).guid, port)?;
    walk(&survey(&mut session, true, |_| Ok(()))?, lab, from, to)
}

/// A port of a node that a program can attach to with profit.
pub(super) fn attach_port(lab: &Lab, node: NodeIndex) -> anyhow::Result<PortNum> {
    let port = lab.fabric.node(node).attach_port();
    port.with_context(|| format!("`{}` has no cable", lab.fabric.label(node)))
}

/// The path that a packet takes to the node's LID.
fn walk(live: &Surveyed, lab: &Lab, from: NodeIndex, to: NodeIndex) -> anyhow::Result<(Lid, Vec<Hop>)> {
    let (source, target) = (lab.fabric.node(from), lab.fabric.node(to));
    let fabric = &live.fabric;
    let lids = live.lids.as_ref().map_err(Clone::clone).context("the LIDs contradict each other")?;
    let index = |node: &Node| fabric.by_guid(node.guid);
    let (Some(start), Some(end)) = (index(source), index(target)) else {
        let (target, source) = (lab.fabric.label(to), lab.fabric.label(from));
        let message = format!("`{target}` cannot be reached from `{source}`");
        return Err(Failure::new(message).hint("no cable leads there now; see `weft links`").into());
    };
    let lid_of = |index: NodeIndex| {
        let ports = fabric.node(index).end_ports();
        ports.filter(|(_, port)| port.lid.is_unicast()).map(|(number, port)| (number, port.lid)).next()
    };
    let (_, lid) = lid_of(end).with_context(|| format!("`{}` has no LID", lab.fabric.label(to)))?;
    let start = PortRef::new(start, attach_port(lab, from)?);
    let path = weft_routing::trace(fabric, lids, &live.routes, start, lid)
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
    Ok((lid, hops.collect()))
}
