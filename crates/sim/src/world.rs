//! The parts of a simulation that all others share.

use std::fmt::Arguments;

use weft_machine::Time;
use weft_topology::{Fabric, NodeIndex, PortRef};

use crate::SimOptions;
use crate::clock::Clock;
use crate::observers::Observers;

/// The fabric as it is cabled now, the options, the time, and who observes.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) fabric: Fabric,
    pub(crate) options: SimOptions,
    pub(crate) clock: Clock,
    pub(crate) observers: Observers,
}

impl World {
    pub(crate) fn new(fabric: &Fabric, options: SimOptions, seed: u64) -> Self {
        let (clock, observers) = (Clock::new(seed), Observers::new(fabric, &options));
        Self { fabric: fabric.clone(), options, clock, observers }
    }

    /// When something arrives that a program, a host's software too, and its device exchange now.
    pub(crate) fn when_attached(&self) -> Time {
        self.clock.now() + self.options.attach_delay
    }

    /// A line of the trace, if there is one.
    pub(crate) fn trace(&mut self, kind: &str, place: Arguments<'_>, what: Arguments<'_>) {
        if self.observers.trace.is_on() {
            self.observers.trace.line(self.clock.now(), kind, place, what);
        }
    }

    /// A line of the trace about a node.
    pub(crate) fn trace_node(&mut self, kind: &str, node: NodeIndex, what: Arguments<'_>) {
        if self.observers.trace.is_on() {
            let id = &self.fabric.node(node).id;
            self.observers.trace.line(self.clock.now(), kind, format_args!("{id:<24}"), what);
        }
    }

    /// A line of the trace about a port.
    pub(crate) fn trace_port(&mut self, kind: &str, port: PortRef, what: Arguments<'_>) {
        if self.observers.trace.is_on() {
            let place = self.fabric.port_name(port);
            self.observers.trace.line(self.clock.now(), kind, format_args!("{place:<24}"), what);
        }
    }
}
