//! The second phase of two, proved: paths that were calculated are assigned, and the verifier looks at what comes of it.

use super::chain::proven_by;
use super::pftree::CalculatedPaths;
use super::{Engine, Input, Refusal, in_pool};
use crate::routing::Routing;

impl CalculatedPaths {
    /// The second phase: assigns the paths to destinations by the partitions, policies and weights of the options, and proves the result.
    /// It is the routing of [`Engine::route`], and as little is written unproven.
    ///
    /// # Errors
    /// The engine's refusal, as of a full run; also where LIDs, roots or kinds of nodes are others than the calculated ones.
    pub fn assign(&mut self, engine: &Engine, input: &Input<'_>) -> Result<Routing, Refusal> {
        let refuse = |reason: String| Refusal { engine: engine.name.into(), reason };
        let routing = self.assign_unproven(engine, input)?;
        in_pool(input.options.threads, || proven_by(engine, input, routing))
            .unwrap_or_else(|reason| Err(refuse(reason)))
    }
}
