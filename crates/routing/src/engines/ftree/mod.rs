//! Fat-tree routing.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "ftree",
    about: "one root per destination, spread evenly, on fat-trees",
    options: &["roots", "compute_nodes", "io_nodes", "max_reverse_hops", "order"],
    deadlock_free: true,
    run: |input| ftree(input),
};

fn ftree(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "ftree", reason: "not built yet".to_owned() })
}
