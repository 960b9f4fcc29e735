//! Layered shortest paths.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "lash",
    about: "shortest paths on as few lanes as needed",
    options: &["lanes"],
    deadlock_free: true,
    run: |input| lash(input),
};

fn lash(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "lash", reason: "not built yet".to_owned() })
}
