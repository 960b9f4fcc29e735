//! Devices and cables come and go: the nodes are asked, and the simulator's cabling follows.

use weft_machine::Time;
use weft_node::{Input, Request};
use weft_topology::{NodeIndex, PortRef};

use super::Simulation;
use super::slots::NOT_THERE;
use crate::cable::{Link, initial_parameters};
use crate::event::Rare;
use crate::ledger::Asked;
use crate::{Change, Requests};

impl Simulation {
    /// A device or a cable comes or goes, now. Whether that could be: false when [`SimOptions::recabling`] is off, or when the
    /// device or the cable is there already, or is not there.
    ///
    /// [`SimOptions::recabling`]: crate::SimOptions::recabling
    pub fn change(&mut self, change: Change) -> bool {
        self.disturb();
        let done = self.options.recabling
            && match change {
                Change::Remove(node) => self.remove(node),
                Change::Add(node) => self.add(node),
                Change::Connect(ends) => self.connect(ends),
                Change::Disconnect(port) => self.disconnect(port),
            };
        if self.trace.is_on() {
            let kind = if done { "change" } else { "no change" };
            self.trace.line(self.now, kind, format_args!("-"), format_args!("{change:?}"));
        }
        done
    }

    /// A device or a cable comes or goes at some time.
    pub fn change_at(&mut self, at: Time, change: Change) {
        self.faults_pending += 1;
        self.push_rare(at.max(self.now), Rare::Change(change));
    }

    /// What nodes were asked, and what became of it.
    pub fn requests(&self) -> Requests {
        self.ledger.counts
    }

    /// Asks the node of a device for something.
    pub(super) fn request(&mut self, node: NodeIndex, asked: Asked, request: Request) {
        let home = self.home(node);
        if self.slots[home.index()].node.is_some() {
            let id = self.ledger.ask(home, asked);
            self.feed(node, Input::Request { id, request: Box::new(request) });
        }
    }

    fn remove(&mut self, node: NodeIndex) -> bool {
        let Some(tenant) = self.tenants.get_mut(node.index()).filter(|tenant| tenant.present) else {
            return false;
        };
        tenant.present = false;
        let cables = self.cabling.of_node(node);
        let ends: Vec<_> = cables.iter().map(|&cable| self.take_out(cable)).collect();
        if let Some(device) = self.device_slots.get(node.index()).map(|place| place.device)
            && self.device(node).is_some()
        {
            self.request(node, Asked::Removal, Request::RemoveDevice(device));
            self.device_slots[node.index()].device = NOT_THERE;
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
        let Some(tenant) = self.tenants.get_mut(node.index()).filter(|tenant| !tenant.present) else {
            return false;
        };
        tenant.present = true;
        tenant.incarnation += 1;
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
            let at = self.at(ends[0]);
            self.request(ends[0].node, Asked::Wiring, Request::Disconnect(at));
        } else {
            (0..2).for_each(|side| self.tell_taken_out(cable, side));
        }
        self.cabling.free(cable);
        true
    }

    /// A cable is in its ports no more, and what was under way on it is gone. Its ends do not know yet.
    fn take_out(&mut self, index: usize) -> [PortRef; 2] {
        let ends = self.cabling.cables[index].ends;
        let was_up = self.cabling.cables[index].link == Link::Up;
        let on = ends.map(|end| self.device(end.node).is_some());
        let now = self.now;
        let cable = &mut self.cabling.cables[index];
        cable.link = Link::Down;
        cable.whole = false;
        cable.incarnation += 1;
        for side in (0..2).filter(|&side| was_up && on[side]) {
            cable.lost[side] = Some(now);
        }
        for way in [2 * index, 2 * index + 1] {
            self.statistics.cut_off += self.cabling.cut(way, &mut self.flights);
        }
        self.cabling.take_out(index);
        self.fabric.disconnect(ends[0]);
        ends
    }

    /// Tells the node at one end of a cable that the cable is gone.
    fn tell_taken_out(&mut self, cable: usize, side: usize) {
        let port = self.cabling.cables[cable].ends[side];
        if self.device(port.node).is_none() {
            return;
        }
        let id = self.ledger.ask(self.home(port.node), Asked::Wiring);
        let request = Box::new(Request::Disconnect(self.at(port)));
        self.tell_link(cable, side, Input::Request { id, request });
    }

    fn connect(&mut self, ends: [PortRef; 2]) -> bool {
        let masks =
            ends.map(|end| self.fabric.port(end).filter(|port| port.peer.is_none()).map(|p| p.enabled));
        let ([Some(here), Some(there)], [a, b]) = (masks, ends) else { return false };
        let present = |end: PortRef| self.tenants[end.node.index()].present && end.port.0 > 0;
        let Some(rate) = here.common(there).best() else { return false };
        if a == b || !present(a) || !present(b) {
            return false;
        }
        self.fabric.reconnect(a, b, rate);
        let inside = self.home(a.node) == self.home(b.node);
        let offers = ends.map(|end| {
            let offer = self.node(end.node).and_then(|node| node.link_offer(self.at(end)));
            offer.unwrap_or_else(|| (true, initial_parameters(&self.fabric, end)))
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
            let request = Request::Lead { at: self.at(end), delay: Time::ZERO };
            self.request(end.node, Asked::Wiring, request);
        }
    }

    fn lay_inside(&mut self, cable: usize) {
        let (ends, whole) = (self.cabling.cables[cable].ends, self.cabling.cables[cable].whole);
        if ends.iter().any(|end| self.device(end.node).is_none()) {
            return;
        }
        let (ats, delay) = (ends.map(|end| self.at(end)), self.cabling.usual_delay);
        self.request(ends[0].node, Asked::Wiring, Request::Connect { ends: ats, delay });
        if !whole {
            self.request(ends[0].node, Asked::Wiring, Request::Plug { at: ats[0], plugged: false });
        }
    }

    /// Tells a node that has just begun of its cables; those within it come up.
    pub(super) fn lay_cables(&mut self, home: NodeIndex) {
        for member in self.members(home) {
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
