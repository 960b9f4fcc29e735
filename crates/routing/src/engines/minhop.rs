//! Shortest paths, spread evenly over the ports that have them.

use weft_topology::Fabric;
use weft_wire::Guid;

use crate::balance::balance;
use crate::bfs::Bfs;
use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::routing::Routing;
use crate::switches::SwitchGraph;
use crate::tables::Routes;

use super::Engine;

pub(crate) const ENGINE: Engine = Engine {
    name: "minhop",
    about: "shortest paths, spread evenly over the ports that have them",
    options: &[],
    deadlock_free: false,
    run: |input| {
        let routes = by_least_hops(input.fabric, input.lids, &input.options.management_nodes);
        Ok(Routing::on_one_lane("minhop", routes))
    },
};

/// Routes every LID over a least number of switches, and evenly: a switch sends each next LID by the port, among
/// those on a shortest path, that the fewest pairs of a host and a LID use so far. The LIDs of one end port (LMC) go to
/// different neighbours and by different ports before any of that. In a tree, what remains equal is decided so that
/// every host gets a root of its own, as far as there are enough. Where switches with hosts pass on what others send,
/// every LID is chosen for twice, the second time with all others known.
///
/// Those switches are served first that have most hosts, among equals that with the host of the lowest LID, each with
/// all its hosts at once; then come the LIDs of the switches themselves. So the tables are a function of cabling and
/// LIDs: neither the order of the nodes in memory nor the number of threads matters. Nothing is ever sent through an
/// HCA; what is not connected has no route.
pub fn minhop(fabric: &Fabric, lids: &Lids) -> Routes {
    by_least_hops(fabric, lids, &[])
}

/// The same with nodes named that serve management alone: balance does not count them as hosts.
fn by_least_hops(fabric: &Fabric, lids: &Lids, management: &[Guid]) -> Routes {
    let graph = SwitchGraph::new(fabric);
    balance(fabric, lids, &graph, &ManagementNodes::new(fabric, management), || Bfs::new(&graph))
}
