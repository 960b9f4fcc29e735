//! Up/down routing from given or found roots.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "updn",
    about: "shortest paths that never go up after down",
    options: &["roots"],
    deadlock_free: true,
    run: |input| updn(input),
};

fn updn(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "updn", reason: "not built yet".to_owned() })
}
