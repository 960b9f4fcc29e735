//! A fabric from switching on to SUBNET UP, in virtual time: what `weft sim` shows.

use serde::Serialize;
use weft_machine::Time;
use weft_routing::EngineReport;
use weft_sm::Summary;
use weft_topology::Fabric;

use crate::{CheckReport, NotQuiet, SimOptions, SimStatistics, Simulation, Violation};

/// How a fabric came up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BringUp {
    /// The seed of every delay and chance.
    pub seed: u64,
    /// From switching on to SUBNET UP.
    pub up_at: Time,
    /// From the subnet manager's first SMP to SUBNET UP.
    pub sm_took: Time,
    /// What the subnet manager said when the subnet was up.
    pub summary: Summary,
    /// Which engine routed, and what it had to say.
    pub routing: EngineReport,
    /// What the devices themselves were found to be.
    pub checked: CheckReport,
    /// How much there was to do.
    pub statistics: SimStatistics,
    /// The trace's hash; 0 when no trace was kept.
    pub trace_hash: u64,
}

/// Why a fabric did not come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BringUpError {
    /// It did not come to rest.
    #[error("{0}")]
    NotQuiet(NotQuiet),
    /// It came to rest, but the subnet manager never said that the subnet is up.
    #[error("the subnet manager never said that the subnet is up")]
    NeverUp,
    /// No engine that the subnet manager may use routes the fabric; why not, in their own sentences.
    #[error("the subnet manager cannot route this fabric: {0}")]
    NotRouted(String),
    /// It is not as it should be.
    #[error("{} things are wrong:{}", .0.len(), .0.iter().map(|one| format!("\n  {one}")).collect::<String>())]
    Violations(Vec<Violation>),
}

/// Switches a fabric on and lets its subnet manager bring it up, at most for `limit` of virtual time; checks it.
pub fn bring_up(
    fabric: &Fabric,
    options: SimOptions,
    seed: u64,
    limit: Time,
) -> Result<BringUp, BringUpError> {
    bring_up_watched(fabric, options, seed, limit, |_, _| ())
}

/// The same, for somebody who looks at it before each thing that happens. The second argument says that nothing more happens.
///
/// # Errors
/// Those of [`bring_up`].
pub fn bring_up_watched(
    fabric: &Fabric,
    options: SimOptions,
    seed: u64,
    limit: Time,
    mut look: impl FnMut(&Simulation, bool),
) -> Result<BringUp, BringUpError> {
    let mut simulation = Simulation::new(fabric, options, seed);
    let up = bring_up_of(&mut simulation, seed, limit, &mut look);
    look(&simulation, true);
    up
}

fn bring_up_of(
    simulation: &mut Simulation,
    seed: u64,
    limit: Time,
    look: &mut dyn FnMut(&Simulation, bool),
) -> Result<BringUp, BringUpError> {
    // The first complete sweep ends it; a sweep that the last links were too late for is followed by another.
    while !simulation.summaries().last().is_some_and(|(_, summary)| summary.complete) {
        look(simulation, false);
        if let Some(reason) = refused(simulation) {
            return Err(BringUpError::NotRouted(reason));
        }
        if !simulation.step(limit) {
            simulation.run_until_quiet(limit).map_err(BringUpError::NotQuiet)?;
            return Err(BringUpError::NeverUp);
        }
    }
    let (up_at, summary) = simulation.summaries().last().cloned().ok_or(BringUpError::NeverUp)?;
    let checked = simulation.check().map_err(BringUpError::Violations)?;
    let (first, _) = &simulation.summaries()[0];
    let sm_took = up_at.saturating_sub(first.saturating_sub(simulation.summaries()[0].1.took));
    Ok(BringUp {
        seed,
        up_at,
        sm_took,
        summary,
        routing: simulation.routing().cloned().unwrap_or_default(),
        checked,
        statistics: simulation.statistics(),
        trace_hash: if simulation.trace().is_on() { simulation.trace().hash() } else { 0 },
    })
}

/// Why the last sweep had no routing, if it has ended and has found all that is within reach: a later one would fare no
/// better.
fn refused(simulation: &Simulation) -> Option<String> {
    let reason = simulation.not_routed()?;
    let (_, last) = simulation.summaries().last()?;
    let found = (last.switches + last.hosts + last.others) as usize;
    (found >= simulation.reached().len()).then(|| reason.to_owned())
}
