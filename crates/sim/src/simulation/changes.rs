//! Devices and cables come and go: the nodes are asked, and the simulator's cabling follows.

use weft_machine::Time;
use weft_node::{Input, Request};
use weft_topology::{NodeIndex, PortRef};

use super::Simulation;
use crate::cabling::initial_parameters;
use crate::clock::Rare;
use crate::nodes::{Asked, NOT_THERE};
use crate::{Change, Requests};

impl Simulation {
    /// A device or a cable comes or goes, now. Whether that could be: false when [`SimOptions::recabling`] is off, or when the
    /// device or the cable is there already, or is not there.
    ///
    /// [`SimOptions::recabling`]: crate::SimOptions::recabling
    pub fn change(&mut self, change: Change) -> bool {
        self.world.clock.disturb();
        let done = self.world.options.recabling
            && match change {
                Change::Remove(node) => self.remove(node),
                Change::Add(node) => self.add(node),
                Change::Connect(ends) => self.connect(ends),
                Change::Disconnect(port) => self.disconnect(port),
            };
        let kind = if done { "change" } else { "no change" };
        self.world.trace(kind, format_args!("-"), format_args!("{change:?}"));
        done
    }

    /// A device or a cable comes or goes at some time.
    pub fn change_at(&mut self, at: Time, change: Change) {
        self.world.clock.push_fault(at, Rare::Change(change));
    }

    /// What nodes were asked, and what became of it.
    pub fn requests(&self) -> Requests {
        self.nodes.ledger.counts
    }

    /// Asks the node of a device for something.
    pub(super) fn request(&mut self, node: NodeIndex, asked: Asked, request: Request) {
        if self.node(node).is_some() {
            let id = self.nodes.ask(node, asked);
            self.feed(node, Input::Request { id, request: Box::new(request) });
        }
    }

    fn remove(&mut self, node: NodeIndex) -> bool {
        if !self.nodes.remove(node) {
            return false;
        }
        let cables = self.cabling.of_node(node);
        let ends: Vec<_> = cables.iter().map(|&cable| self.take_out(cable)).collect();
        if self.device(node).is_some() {
            self.request(node, Asked::Removal, Request::RemoveDevice(self.nodes.name_of(node)));
            self.nodes.set_name(node, NOT_THERE);
        }
        self.detach_programs(node);
        for (cable, ends) in cables.into_iter().zip(ends) {
            let inside = self.cabling.cables[cable].inside;
            for side in (0..2).filter(|&side| !inside && ends[side].node != node) {
                self.tell_taken_out(cable, side);
            }
            self.cabling.free(cable);
        }
        true
    }

    fn add(&mut self, node: NodeIndex) -> bool {
        if !self.nodes.add(node) {
            return false;
        }
        if self.node(node).is_some() {
            self.add_device(node);
            self.reattach_programs(node);
        }
        true
    }

    fn disconnect(&mut self, port: PortRef) -> bool {
        let Some((cable, _)) = self.cabling.find(port) else { return false };
        let ends = self.take_out(cable);
        if self.cabling.cables[cable].inside {
            let at = self.nodes.at(ends[0]);
            self.request(ends[0].node, Asked::Wiring, Request::Disconnect(at));
        } else {
            (0..2).for_each(|side| self.tell_taken_out(cable, side));
        }
        self.cabling.free(cable);
        true
    }

    /// A cable is in its ports no more. Its ends do not know yet.
    fn take_out(&mut self, cable: usize) -> [PortRef; 2] {
        self.cabling.take_out(cable, self.are_on(cable), &mut self.world)
    }

    /// Tells the node at one end of a cable that the cable is gone.
    fn tell_taken_out(&mut self, cable: usize, side: usize) {
        let port = self.cabling.cables[cable].ends[side];
        if self.device(port.node).is_none() {
            return;
        }
        let id = self.nodes.ask(port.node, Asked::Wiring);
        let request = Box::new(Request::Disconnect(self.nodes.at(port)));
        self.tell_link(cable, side, Input::Request { id, request });
    }

    fn connect(&mut self, ends: [PortRef; 2]) -> bool {
        let masks =
            ends.map(|end| self.world.fabric.port(end).filter(|port| port.peer.is_none()).map(|p| p.enabled));
        let ([Some(here), Some(there)], [a, b]) = (masks, ends) else { return false };
        let present = |end: PortRef| self.nodes.is_present(end.node) && end.port.0 > 0;
        let Some(rate) = here.common(there).best() else { return false };
        if a == b || !present(a) || !present(b) {
            return false;
        }
        self.world.fabric.reconnect(a, b, rate);
        let inside = self.nodes.home(a.node) == self.nodes.home(b.node);
        let offers = ends.map(|end| {
            let offer = self.node(end.node).and_then(|node| node.link_offer(self.nodes.at(end)));
            offer.unwrap_or_else(|| (true, initial_parameters(&self.world.fabric, end)))
        });
        let cable = self.cabling.put_in(ends, offers, inside);
        self.lay(cable);
        self.update_link(cable);
        true
    }

    /// Tells the nodes at the ends of a cable of it, if they are on.
    fn lay(&mut self, cable: usize) {
        let ends = self.cabling.cables[cable].ends;
        if self.cabling.cables[cable].inside {
            return self.lay_inside(cable);
        }
        ends.into_iter().for_each(|end| self.lead(end));
    }

    fn lead(&mut self, end: PortRef) {
        if self.device(end.node).is_some() {
            // The delay is the simulator's.
            let request = Request::Lead { at: self.nodes.at(end), delay: Time::ZERO };
            self.request(end.node, Asked::Wiring, request);
        }
    }

    fn lay_inside(&mut self, cable: usize) {
        let (ends, whole) = (self.cabling.cables[cable].ends, self.cabling.cables[cable].whole);
        if ends.iter().any(|end| self.device(end.node).is_none()) {
            return;
        }
        let (ats, delay) = (ends.map(|end| self.nodes.at(end)), self.cabling.usual_delay);
        self.request(ends[0].node, Asked::Wiring, Request::Connect { ends: ats, delay });
        if !whole {
            self.request(ends[0].node, Asked::Wiring, Request::Plug { at: ats[0], plugged: false });
        }
    }

    /// Tells a node that has just begun of its cables; those within it come up.
    pub(super) fn lay_cables(&mut self, home: NodeIndex) {
        for member in self.nodes.members(home) {
            for cable in self.cabling.of_node(member) {
                let ends = self.cabling.cables[cable].ends;
                if !self.cabling.cables[cable].inside {
                    let own = ends.into_iter().filter(|end| end.node == member);
                    own.for_each(|end| self.lead(end));
                } else if ends[0].node == member {
                    self.lay_inside(cable);
                }
            }
        }
        self.request(home, Asked::Wiring, Request::Begin);
    }
}
