//! Dimension-order routing.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "dor",
    about: "dimension by dimension, on meshes, tori and hypercubes",
    options: &["lanes"],
    deadlock_free: false,
    run: |input| dor(input),
};

fn dor(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "dor", reason: "not built yet".to_owned() })
}
