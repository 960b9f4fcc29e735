//! Weights of hosts and their order, learned from what they receive.

use std::collections::BTreeMap;

use weft_routing::{EngineOptions, WEIGHTS, learn_order, learn_weights};
use weft_wire::Guid;

use crate::Options;

/// What routing has learned; empty before it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    weights: BTreeMap<Guid, u32>,
    order: Vec<Guid>,
}

impl Learned {
    /// From what hosts have received, by the GUIDs of ports that are routed.
    pub(crate) fn from(received: &BTreeMap<Guid, u64>, options: &Options) -> Self {
        let routing = &options.routing;
        let weights =
            routing.learn_weights.then(|| learn_weights(received, *WEIGHTS.start(), *WEIGHTS.end()));
        let order = routing.learn_order.then(|| learn_order(received));
        Self { weights: weights.unwrap_or_default(), order: order.unwrap_or_default() }
    }

    /// The engines' options with it, in the place of what an operator gave.
    pub(crate) fn put_into(&self, given: &mut EngineOptions) {
        if !self.weights.is_empty() {
            given.weights.clone_from(&self.weights);
        }
        if !self.order.is_empty() {
            given.order.clone_from(&self.order);
        }
    }
}
