//! Up/down routing from given or found roots.

mod mend;
mod roots;
mod search;
mod site;

use weft_wire::{Lid, PortNum, count_of};

use super::{Engine, Input};
use crate::balance::balance;
use crate::management::ManagementNodes;
use crate::routing::{Ranks, Routing};
use crate::switches::{SwitchGraph, UNREACHED};

use roots::Order;
use search::UpDown;
use site::Site;

pub(crate) const ENGINE: Engine = Engine {
    name: "updn",
    about: "shortest paths that never go up after down",
    options: &["roots"],
    deadlock_free: true,
    run: updn,
};

/// Routes every LID by a shortest path that goes up, then down, and never up again, so that no packets can wait for
/// each other in a circle (Autonet's up*/down* rule). Up is towards the end of a cable that is nearer to a root;
/// where both are as near, to the one of lower GUID. Among paths of one length, LIDs are spread as min-hop does.
///
/// Tables do not know where a packet came from. So a switch through which others go down to a destination goes down
/// there itself, even where a way up and down were shorter: what comes from above may not turn up again.
///
/// Roots that are not given are found, for each piece of the fabric. In the order that follows, every two switches
/// have a legal path if one of them has hosts; where roots have too little in common for that, some are placed below
/// others, which the report tells.
///
/// # Errors
///
/// Given roots that are no switches of the fabric, or from which some switch cannot be reached.
fn updn(input: &Input<'_>) -> Result<Routing, String> {
    let Input { fabric, lids, options } = *input;
    let graph = SwitchGraph::in_guid_order(fabric);
    let management = ManagementNodes::new(fabric, &options.management_nodes);
    let site = Site::new(fabric, &graph, &management);
    let order = match options.roots.is_empty() {
        true => roots::find(&site),
        false => roots::order(&site, given(input, &site)?),
    };
    let routes = balance(fabric, lids, &graph, &management, || UpDown::new(&graph, &order.orientation));
    let mut routing = Routing::on_one_lane("updn", routes);
    let ranks = Ranks(graph.by_node(order.ranks().map(Some)));
    routing.report.ranks = Some(ranks.count());
    routing.ranks = Some(ranks);
    report(input, &site, &order, &mut routing);
    Ok(routing)
}

/// The roots that the operator gives, by seat.
fn given(input: &Input<'_>, site: &Site<'_>) -> Result<Vec<u32>, String> {
    let fabric = input.fabric;
    let mut roots = Vec::new();
    for guid in &input.options.roots {
        let Some(node) = fabric.by_guid(*guid) else {
            return Err(format!("the root {guid} is no node of this fabric"));
        };
        let Some(switch) = site.graph.number(node) else {
            return Err(format!("the root {guid}, {}, is no switch", fabric.node(node).id));
        };
        roots.push(switch);
    }
    roots.sort_unstable();
    roots.dedup();
    // Pieces in which no one sends need no root of the operator's; their first switch does.
    let rooted = |roots: &[u32], piece: u32| roots.iter().any(|root| site.piece_of[*root as usize] == piece);
    let mut sends = vec![false; site.pieces];
    for (node, piece) in site.graph.nodes.iter().zip(&site.piece_of) {
        let mut peers = fabric.node(*node).cabled_ports();
        sends[*piece as usize] |= peers.any(|(_, peer)| !fabric.node(peer.node).is_switch());
    }
    for (switch, piece) in (0..).zip(site.piece_of.iter().copied()) {
        if !sends[piece as usize] && !rooted(&roots, piece) {
            roots.push(switch);
        }
    }
    let hops = site.graph.hops_from(&roots, |_| true);
    match hops.iter().position(|hops| *hops == UNREACHED) {
        None => Ok(roots),
        Some(switch) => {
            let id = &fabric.node(site.graph.nodes[switch]).id;
            Err(format!("no given root reaches the switch {id}, so its piece of the fabric needs one"))
        }
    }
}

/// Names the roots, what had to be placed below others, and what has no legal path.
fn report(input: &Input<'_>, site: &Site<'_>, order: &Order, routing: &mut Routing) {
    let id = |switch: u32| &input.fabric.node(site.graph.nodes[switch as usize]).id;
    routing.report.roots = order.roots.iter().map(|root| id(*root).clone()).collect();
    if order.lowered > 0 {
        routing.report.fallbacks.push(format!(
            "{} switches, roots among them, are placed below neighbours, as some hosts had no legal path otherwise",
            order.lowered
        ));
    }
    // Only pairs of switches without hosts can be without a path.
    let ends: Vec<(u32, Lid)> = (input.lids.iter())
        .filter_map(|lids| Some((site.graph.number(lids.port.node)?, lids.base)))
        .filter(|(switch, _)| site.hosts[*switch as usize] == 0)
        .collect();
    let (mut count, mut example) = (0, None);
    for (from, _) in &ends {
        let table = &routing.routes.tables[site.graph.nodes[*from as usize].index()];
        for (to, lid) in &ends {
            let same_piece = site.piece_of[*from as usize] == site.piece_of[*to as usize];
            if same_piece && table.port(*lid) == PortNum::NONE {
                count += 1;
                example = example.or(Some((*from, *to)));
            }
        }
    }
    if let Some((from, to)) = example {
        routing.report.notes.push(format!(
            "no up/down path and no route for {} of switches without hosts, which is harmless, e.g. {} to {}",
            count_of(count, "pair"),
            id(from),
            id(to)
        ));
    }
}
