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
//! If other managers may be in charge unheard, a machine's port is looked at directly before (`guard.rs`).
//!
//! A port that answers with an error is asked what state it is in before it counts as refusing: its first answer
//! may have been lost, or the first packet from its neighbour may have made it Active.

use weft_mgmt::{DirectedPath, SmpRoute};
use weft_wire::{AttributeId, Guid, Lid, Mad, PortInfo, PortNum, PortState, status};

use super::settings::Wanted;
use crate::knowledge::{FoundPort, Key, PortAt, Subnet, is_in_service};
use crate::lids::has_own_lid;
use crate::requests::{Ask, Step};
use crate::requests::{Get, Guard, Seen, Set, SmpRequest};
use crate::{Event, Options, SmpRouting};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Look,
    Arm,
    Activate,
    Done,
}

/// Ports being brought into service.
#[derive(Debug, Default)]
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
    /// Looks before writes, and the writes that may go, by their places in the list.
    guard: Guard,
    cleared: Vec<u32>,
    /// Ports behind which somebody else was.
    pub(crate) others: u32,
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
            guard: Guard::of(&subnet, sm_lid),
            subnet,
            ports_active,
            options: options.clone(),
            smp_routing: options.smps.smp_routing,
            sm_lid,
            ..Self::default()
        };
        let stale = activate.subnet.cabled_ports().filter(|(_, port, peer)| {
            let there = activate.subnet.port(*peer).map(FoundPort::state);
            port.state() == PortState::Active && there == Some(PortState::Initialize)
        });
        activate.ports = stale.map(|(at, ..)| at).collect();
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

    /// What this stage writes to a port; `None`: it has all that already.
    fn write(&self, at: PortAt) -> Option<PortInfo> {
        match self.stage {
            Stage::Arm => self.wanted().port_info(at),
            Stage::Activate => self.wanted().active(at),
            Stage::Look | Stage::Done => None,
        }
    }

    /// The next write that may go, with its place in the list. Those that a look comes before are put off.
    fn next_write(&mut self) -> Option<(u32, PortAt, PortInfo)> {
        while let Some(place) = self.cleared.pop() {
            let Some(at) = self.ports.get(place as usize).copied() else { continue };
            if let Some(info) = self.write(at) {
                return Some((place, at, info));
            }
        }
        while let Some(at) = self.ports.get(self.next).copied() {
            let place = self.next as u32;
            self.next += 1;
            let Some(info) = self.write(at) else { continue };
            if !self.guard.guards(&self.subnet, at) {
                return Some((place, at, info));
            }
            self.guard.begin(at, place);
        }
        None
    }

    /// A look before a write has had an answer, or none.
    fn seen(&mut self, key: Key, answer: Option<&Mad>) {
        let (Key::NodeInfo(Some(at)) | Key::PortInfo(at)) = key else { return };
        match self.guard.take(&self.subnet, key, answer) {
            Seen::Nothing => {}
            Seen::Same(info, places) => {
                self.keep(at, info);
                self.cleared.extend(places);
            }
            Seen::Other(_) => self.others += 1,
            Seen::Silent(_) => self.is_silent(at),
        }
    }

    fn is_silent(&mut self, at: PortAt) {
        self.unanswered += 1;
        let (guid, modifier) = (self.subnet.guid(at.node), u32::from(at.port.0));
        self.events.push(Event::unanswered(guid, AttributeId::PortInfo, modifier));
    }

    fn route(&self, at: PortAt) -> Option<SmpRoute> {
        route_to(&self.subnet, at, self.smp_routing)
    }

    /// What this stage makes of a port that was in `before`.
    fn goal(&self, before: PortState) -> PortState {
        match self.stage {
            Stage::Activate => PortState::Active,
            _ if before == PortState::Initialize => PortState::Armed,
            _ => before,
        }
    }

    /// Whether a state is as good as the goal; a port may be further than it was set to be.
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
            let (guid, port) = (self.subnet.guid(at.node), at.port);
            self.events.push(Event::PortRefused {
                guid: guid.into(),
                port,
                wanted: goal.into(),
                state: state.into(),
                status: refusal,
            });
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
            if let Some((place, at, info)) = self.next_write() {
                let Some(route) = self.route(at) else { continue };
                self.in_flight += 1;
                let modifier = u32::from(at.port.0);
                let request = SmpRequest::set(Set::PortInfo, modifier, &info.encode());
                // The place in the list is this stage's own, and no answer crosses from one stage to the next.
                return Some(Ask { key: Key::Write(place), route, request });
            }
            if let Some((key, at, request)) = self.guard.next() {
                let Some(route) = self.route(at) else {
                    self.seen(key, None);
                    continue;
                };
                self.in_flight += 1;
                return Some(Ask { key, route, request });
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
            key if self.guard.asks(key) => self.seen(key, Some(answer)),
            Key::PortInfo(at) => self.looked_at(at, answer),
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
        port.map(|at| (self.subnet.guid(at.node), Key::PortInfo(at))).into_iter().collect()
    }

    fn failed(&mut self, key: Key) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.guard.asks(key) {
            return self.seen(key, None);
        }
        let at = match key {
            Key::PortInfo(at) => at,
            Key::Write(place) => match self.ports.get(place as usize) {
                Some(at) => *at,
                None => return,
            },
            _ => return,
        };
        self.asked.retain(|(asked, _)| *asked != at);
        self.is_silent(at);
    }

    fn fallback(&mut self, key: Key) -> Option<DirectedPath> {
        self.smp_routing = SmpRouting::Directed;
        match key {
            Key::PortInfo(at) | Key::NodeInfo(Some(at)) => self.subnet.path(at),
            Key::Write(place) => self.subnet.path(*self.ports.get(place as usize)?),
            _ => None,
        }
    }
}
