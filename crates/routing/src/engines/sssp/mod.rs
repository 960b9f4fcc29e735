//! Balanced shortest paths, without and with lanes (Hoefler, Schneider, Lumsdaine: Optimized Routing for Large-Scale
//! InfiniBand Networks, 2009; Domke, Hoefler, Nagel: Deadlock-Free Oblivious Routing for Arbitrary Topologies, 2011).

mod assign;
mod dependencies;
mod feedback;
mod lane;
mod management;
mod network;
mod paths;
mod updown;

use assign::Assignment;
use dependencies::{Numbering, Traffic};
use network::Network;
use paths::{Bias, Paths};

use super::{Engine, Input};
use crate::routing::Routing;

pub(crate) const SSSP: Engine = Engine {
    name: "sssp",
    about: "shortest paths balanced over the whole fabric",
    options: &[],
    deadlock_free: false,
    run: |input| Ok(sssp(input)),
};

pub(crate) const DFSSSP: Engine = Engine {
    name: "dfsssp",
    about: "sssp, with its cycles broken over lanes",
    options: &["lanes"],
    deadlock_free: true,
    run: dfsssp,
};

/// What a step back in the order of ways costs in the attempts after the first, over and over, in sixteenths of the
/// mean weight of a way. More needs fewer lanes and is less even; least so `None`, which no weight makes up for.
const PRICES: [Option<u64>; 8] = [Some(0), Some(1), Some(4), Some(16), Some(64), Some(64), None, None];

/// How many attempts there are at most, after the first.
const ATTEMPTS: usize = 100;

/// After how much work there is no further attempt: ways chosen for paths, and ways searched for cycles.
const WORK_MAX: u64 = 1 << 24;

/// From how many switches, of those attempts that are small, paths up and then down are tried as well.
const ROOTS: usize = 16;

/// How many times that much where the lanes allowed are not enough.
const PATIENCE: u64 = 4;

fn sssp(input: &Input<'_>) -> Routing {
    let network = Network::new(input.fabric, input.lids);
    let paths = Paths::balanced(&network, None);
    Routing::on_one_lane("sssp", paths.tables(&network, input.lids.top()))
}

fn dfsssp(input: &Input<'_>) -> Result<Routing, String> {
    let most = input.options.lanes;
    let network = Network::new(input.fabric, input.lids);
    let (paths, assignment) = on_lanes(&network, usize::from(most));
    if let Some(switch) = assignment.stuck {
        let switch = &input.fabric.node(network.graph.nodes[switch as usize]).id;
        return Err(format!(
            "paths through {switch} would still wait for each other on {most} lanes: allow more, or route by updn"
        ));
    }
    let top = input.lids.top();
    let mut routing = Routing::on_one_lane("dfsssp", paths.tables(&network, top));
    routing.levels = assignment.levels(input, &network);
    routing.report.lanes = assignment.lanes as u8;
    Ok(routing)
}

/// Paths, and lanes on which none of them wait for each other.
///
/// Paths are those of sssp as long as one lane is enough for them. Where it is not, there is an order of ways that few
/// of them go against; from it come other paths that prefer to keep to it, from those the next order, and so on.
/// Where more than two lanes are needed, and the fabric is so small that all attempts were made, orders by which paths
/// go up and then down are tried too.
///
/// Lanes must not cost balance: of these attempts stands the one that needs the fewest lanes among those that are
/// about as even as the published algorithm, which routes each target once and knows no order; among several the most
/// even. Those of sssp are as even, so only where their lanes are not enough others may stand.
fn on_lanes(network: &Network, most: usize) -> (Paths, Assignment) {
    let numbering = Numbering::new(network);
    let paths = Paths::balanced(network, None);
    let traffic = Traffic::of_all(network, &numbering, &paths);
    if !traffic.has_cycle(&numbering) {
        return (paths, Assignment::one_lane());
    }
    let attempt = |mut paths: Paths, ranks: &[u32]| {
        let assignment = Assignment::new(network, &numbering, &mut paths, ranks, most);
        (paths, assignment)
    };
    let biased = |ranks: &[u32], price| attempt(Paths::balanced(network, Some(Bias { ranks, price })), ranks);
    let published = paths.first_unevenness;
    let worth = |(paths, one): &(Paths, Assignment)| {
        (one.stuck.is_some(), !paths.unevenness.is_near(published), one.lanes, paths.unevenness)
    };
    // Where only management is in the way, the order of paths between hosts is the one that counts.
    let hosts = Traffic::of_hosts(network, &numbering, &paths);
    let decisive = if hosts.has_cycle(&numbering) { &traffic } else { &hosts };
    let ranks = feedback::ranks(network, &numbering, decisive);
    let mut best = attempt(paths, &ranks);
    let mut last = None;
    let mut work = 0;
    for price in PRICES.into_iter().cycle().take(ATTEMPTS) {
        let (paths, assignment) = last.as_ref().unwrap_or(&best);
        work += (network.targets.len() * network.len() * paths::rounds(network)) as u64 + assignment.steps;
        let stuck = best.1.stuck.is_some();
        if work > WORK_MAX * if stuck { PATIENCE } else { 1 } || (!stuck && best.1.lanes == 1) {
            break;
        }
        let traffic = Traffic::of_all(network, &numbering, paths);
        let next = biased(&feedback::ranks(network, &numbering, &traffic), price);
        if worth(&next) < worth(&best) {
            (best, last) = (next, None);
        } else {
            last = Some(next);
        }
    }
    if best.1.lanes > 2 && work <= WORK_MAX {
        for ranks in updown::ranks(network, ROOTS) {
            for price in [None, PRICES[0]] {
                let next = biased(&ranks, price);
                if worth(&next) < worth(&best) {
                    best = next;
                }
            }
        }
    }
    best
}
