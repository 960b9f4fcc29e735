use std::collections::VecDeque;

use weft_machine::{Machine, Time};

use super::{Input, Limits, Output, Stats};

/// The MAD layer of one open port; see the [module](super).
#[derive(Debug, Default)]
pub struct MadLayer {
    limits: Limits,
    stats: Stats,
    outputs: VecDeque<Output>,
}

impl MadLayer {
    /// A layer without registrations.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What it may hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Machine for MadLayer {
    type Input = Input;
    type Output = Output;

    fn handle_input(&mut self, _now: Time, _input: Input) {
        self.stats.requests_unmatched += 1;
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
