//! Configures ports and brings them into service: all are Armed before any is made Active, so that no packet meets
//! a port that would drop it.
//!
//! ```text
//! Initialize ──Set(everything, Armed)──▶ Armed ──Set(Active)──▶ Active
//!                                          └── when all others are Armed too
//! ```
//!
//! The two ends of a cable are read one after the other. Where one says Active and the other Initialize, the link
//! went down in between, so the first is read again before anything is written: no switch would say so of an HCA.
//!
//! Where another subnet manager is in the subnet and machines have come up, a virtual function's port is asked who sits there directly before
//! each write: the other one may have let a machine in since it was found. Where somebody else answers nothing is written.
//!
//! A port that answers with an error is asked what state it is in before it counts as refusing: its first answer
//! may have been lost, or the first packet from its neighbour may have made it Active.

use weft_mgmt::{DirectedPath, SmpRoute};
use weft_wire::{AttributeId, Guid, Lid, Mad, NodeInfo, PortInfo, PortNum, PortState, capability, status};

use crate::held::is_in_service;
use crate::key::{Key, PortAt};
use crate::requests::{Ask, Step};
use crate::settings::Wanted;
use crate::smp::{Get, Set, SmpRequest};
use crate::subnet::{FoundNode, FoundPort, Subnet};
use crate::virtual_lids::has_own_lid;
use crate::{Event, Options, SmpRouting};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Look,
    Arm,
    Activate,
    Done,
}

/// Ports being brought into service.
#[derive(Debug)]
pub(crate) struct Activate {
    pub(crate) subnet: Subnet,
    options: Options,
    /// Directed once a request by LID was not answered.
    smp_routing: SmpRouting,
    sm_lid: Lid,
    stage: Stage,
    ports: Vec<PortAt>,
    next: usize,
    /// Ports to be asked for their state, with the status of their refusal.
    doubtful: Vec<(PortAt, u16)>,
    /// Those of them that have been asked.
    asked: Vec<(PortAt, u16)>,
    /// Whether another manager may let machines in meanwhile.
    is_shared: bool,
    /// Places in the list of ports whose devices have been met.
    known_again: Vec<u32>,
    in_flight: u32,
    /// Cabled ports in service, counted on, for who asks how far it is.
    pub(crate) ports_active: u32,
    pub(crate) refused: u32,
    pub(crate) unanswered: u32,
    pub(crate) events: Vec<Event>,
}

impl Activate {
    pub(crate) fn new(subnet: Subnet, sm_lid: Lid, options: &Options) -> Self {
        let ports_active = subnet.ports_active();
        let mut activate = Self {
            subnet,
            ports_active,
            options: options.clone(),
            smp_routing: options.smp_routing,
            sm_lid,
            stage: Stage::Look,
            ports: Vec::new(),
            next: 0,
            doubtful: Vec::new(),
            asked: Vec::new(),
            is_shared: false,
            known_again: Vec::new(),
            in_flight: 0,
            refused: 0,
            unanswered: 0,
            events: Vec::new(),
        };
        let stale = activate.subnet.cabled_ports().filter(|(_, port, peer)| {
            let there = activate.subnet.port(*peer).map(FoundPort::state);
            port.state() == PortState::Active && there == Some(PortState::Initialize)
        });
        activate.ports = stale.map(|(at, ..)| at).collect();
        activate.is_shared = activate.may_be_shared();
        activate
    }

    /// Ports that lack something that they should have.
    fn lacking(&self) -> Vec<PortAt> {
        let wanted = self.wanted();
        let ends = self.subnet.end_ports().map(|(at, _)| at);
        let cabled = self.subnet.cabled_ports().map(|(at, ..)| at);
        let lacks = |at: &PortAt| wanted.port_info(*at).is_some() && !self.subnet.is_locked(*at);
        let mut ports: Vec<_> = ends.chain(cabled).filter(lacks).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { subnet: &self.subnet, options: &self.options, sm_lid: self.sm_lid }
    }

    /// Goes on to the next stage once everything of this one is answered.
    fn next_stage(&mut self) {
        self.next = 0;
        (self.stage, self.ports) = match self.stage {
            Stage::Look => (Stage::Arm, self.lacking()),
            Stage::Arm => (Stage::Activate, self.armed()),
            Stage::Activate | Stage::Done => (Stage::Done, Vec::new()),
        };
    }

    /// Ports that are Armed and whose neighbours are ready too.
    fn armed(&self) -> Vec<PortAt> {
        let ready = |peer: PortAt| self.subnet.port(peer).is_some_and(is_in_service);
        let armed = |port: &FoundPort| port.state() == PortState::Armed;
        let cabled = self.subnet.cabled_ports().filter(|(_, port, peer)| armed(port) && ready(*peer));
        let zero = self.subnet.switches().filter(|(_, node)| node.port(PortNum::ZERO).is_some_and(armed));
        let zero = zero.map(|(node, _)| PortAt { node, port: PortNum::ZERO });
        let mut ports: Vec<_> = cabled.map(|(at, ..)| at).chain(zero).collect();
        ports.retain(|at| !self.subnet.is_locked(*at));
        ports.sort_unstable();
        ports
    }

    /// Whether another manager may let machines in: it is there, and some function has a LID, so the first sweep of all is over.
    fn may_be_shared(&self) -> bool {
        let own = self.subnet.own;
        let manages = |(at, port): (PortAt, &FoundPort)| {
            let is_sm = port.info.is_some_and(|info| info.capability_mask & capability::IS_SM != 0);
            Some(at) != own && is_sm
        };
        let has_come = |(at, port): (PortAt, &FoundPort)| {
            self.subnet.adapters.is_function(at) && port.info.is_some_and(|info| info.lid.is_unicast())
        };
        self.subnet.end_ports().any(manages) && self.subnet.end_ports().any(has_come)
    }

    /// The next port of this stage: whoever sits there is met first, where that may be somebody else by now.
    fn next_port(&mut self) -> Option<Ask> {
        while let Some(at) = self.ports.get(self.next).copied() {
            // The place in the list is this stage's own, and no answer crosses from one stage to the next.
            let place = self.next as u32;
            self.next += 1;
            if !self.is_shared || !self.subnet.adapters.is_function(at) {
                if let Some(ask) = self.write(place) {
                    return Some(ask);
                }
            } else if let Some(path) = self.subnet.path(at) {
                let (key, route) = (Key::NodeInfo(Some(at)), SmpRoute::Directed(path));
                return Some(Ask { key, route, request: SmpRequest::get(Get::NodeInfo, 0) });
            }
        }
        None
    }

    /// What this stage writes to the port at this place of the list.
    fn write(&self, place: u32) -> Option<Ask> {
        let at = *self.ports.get(place as usize)?;
        let info = match self.stage {
            Stage::Arm => self.wanted().port_info(at),
            Stage::Activate => self.wanted().active(at),
            Stage::Look | Stage::Done => None,
        }?;
        let request = SmpRequest::set(Set::PortInfo, u32::from(at.port.0), &info.encode());
        Some(Ask { key: Key::Write(place), route: self.route(at)?, request })
    }

    /// Whoever sits at a port has answered: it is written to if that is who was found there.
    fn met(&mut self, at: PortAt, answer: &Mad) {
        let Some(place) = self.ports.iter().position(|port| *port == at) else { return };
        let found = NodeInfo::decode(answer.smp_attribute());
        let known = self.subnet.node(at.node).map(|node| (node.info.node_guid, node.info.port_guid));
        if answer.status() == status::OK && known == Some((found.node_guid, found.port_guid)) {
            return self.known_again.push(place as u32);
        }
        self.fell_silent(at, AttributeId::NodeInfo);
    }

    fn fell_silent(&mut self, at: PortAt, attribute: AttributeId) {
        self.unanswered += 1;
        let modifier = if attribute == AttributeId::NodeInfo { 0 } else { u32::from(at.port.0) };
        self.events.push(Event::Unanswered { guid: self.guid(at), attribute, modifier });
    }

    fn route(&self, at: PortAt) -> Option<SmpRoute> {
        route_to(&self.subnet, at, self.smp_routing)
    }

    fn guid(&self, at: PortAt) -> Guid {
        self.subnet.node(at.node).map_or(Guid(0), FoundNode::guid)
    }

    /// What this stage makes of a port that was in `before`.
    fn goal(&self, before: PortState) -> PortState {
        match self.stage {
            Stage::Activate => PortState::Active,
            _ if before == PortState::Initialize => PortState::Armed,
            _ => before,
        }
    }

    /// Whether a state is as good as the goal; a port may be further than it was told to be.
    fn reached(state: PortState, goal: PortState) -> bool {
        state.code() >= goal.code() && state.code() <= PortState::Active.code()
    }

    fn written(&mut self, at: PortAt, answer: &Mad) {
        let info = PortInfo::decode(answer.smp_attribute());
        let goal = self.goal(self.subnet.port(at).map_or(PortState::Down, FoundPort::state));
        if answer.status() != status::OK || !Self::reached(info.port_state, goal) {
            return self.doubtful.push((at, answer.status()));
        }
        self.keep(at, info);
        if let Some(port) = self.subnet.port_mut(at) {
            port.reregister = false;
        }
    }

    /// Takes down what a port has said.
    fn keep(&mut self, at: PortAt, info: PortInfo) {
        let Some(port) = self.subnet.port_mut(at) else { return };
        let active = |port: &FoundPort| u32::from(port.peer.is_some() && port.state() == PortState::Active);
        let before = active(port);
        port.info = Some(info);
        self.ports_active = self.ports_active + active(port) - before;
    }

    fn looked_at(&mut self, at: PortAt, answer: &Mad) {
        if self.stage == Stage::Look {
            if answer.status() == status::OK {
                self.keep(at, PortInfo::decode(answer.smp_attribute()));
            }
            return;
        }
        let Some(place) = self.asked.iter().position(|(asked, _)| *asked == at) else { return };
        let (_, refusal) = self.asked.swap_remove(place);
        let goal = self.goal(self.subnet.port(at).map_or(PortState::Down, FoundPort::state));
        let mut state = PortState::Down;
        if answer.status() == status::OK {
            let info = PortInfo::decode(answer.smp_attribute());
            state = info.port_state;
            self.keep(at, info);
        }
        if !Self::reached(state, goal) {
            self.refused += 1;
            let (guid, port) = (self.guid(at), at.port);
            self.events.push(Event::PortRefused { guid, port, wanted: goal, state, status: refusal });
        }
    }
}

/// By LID where that is wanted and the LID stands; along a directed route otherwise.
pub(crate) fn route_to(subnet: &Subnet, at: PortAt, routing: SmpRouting) -> Option<SmpRoute> {
    let path = subnet.path(at)?;
    let node = subnet.node(at.node)?;
    let end = node.port(if node.is_switch() { PortNum::ZERO } else { at.port })?;
    let lid = end.lid.map(|lids| lids.min).filter(|lid| end.info.is_some_and(|info| info.lid == *lid));
    let is_own = has_own_lid(subnet, PortAt { node: at.node, port: PortNum::ZERO });
    match lid.filter(|_| is_own && routing == SmpRouting::Lid && path != DirectedPath::HERE) {
        Some(lid) => Some(SmpRoute::Lid(lid)),
        None => Some(SmpRoute::Directed(path)),
    }
}

impl Step for Activate {
    fn next(&mut self) -> Option<Ask> {
        loop {
            if let Some((at, refusal)) = self.doubtful.pop() {
                let Some(route) = self.route(at) else { continue };
                self.asked.push((at, refusal));
                self.in_flight += 1;
                let request = SmpRequest::get(Get::PortInfo, u32::from(at.port.0));
                return Some(Ask { key: Key::PortInfo(at), route, request });
            }
            if self.stage == Stage::Look
                && let Some(at) = self.ports.get(self.next).copied()
            {
                self.next += 1;
                let Some(path) = self.subnet.path(at) else { continue };
                self.in_flight += 1;
                let request = SmpRequest::get(Get::PortInfo, u32::from(at.port.0));
                // By LID it may not be reached any more.
                return Some(Ask { key: Key::PortInfo(at), route: SmpRoute::Directed(path), request });
            }
            let met = self.known_again.pop().and_then(|place| self.write(place));
            if let Some(ask) = met.or_else(|| self.next_port()) {
                self.in_flight += 1;
                return Some(ask);
            }
            if self.in_flight > 0 || self.stage == Stage::Done {
                return None;
            }
            self.next_stage();
        }
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match key {
            Key::PortInfo(at) => self.looked_at(at, answer),
            Key::NodeInfo(Some(at)) => self.met(at, answer),
            Key::Write(place) => {
                if let Some(at) = self.ports.get(place as usize).copied() {
                    self.written(at, answer);
                }
            }
            _ => {}
        }
    }

    fn written(&self, key: Key) -> Vec<(Guid, Key)> {
        let Key::Write(place) = key else { return Vec::new() };
        let port = self.ports.get(place as usize).copied();
        port.map(|at| (self.guid(at), Key::PortInfo(at))).into_iter().collect()
    }

    fn failed(&mut self, key: Key) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let (at, attribute) = match key {
            Key::PortInfo(at) => (at, AttributeId::PortInfo),
            Key::NodeInfo(Some(at)) => (at, AttributeId::NodeInfo),
            Key::Write(place) => match self.ports.get(place as usize) {
                Some(at) => (*at, AttributeId::PortInfo),
                None => return,
            },
            _ => return,
        };
        self.asked.retain(|(asked, _)| *asked != at);
        self.fell_silent(at, attribute);
    }

    fn fallback(&mut self, key: Key) -> Option<DirectedPath> {
        self.smp_routing = SmpRouting::Directed;
        match key {
            Key::PortInfo(at) => self.subnet.path(at),
            Key::Write(place) => self.subnet.path(*self.ports.get(place as usize)?),
            _ => None,
        }
    }
}
