//! `weft trace`

use anyhow::Context;
use serde::Serialize;
use weft_topology::NodeIndex;
use weft_wire::{Guid, Lid, PortNum};

use super::Lab;
use crate::cli::TraceArgs;
use crate::failure::Failure;
use crate::lab::LabFolder;
use crate::live::{LiveFabric, Session, discover};
use crate::output::{Table, print, print_json};

#[derive(Serialize)]
struct Trace {
    from: String,
    to: String,
    lid: Lid,
    hops: Vec<Hop>,
}

/// One cable of the path.
#[derive(Serialize)]
struct Hop {
    node: String,
    guid: Guid,
    out_port: PortNum,
    peer: String,
    peer_guid: Guid,
    in_port: PortNum,
}

pub(super) fn run(folder: &LabFolder, args: &TraceArgs) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let (from, to) = (lab.find(&args.from)?, lab.find(&args.to)?);
    let port = attach_port(&lab, from)?;
    let mut session = Session::attach(folder, &lab.record, lab.fabric.node(from).guid, port)?;
    let live = discover(&mut session)?;
    let (lid, hops) = walk(&live, &lab, from, to)?;
    let name = |node: NodeIndex| lab.fabric.node(node).description.clone();
    let trace = Trace { from: name(from), to: name(to), lid, hops };
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

/// A port of a node that a program can attach to with profit.
pub(super) fn attach_port(lab: &Lab, node: NodeIndex) -> anyhow::Result<PortNum> {
    let node = lab.fabric.node(node);
    if node.is_switch() {
        return Ok(PortNum::ZERO);
    }
    let cabled = node.cabled_ports().map(|(port, _)| port).next();
    cabled.with_context(|| format!("`{}` has no cable", node.description))
}

/// The path that a packet takes to the node's LID.
fn walk(live: &LiveFabric, lab: &Lab, from: NodeIndex, to: NodeIndex) -> anyhow::Result<(Lid, Vec<Hop>)> {
    let (from, target) = (lab.fabric.node(from), lab.fabric.node(to));
    let Some(end) = live.nodes.get(&target.guid) else {
        let message = format!("`{}` cannot be reached from `{}`", target.description, from.description);
        return Err(Failure::new(message).hint("no cable leads there now; see `weft links`").into());
    };
    let lid = end.end_ports().map(|(_, info)| info.lid).find(|lid| lid.is_unicast());
    let lid = lid.with_context(|| format!("`{}` has no LID", target.description))?;
    let mut hops: Vec<Hop> = Vec::new();
    let (mut at, mut out) = (from.guid, None);
    while at != target.guid {
        let node = live.nodes.get(&at).context("a cable leads to a node that does not answer")?;
        let port = match out.take() {
            None if node.is_switch() => node.route(lid),
            None => node.end_ports().map(|(port, _)| port).next(),
            port => port,
        };
        let Some(port) = port else {
            let message = format!("the table of `{}` has no entry for LID {lid}", node.description);
            return Err(Failure::new(message).hint("`weft check` looks at all tables").into());
        };
        let Some((peer, in_port)) = live.cables.get(&(at, port)) else {
            let message =
                format!("`{}` sends LID {lid} to port {port}, where nothing answers", node.description);
            return Err(Failure::new(message).hint("`weft links` shows the cable").into());
        };
        let name =
            |guid: &Guid| live.nodes.get(guid).map_or_else(String::new, |node| node.description.clone());
        hops.push(Hop {
            node: node.description.clone(),
            guid: at,
            out_port: port,
            peer: name(peer),
            peer_guid: *peer,
            in_port: *in_port,
        });
        if hops.len() > live.nodes.len() {
            let message =
                format!("the tables send LID {lid} around in a circle through `{}`", node.description);
            return Err(Failure::new(message).hint("`weft check` looks at all tables").into());
        }
        at = *peer;
    }
    Ok((lid, hops))
}
