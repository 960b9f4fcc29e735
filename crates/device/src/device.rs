//! The machine.

use std::collections::VecDeque;

use weft_machine::{Machine, Time};
use weft_wire::PortNum;

use crate::{DeviceConfig, Input, Output, Snapshot, Statistics};

/// A switch or an HCA.
pub struct Device {
    statistics: Statistics,
    outputs: VecDeque<Output>,
}

impl Device {
    /// A device that has just been switched on.
    pub fn new(_config: &DeviceConfig) -> Self {
        Self { statistics: Statistics::default(), outputs: VecDeque::new() }
    }

    /// What the device has done.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The device at this moment.
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }

    /// A switch's linear forwarding table by LID, as far as it has been written; 255 is no route.
    pub fn forwarding_table(&self) -> &[PortNum] {
        &[]
    }
}

impl Machine for Device {
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
