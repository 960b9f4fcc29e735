//! Fabrics that come to rest, and what their managers have summed up.

#![allow(dead_code, reason = "not every test uses all of it")]

use weft_machine::Time;
use weft_sim::Simulation;
use weft_sm::Summary;

/// How long a fabric may take.
const PATIENCE: Time = Time::from_secs(120);

/// Lets it come to rest, and checks it then.
pub(crate) fn quiet(simulation: &mut Simulation) {
    let limit = simulation.now() + PATIENCE;
    simulation.run_until_quiet(limit).expect("it comes to rest");
    simulation.check().unwrap_or_else(|all| panic!("{all:?}"));
}

/// What the last sweep came to.
pub(crate) fn last(simulation: &Simulation) -> Summary {
    simulation.summaries().last().expect("a sweep has ended").1.clone()
}
