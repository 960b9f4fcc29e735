//! Balanced shortest paths, without and with lanes (Hoefler, Schneider, Lumsdaine: Optimized Routing for Large-Scale
//! InfiniBand Networks, 2009; Domke, Hoefler, Nagel: Deadlock-Free Oblivious Routing for Arbitrary Topologies, 2011).

mod assign;
mod dependencies;
mod feedback;
mod lane;
mod management;
mod network;
mod paths;

use assign::Assignment;
use dependencies::{Numbering, Traffic};
use network::Network;
use paths::{Bias, Paths};

use super::{Engine, Input, Refusal};
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

/// The most lanes there are for data (IBA 3.5.7).
const LANES_MAX: u8 = 15;

/// What a step back in the order of ways costs in each attempt after the first, in mean weights of a way; `None` where
/// no weight makes up for it, which needs the fewest lanes and is the least even.
const PRICES: [Option<u64>; 12] =
    [Some(4), None, Some(4), None, Some(4), None, Some(4), None, Some(4), None, Some(4), None];

/// After how much work there is no further attempt: ways chosen for paths, and ways searched for cycles.
const WORK_MAX: u64 = 1 << 25;

fn sssp(input: &Input<'_>) -> Routing {
    let network = Network::new(input.fabric, input.lids);
    let paths = Paths::balanced(&network, None);
    Routing::on_one_lane("sssp", paths.tables(input.fabric, &network, input.lids.top()))
}

fn dfsssp(input: &Input<'_>) -> Result<Routing, Refusal> {
    let refusal = |reason| Refusal { engine: "dfsssp", reason };
    let most = input.options.lanes;
    if !(1..=LANES_MAX).contains(&most) {
        return Err(refusal(format!("the number of lanes must be 1 to {LANES_MAX}, not {most}")));
    }
    let network = Network::new(input.fabric, input.lids);
    let (paths, assignment) = on_lanes(&network, usize::from(most));
    if let Some(switch) = assignment.stuck {
        let switch = &input.fabric.node(network.graph.nodes[switch as usize]).description;
        return Err(refusal(format!(
            "paths through {switch} would still wait for each other on {most} lanes: allow more, or route by updn"
        )));
    }
    let top = input.lids.top();
    let mut routing = Routing::on_one_lane("dfsssp", paths.tables(input.fabric, &network, top));
    routing.levels = assignment.levels(&network, top);
    routing.report.lanes = assignment.lanes as u8;
    Ok(routing)
}

/// Paths, and lanes on which none of them wait for each other.
///
/// Paths are those of sssp as long as one lane is enough for them. Where it is not, there is an order of ways that few
/// of them go against; from it come other paths that prefer to keep to it, from those the next order, and so on. Of
/// these attempts stands the one that needs the fewest lanes, and among several the most even.
fn on_lanes(network: &Network, most: usize) -> (Paths, Assignment) {
    let numbering = Numbering::new(network);
    let mut paths = Paths::balanced(network, None);
    if !Traffic::of_all(network, &numbering, &paths).has_cycle(&numbering) {
        return (paths, Assignment::one_lane());
    }
    // Paths between hosts alone often need no other order than they have; management then finds its place in it.
    let ranks = feedback::ranks(network, &numbering, &Traffic::of_hosts(network, &numbering, &paths));
    let assignment = Assignment::new(network, &numbering, &mut paths, &ranks, most);
    let work_of = |one: &Assignment| (network.targets.len() * network.len()) as u64 + one.steps;
    let mut work = work_of(&assignment);
    let mut traffic = Traffic::of_all(network, &numbering, &paths);
    let mut best = (paths, assignment);
    for price in PRICES {
        if work > WORK_MAX || (best.1.stuck.is_none() && best.1.lanes == 1) {
            break;
        }
        let ranks = feedback::ranks(network, &numbering, &traffic);
        let mut paths = Paths::balanced(network, Some(Bias { ranks: &ranks, price }));
        let assignment = Assignment::new(network, &numbering, &mut paths, &ranks, most);
        work += work_of(&assignment);
        traffic = Traffic::of_all(network, &numbering, &paths);
        let worth = |paths: &Paths, one: &Assignment| (one.stuck.is_some(), one.lanes, paths.unevenness);
        if worth(&paths, &assignment) < worth(&best.0, &best.1) {
            best = (paths, assignment);
        }
    }
    best
}
