//! Fat-tree routing with a lane per pair of leaf switches.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "vftree",
    about: "ftree, with the pairs of leaf switches spread over lanes",
    options: &["lanes", "roots", "compute_nodes", "io_nodes", "max_reverse_hops", "order"],
    deadlock_free: true,
    run: |input| vftree(input),
};

fn vftree(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "vftree", reason: "not built yet".to_owned() })
}
