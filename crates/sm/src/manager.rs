use std::collections::VecDeque;

use weft_machine::{Machine, Time};

use crate::{GuidToLid, Input, Options, Output, Progress};

/// The subnet manager.
#[derive(Debug)]
pub struct SubnetManager {
    outputs: VecDeque<Output>,
}

impl SubnetManager {
    /// A manager that is not attached yet; `guid2lid` has the LIDs of earlier runs.
    pub fn new(options: Options, guid2lid: &GuidToLid) -> Self {
        let _ = (options, guid2lid);
        Self { outputs: VecDeque::new() }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress::default()
    }
}

impl Machine for SubnetManager {
    type Input = Input;
    type Output = Output;

    fn handle_input(&mut self, _now: Time, _input: Input) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
