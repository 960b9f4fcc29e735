//! The manager, the fabric, and what is on its way between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Machine, Time};
use weft_sm::{Activity, Event, GuidToLid, Input, Options, Output, SubnetManager, Summary};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

use super::{Fake, ROUND_TRIP};

pub type Lie = Box<dyn FnMut(&mut AddressedMad)>;
pub type Watch = Box<dyn FnMut(Time, &AddressedMad)>;

/// The manager, the fabric, and what is on its way between them.
pub struct World {
    pub fake: Fake,
    pub sm: SubnetManager,
    pub now: Time,
    pub events: Vec<(Time, Event)>,
    pub persisted: Option<GuidToLid>,
    pub sent: u64,
    /// Changes answers on their way.
    pub lie: Option<Lie>,
    /// Sees requests when they are sent.
    pub watch: Option<Watch>,
    /// What subnet administration has sent, the oldest first.
    pub administration: VecDeque<AddressedMad>,
    /// What will arrive, by time and order.
    arriving: BTreeMap<(Time, u64), AddressedMad>,
    sequence: u64,
}

impl World {
    pub fn new(fake: Fake, options: Options, guid2lid: &GuidToLid) -> Self {
        let mut world = Self {
            sm: SubnetManager::new(options, guid2lid),
            fake,
            now: Time::ZERO,
            events: Vec::new(),
            persisted: None,
            sent: 0,
            lie: None,
            watch: None,
            administration: VecDeque::new(),
            arriving: BTreeMap::new(),
            sequence: 0,
        };
        world.attach();
        world
    }

    pub fn attach(&mut self) {
        let own = self.fake.own;
        let node = self.fake.fabric.node(own.node);
        let port_guid = node.port(own.port).expect("a port").guid;
        let input = Input::Attached { node_guid: node.guid, port_guid, port: own.port };
        self.sm.handle_input(self.now, input);
        self.drain();
    }

    /// Puts another manager in the first one's place.
    pub fn restart_sm(&mut self, options: Options, guid2lid: &GuidToLid) {
        self.sm = SubnetManager::new(options, guid2lid);
        self.arriving.clear();
        self.events.clear();
        self.fake.sets.clear();
        self.fake.regulated = (0, 0);
        self.attach();
    }

    pub fn deliver(&mut self, delay: Time, mad: AddressedMad) {
        self.sequence += 1;
        self.arriving.insert((self.now + delay, self.sequence), mad);
    }

    pub fn traps(&mut self, ports: &[PortRef]) {
        for port in ports {
            if let Some(trap) = self.fake.trap(*port) {
                self.deliver(ROUND_TRIP, trap);
            }
        }
    }

    pub fn command(&mut self, input: Input) {
        self.sm.handle_input(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.sm.poll_output() {
            match output {
                Output::Send(mad) if mad.mad.class() == MgmtClass::SubnAdm => {
                    self.administration.push_back(mad);
                }
                Output::Send(mad) => {
                    self.sent += 1;
                    if let Some(watch) = &mut self.watch {
                        watch(self.now, &mad);
                    }
                    if let Some(mut answer) = self.fake.answer(&mad) {
                        if let Some(lie) = &mut self.lie {
                            lie(&mut answer);
                        }
                        self.deliver(ROUND_TRIP, answer);
                    }
                }
                Output::Event(event) => self.events.push((self.now, event)),
                Output::Persist(known) => self.persisted = Some(known),
            }
        }
    }

    /// Goes on to the next thing that happens; false when that is later than `until`.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.arriving.keys().next().map(|(at, _)| *at);
        let Some(next) = [arrival, self.sm.poll_timeout()].into_iter().flatten().min() else { return false };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        match arrival {
            Some(at) if at <= self.now => {
                let (_, mad) = self.arriving.pop_first().expect("just seen");
                self.sm.handle_input(self.now, Input::Receive(mad));
            }
            _ => self.sm.handle_timeout(self.now),
        }
        self.drain();
        true
    }

    pub fn run_for(&mut self, span: Time) {
        let until = self.now + span;
        let mut steps = 0u64;
        while self.step(until) {
            steps += 1;
            assert!(steps < 10_000_000, "no end in sight");
        }
        self.now = until;
    }

    /// Goes on until the manager is at this; panics when that never comes.
    pub fn run_until(&mut self, wanted: Activity) {
        while self.sm.progress().activity != wanted {
            assert!(self.step(Time::from_secs(3600)), "never at {wanted:?}");
        }
    }

    pub fn summaries(&self) -> Vec<&Summary> {
        self.events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => Some(summary),
                _ => None,
            })
            .collect()
    }

    pub fn last_summary(&self) -> &Summary {
        self.summaries().last().copied().unwrap_or_else(|| panic!("never up: {:#?}", self.events))
    }

    /// All cabled ports Active, every end port has one LID of its own, and every pair that is connected reaches.
    pub fn check(&self) {
        self.check_with("");
    }

    pub fn check_with(&self, what: &str) {
        let fabric = &self.fake.fabric;
        let mut lids = BTreeMap::new();
        let mut ends = Vec::new();
        let alive = self.reachable();
        for (index, node) in fabric.iter().filter(|(index, _)| alive.contains(index)) {
            for (number, _) in node.end_ports() {
                let end = PortRef::new(index, number);
                if !node.is_switch() && self.fake.far_end(end).is_none() {
                    continue;
                }
                let lid = self.fake.devices[index.index()].ports[usize::from(number.0)].lid;
                assert!(lid.is_unicast(), "{what}: {} has no LID", fabric.port_name(end));
                assert_eq!(lids.insert(lid, end), None, "{what}: LID {lid} twice");
                ends.push((end, lid));
            }
            for (number, _) in node.external_ports() {
                let here = PortRef::new(index, number);
                if self.fake.far_end(here).is_some() {
                    let state = self.fake.devices[index.index()].ports[usize::from(number.0)].port_state;
                    assert_eq!(state, PortState::Active, "{what}: {}", fabric.port_name(here));
                }
            }
        }
        for (from, _) in &ends {
            for (to, lid) in &ends {
                let arrived = self.fake.walk_lid(*from, *lid);
                assert_eq!(
                    arrived.map(|at| at.node),
                    Some(to.node),
                    "{what}: {} to {}",
                    fabric.port_name(*from),
                    fabric.port_name(*to)
                );
            }
        }
    }

    /// What has a physical way to the manager.
    pub fn reachable(&self) -> BTreeSet<NodeIndex> {
        let mut seen = BTreeSet::from([self.fake.own.node]);
        let mut todo = vec![self.fake.own.node];
        while let Some(index) = todo.pop() {
            if index != self.fake.own.node && !self.fake.fabric.node(index).is_switch() {
                continue;
            }
            for port in self.fake.neighbours(index) {
                if seen.insert(port.node) {
                    todo.push(port.node);
                }
            }
        }
        seen
    }
}
