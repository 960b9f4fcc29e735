//! Links: when they train, when they go, and when the two ends come to know of it.

use weft_device::Input;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::LinkParameters;

use super::{Happening, Simulation};
use crate::cable::{Link, initial_parameters};
use crate::rule::below;

impl Simulation {
    pub(super) fn set_whole(&mut self, port: PortRef, whole: bool) {
        if let Some((cable, _)) = self.cabling.find(port) {
            self.cabling.cables[cable].whole = whole;
            self.update_link(cable);
        }
    }

    /// A device switches the link of one of its ports.
    pub(super) fn set_link(&mut self, port: PortRef, enabled: bool, parameters: LinkParameters) {
        if let Some((cable, side)) = self.cabling.find(port) {
            self.cabling.cables[cable].enabled[side] = enabled;
            self.cabling.cables[cable].parameters[side] = parameters;
            self.update_link(cable);
        }
    }

    /// A device that has just been switched on knows nothing of what it was told before.
    pub(super) fn reset_end(&mut self, cable: usize, node: NodeIndex) {
        for side in 0..2 {
            let end = self.cabling.cables[cable].ends[side];
            if end.node == node {
                self.cabling.cables[cable].enabled[side] = true;
                self.cabling.cables[cable].parameters[side] = initial_parameters(&self.fabric, end);
            }
        }
    }

    /// Begins to train a link that may come up, or takes down one that may not.
    pub(super) fn update_link(&mut self, index: usize) {
        let cable = &self.cabling.cables[index];
        let on = |side: usize| self.device(cable.ends[side].node).is_some() && cable.enabled[side];
        let possible = cable.whole && on(0) && on(1);
        if possible == (cable.link != Link::Down) {
            return;
        }
        let cable = &mut self.cabling.cables[index];
        cable.incarnation += 1;
        cable.link = if possible { Link::Training } else { Link::Down };
        let incarnation = cable.incarnation;
        if possible {
            let training = self.options.training + below(&mut self.random, self.options.training_jitter);
            self.queue.push(self.now + training, Happening::Trained { cable: index, incarnation });
        } else {
            for side in 0..2 {
                let at = self.now + below(&mut self.random, self.options.link_timeout);
                self.queue.push(at, Happening::Noticed { cable: index, side });
            }
        }
    }

    /// The hello has passed in both directions.
    pub(super) fn trained(&mut self, index: usize, incarnation: u64) {
        let cable = &mut self.cabling.cables[index];
        if cable.incarnation != incarnation {
            return;
        }
        cable.link = Link::Up;
        let (ends, parameters) = (cable.ends, cable.parameters);
        self.disturb();
        for side in 0..2 {
            self.trace_link("up", ends[side]);
            let PortRef { node, port } = ends[side];
            self.feed(node, Input::LinkUp { port, peer: parameters[1 - side] });
        }
    }

    /// An end has been without a sign of life for too long. A new link since then has told it already.
    pub(super) fn noticed(&mut self, index: usize, side: usize) {
        let cable = &self.cabling.cables[index];
        if cable.link == Link::Up {
            return;
        }
        let PortRef { node, port } = cable.ends[side];
        if self.device(node).is_some() {
            self.disturb();
            self.trace_link("down", PortRef::new(node, port));
            self.feed(node, Input::LinkDown { port });
        }
    }

    fn trace_link(&mut self, kind: &str, at: PortRef) {
        if self.trace.is_on() {
            let place = self.fabric.port_name(at);
            self.trace.line(self.now, kind, format_args!("{place:<24}"), format_args!("-"));
        }
    }
}
