//! Balanced shortest paths, without and with lanes.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const SSSP: Engine = Engine {
    name: "sssp",
    about: "shortest paths balanced over the whole fabric",
    options: &[],
    deadlock_free: false,
    run: |input| sssp(input),
};

fn sssp(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "sssp", reason: "not built yet".to_owned() })
}

pub(crate) const DFSSSP: Engine = Engine {
    name: "dfsssp",
    about: "sssp, with its cycles broken over lanes",
    options: &["lanes"],
    deadlock_free: true,
    run: |input| dfsssp(input),
};

fn dfsssp(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "dfsssp", reason: "not built yet".to_owned() })
}
