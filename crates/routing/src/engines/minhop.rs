//! Shortest paths, spread evenly over the ports that have them.

use weft_topology::Fabric;

use crate::closer::Closer;
use crate::lids::Lids;
use crate::routing::Routing;
use crate::spread::spread;
use crate::switches::SwitchGraph;
use crate::tables::Routes;

use super::Engine;

pub(crate) const ENGINE: Engine = Engine {
    name: "minhop",
    about: "shortest paths, spread evenly over the ports that have them",
    options: &[],
    deadlock_free: false,
    run: |input| Ok(Routing::on_one_lane("minhop", minhop(input.fabric, input.lids))),
};

/// Routes every LID over a least number of switches, and evenly: a switch sends each next LID by the port, among
/// those on a shortest path, that the fewest LIDs use so far; among equals to the neighbour that the fewest use, by
/// whichever parallel cable. The LIDs of one end port (LMC) go to different neighbours and by different ports before any
/// of that. In a tree, what remains equal is decided so that every host gets a root of its own, as far as there are
/// enough.
///
/// Those switches are served first that have most hosts, among equals that with the host of the lowest LID, each with
/// all its hosts at once; then come the LIDs of the switches themselves. So the tables are a function of cabling and
/// LIDs: neither the order of the nodes in memory nor the number of threads matters. Nothing is ever sent through an
/// HCA; what is not connected has no route.
pub fn minhop(fabric: &Fabric, lids: &Lids) -> Routes {
    let graph = SwitchGraph::new(fabric);
    spread(fabric, lids, &graph, || Closer::new(&graph))
}
