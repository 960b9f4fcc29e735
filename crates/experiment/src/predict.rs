//! The verifier's prediction for a plan before anything runs: whether the packets of its flows can wait for each other in a
//! circle, on the lanes that its hosts really use, in each state that the fabric comes to.
//!
//! ```text
//!   steps ──▶ changes ──▶ the fabric then ──▶ engines, as the manager runs them ──▶ tables, levels
//!                                                                                     │
//!   flows ──▶ who asked when, was notified, or never asks ───▶ streams ──────▶ verify_streams ──▶ cycles
//! ```
//!
//! It is about steady states: tables are written and hosts have heard, where the manager tells them. A circle is necessary for a
//! deadlock and not sufficient: its channels have to be full at the same time.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weft_fault::{Fault, Nodes, Presented, Process};
use weft_host::traffic::{Command, Destination, PathSource, Transport, Work};
use weft_machine::Time;
use weft_routing::{
    Cycle, Expectations, LaneMap, Lids, Pair, Routing, Stream, verify_routing, verify_streams,
};
use weft_sm::Signalling;
use weft_topology::{BuildError, Cable, Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum, ServiceLevel, VirtualLane};

use crate::{Action, Plan, Step};

/// What the verifier says of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The states that the fabric comes to, in order of time. The first is the whole fabric.
    pub states: Vec<PredictedState>,
}

/// A state of the fabric, with the tables that a manager writes for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedState {
    /// From when on, on the plan's clock.
    pub at: Time,
    /// What has happened since the state before.
    pub changes: Vec<String>,
    /// The engine that routes it, and its lanes: `lash, 2 lanes`.
    pub routed_by: String,
    /// Why no engine does.
    pub refused: Option<String>,
    /// By lane, the shortest circle of the routing itself: of all pairs, on the levels of path records.
    pub routing: Vec<Cycle>,
    /// How many streams the flows of this state come to: pairs with a level, acknowledgements among them.
    pub streams: usize,
    /// The shortest circles of the flows on the levels from before, where notices change them.
    pub untold: Option<Vec<Cycle>>,
    /// The shortest circles of the flows on the levels that their hosts use.
    pub cycles: Vec<Cycle>,
}

impl Prediction {
    /// The state at a moment.
    pub fn at(&self, time: Time) -> Option<&PredictedState> {
        self.states.iter().rfind(|state| state.at <= time)
    }
}

impl PredictedState {
    /// How many channels wait for each other in the shortest circle of the flows; 0 where there is none. Nothing is said
    /// of a fabric that no engine routes.
    pub fn deadlock(&self) -> Option<usize> {
        let shortest = self.cycles.iter().map(Cycle::len).min().unwrap_or(0);
        self.refused.is_none().then_some(shortest)
    }
}

/// Predicts what becomes of a plan's flows.
pub fn predict(plan: &Plan) -> Prediction {
    // Where machines move, tables have a history; the manager proves each move itself.
    if plan.vms.is_some() {
        return Prediction::default();
    }
    let changes = changes(plan);
    let mut world = World::new(plan);
    let mut states = Vec::new();
    for (nth, change) in changes.iter().enumerate() {
        let until = changes.get(nth + 1).map_or(plan.duration, |next| next.at);
        states.push(world.state(change, until));
    }
    Prediction { states }
}

/// A moment from which on a manager routes another fabric, or another manager the same.
#[derive(Clone, Debug, Default)]
struct Change {
    at: Time,
    texts: Vec<String>,
    /// Cut cables, by the end with the lower GUID.
    cut: BTreeSet<PortRef>,
    dead: BTreeSet<NodeIndex>,
    /// Whether the manager remembers its notices to hosts.
    remembers: bool,
}

/// The cables between some nodes and the others, by the end with the lower GUID.
fn between(fabric: &Fabric, nodes: &Nodes<NodeIndex>) -> Vec<PortRef> {
    let within = |at: PortRef| nodes.0.contains(&at.node);
    let parted = fabric.cables().filter(|cable| within(cable.a) != within(cable.b));
    parted.map(|cable| end(fabric, cable.a)).collect()
}

/// While no manager is there, tables stay as they are, and what happens counts for when there is one again.
fn changes(plan: &Plan) -> Vec<Change> {
    let mut all = vec![Change { remembers: true, ..Change::default() }];
    let mut next = all[0].clone();
    let (mut manager, mut pending) = (true, false);
    let moments = plan.steps.chunk_by(|a, b| a.at == b.at);
    for steps in moments.filter(|steps| steps[0].at <= plan.duration) {
        for action in steps.iter().map(|step| &step.action) {
            let Action::Fault(fault) = action else { continue };
            match fault {
                Fault::LinkDown(port) => drop(next.cut.insert(end(&plan.fabric, *port))),
                Fault::LinkUp(port) => drop(next.cut.remove(&end(&plan.fabric, *port))),
                Fault::Kill(Process::Agent(node)) | Fault::Freeze(Process::Agent(node)) => {
                    next.dead.insert(*node);
                }
                Fault::Restart(Process::Agent(node)) | Fault::Thaw(Process::Agent(node)) => {
                    next.dead.remove(node);
                }
                Fault::Partition(nodes) => next.cut.extend(between(&plan.fabric, nodes)),
                Fault::BadIdentity(Presented { node, .. }) => {
                    next.cut.extend(between(&plan.fabric, &Nodes(vec![*node])));
                }
                Fault::GoodIdentity(node) => {
                    for cable in between(&plan.fabric, &Nodes(vec![*node])) {
                        next.cut.remove(&cable);
                    }
                }
                Fault::Heal(nodes) => {
                    for cable in between(&plan.fabric, nodes) {
                        next.cut.remove(&cable);
                    }
                }
                Fault::Kill(Process::Sm) => (manager, next.remembers) = (false, false),
                Fault::Freeze(Process::Sm) => manager = false,
                Fault::Restart(Process::Sm) | Fault::Thaw(Process::Sm) => manager = true,
                // The manager routes a cable like others as long as its link is up.
                Fault::Impair(_) | Fault::Clear(_) => continue,
                // An experiment has one subnet manager; the others route nothing.
                Fault::Kill(_) | Fault::Restart(_) | Fault::Freeze(_) | Fault::Thaw(_) => continue,
            }
            next.texts.extend(plan.event(action));
            pending |= !matches!(fault, Fault::Kill(Process::Sm) | Fault::Freeze(Process::Sm));
        }
        let here = plan.sm_at;
        let cabled = !next.dead.contains(&here.node) && !next.cut.contains(&end(&plan.fabric, here));
        if pending && manager && cabled {
            next.at = steps[0].at;
            all.push(next.clone());
            (next.texts, next.remembers, pending) = (Vec::new(), true, false);
        }
    }
    all
}

/// The end of a cable that stands for it.
fn end(fabric: &Fabric, port: PortRef) -> PortRef {
    fabric.peer(port).map_or(port, |peer| std::cmp::min_by_key(port, peer, |end| fabric.rank(*end)))
}

/// Somebody who sends.
struct Sender {
    from: Guid,
    to: Vec<Guid>,
    /// Whether path records are asked for.
    asks: bool,
    /// Whether something comes back by the same level: acknowledgements, or a ping-pong's answers.
    answered: bool,
    start: Time,
    stop: Time,
}

/// What a host knows of a path.
#[derive(Clone, Copy)]
struct Known {
    /// The levels that its packets may use, as bits.
    levels: u16,
    /// Whether somebody has put it into the cache, so that the host asks for it no more.
    taught: bool,
}

/// By source and destination port.
type Cache = BTreeMap<(Guid, Guid), Known>;

/// A fabric as its manager has routed it.
struct Routed {
    fabric: Fabric,
    lids: Lids,
    routing: Routing,
    /// By port of a host.
    lid_of: BTreeMap<Guid, Lid>,
}

impl Routed {
    /// The level of a pair's path record. Where one lane does, records say 0.
    fn level(&self, from: Guid, to: Guid) -> Option<u8> {
        let (from, to) = (*self.lid_of.get(&from)?, *self.lid_of.get(&to)?);
        Some(if self.routing.report.lanes > 1 { self.routing.levels.of(from, to).0 } else { 0 })
    }
}

/// What hosts and the manager know, from state to state.
struct World<'a> {
    plan: &'a Plan,
    senders: Vec<Sender>,
    /// Hosts that heed no notices.
    deaf: BTreeSet<Guid>,
    /// The LIDs that the manager gave at the start: it keeps them.
    lids: Vec<(Guid, PortNum, Lid, u8)>,
    cache: Cache,
    before: Option<Routed>,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Self {
        let deaf = plan.setup.iter().filter(|(_, command)| *command == Command::HeedRepath(false));
        let deaf = deaf.map(|(host, _)| port_guid(&plan.fabric, *host)).collect();
        let (senders, cache) = (senders(plan), Cache::new());
        Self { plan, senders, deaf, lids: Vec::new(), cache, before: None }
    }

    /// Predicts for the fabric from one change to the next.
    fn state(&mut self, change: &Change, until: Time) -> PredictedState {
        let told = PredictedState { at: change.at, changes: change.texts.clone(), ..Default::default() };
        let routed = match self.routed(change) {
            Ok(routed) => routed,
            Err(why) => return PredictedState { refused: Some(why), ..told },
        };
        let runs: Vec<usize> = (0..self.senders.len())
            .filter(|nth| self.senders[*nth].start < until && self.senders[*nth].stop > change.at)
            .collect();
        if self.before.is_none() {
            self.teach(&routed);
        }
        // Hosts ask again for paths to a node that has come back.
        self.cache.retain(|(_, to), known| known.taught || routed.lid_of.contains_key(to));
        let tells = self.plan.sm.sa.signalling != Signalling::Off && change.remembers;
        let before = if tells { self.tell(&routed) } else { None };
        self.ask(&routed, &runs);
        let cycles = |streams: &[Stream]| {
            let lanes = lane_map(self.plan, &routed.routing);
            let Routed { fabric, lids, routing, .. } = &routed;
            verify_streams(fabric, lids, &routing.routes, &lanes, streams, data_lanes(self.plan)).cycles
        };
        let streams = self.streams(&routed, &runs, &self.cache);
        let expected = Expectations {
            lanes: data_lanes(self.plan),
            management_nodes: &self.plan.sm.routing.engine.management_nodes,
            ..Expectations::default()
        };
        let verdict = verify_routing(&routed.fabric, &routed.lids, &routed.routing, &expected);
        let state = PredictedState {
            routed_by: routed.routing.report.brief(),
            routing: verdict.cycles,
            streams: streams.len(),
            untold: before.map(|before| cycles(&self.streams(&routed, &runs, &before))),
            cycles: cycles(&streams),
            ..told
        };
        self.before = Some(routed);
        state
    }

    /// Routes what the manager finds of the fabric.
    fn routed(&mut self, change: &Change) -> Result<Routed, String> {
        let whole = &self.plan.fabric;
        let stays = |cable: &Cable| {
            ![cable.a, cable.b].iter().any(|end| change.dead.contains(&end.node) || change.cut.contains(end))
        };
        let said = |error: BuildError| error.to_string();
        let left = whole.part(|_| true, whole.cables().filter(stays)).map_err(said)?;
        let pieces = left.pieces();
        let managed = pieces.of_seat(self.plan.sm_at).unwrap_or_default();
        let fabric = left.piece(&pieces, managed);
        if self.lids.is_empty() {
            let lids =
                Lids::in_guid_order(&fabric, self.plan.sm.routing.lmc).map_err(|error| error.to_string())?;
            let known = lids.iter().map(|of| (fabric.node(of.port.node).guid, of.port.port, of.base, of.lmc));
            self.lids = known.collect();
        }
        let (mut lids, mut lid_of) = (Lids::new(), BTreeMap::new());
        for (node, port, base, lmc) in &self.lids {
            let Some(index) = fabric.by_guid(*node) else { continue };
            let place = PortRef::new(index, *port);
            if !fabric.node(index).is_switch() {
                if fabric.peer(place).is_none() {
                    continue;
                }
                lid_of.extend(fabric.port(place).map(|port| (port.guid, *base)));
            }
            lids.insert(place, *base, *lmc).map_err(|error| error.to_string())?;
        }
        let (sm, lanes) = (&self.plan.sm, traffic_lanes(self.plan));
        let routing = sm.route(&fabric, &lids, lanes).map_err(|error| error.to_string())?;
        Ok(Routed { fabric, lids, routing, lid_of })
    }

    /// Fills the caches as the runner does.
    fn teach(&mut self, routed: &Routed) {
        let slow = |to: &Guid| {
            let knows = self.plan.oracle.as_ref().filter(|oracle| oracle.hot_spots.contains(to));
            knows.map(|oracle| oracle.slow_sl)
        };
        for sender in self.senders.iter().filter(|sender| self.plan.learn_paths && sender.asks) {
            for to in &sender.to {
                if let Some(level) = slow(to).or_else(|| routed.level(sender.from, *to)) {
                    self.cache.insert((sender.from, *to), Known { levels: bit(level), taught: true });
                }
            }
        }
        for given in &self.plan.levels {
            let pair = (port_guid(&self.plan.fabric, given.host), given.to);
            self.cache.insert(pair, Known { levels: bit(given.sl), taught: true });
        }
    }

    /// Notifies hosts of the pairs that have another level than before. A taught path may stay as
    /// it is: its host does not ask again. Returns what all knew before, if any level has changed.
    fn tell(&mut self, routed: &Routed) -> Option<Cache> {
        let before = self.before.as_ref()?;
        let (known_before, mut moved) = (self.cache.clone(), false);
        let hearing = self.cache.iter_mut().filter(|((from, _), _)| !self.deaf.contains(from));
        for ((from, to), known) in hearing {
            let (old, new) = (before.level(*from, *to), routed.level(*from, *to));
            let Some(new) = new.filter(|new| old.is_some_and(|old| old != *new)) else { continue };
            known.levels = bit(new) | if known.taught { known.levels } else { 0 };
            moved = true;
        }
        moved.then_some(known_before)
    }

    /// Those who begin ask for what they do not know.
    fn ask(&mut self, routed: &Routed, runs: &[usize]) {
        for sender in runs.iter().map(|nth| &self.senders[*nth]).filter(|sender| sender.asks) {
            for to in &sender.to {
                let Some(level) = routed.level(sender.from, *to) else { continue };
                let fresh = Known { levels: bit(level), taught: false };
                self.cache.entry((sender.from, *to)).or_insert(fresh);
            }
        }
    }

    /// What the running flows send, by what hosts know, or else by path records.
    fn streams(&self, routed: &Routed, runs: &[usize], cache: &Cache) -> Vec<Stream> {
        let mut streams = Vec::new();
        let slow = self.plan.pm.as_ref().filter(|pm| pm.repath).map_or(0, |pm| bit(pm.slow_sl.0));
        for sender in runs.iter().map(|nth| &self.senders[*nth]) {
            let Some(source) = routed.lid_of.get(&sender.from).copied() else { continue };
            for to in &sender.to {
                let Some(destination) = routed.lid_of.get(to).copied() else { continue };
                let levels = match cache.get(&(sender.from, *to)) {
                    _ if !sender.asks => 1,
                    Some(known) => known.levels,
                    None => routed.level(sender.from, *to).map_or(1, bit),
                };
                let slow = if sender.asks && !self.deaf.contains(&sender.from) { slow } else { 0 };
                let forth = Pair { source, destination };
                let back = Pair { source: destination, destination: source };
                for level in (0..16).filter(|level| (levels | slow) & bit(*level) != 0).map(ServiceLevel) {
                    streams.push(Stream { pair: forth, level });
                    if sender.answered {
                        streams.push(Stream { pair: back, level });
                    }
                }
            }
        }
        streams.sort_unstable();
        streams.dedup();
        streams
    }
}

fn bit(level: u8) -> u16 {
    1 << (level & 15)
}

/// Senders, receivers and times.
fn senders(plan: &Plan) -> Vec<Sender> {
    let sender = |step: &Step| {
        let Action::Host(host, Command::Open(spec)) = &step.action else { return None };
        let flow = plan.flows.iter().find(|flow| flow.flow == spec.flow)?;
        let from = port_guid(&plan.fabric, *host);
        let to = match &spec.to {
            Destination::One(to) => vec![*to],
            // Where there are machines nothing is predicted.
            Destination::Named(_) => Vec::new(),
            Destination::Mix { hot_spot, others, .. } => {
                let all: BTreeSet<Guid> = others.iter().chain(hot_spot).copied().collect();
                all.into_iter().filter(|to| *to != from).collect()
            }
        };
        let answered = spec.transport == Transport::ReliableConnection || spec.work == Work::PingPong;
        let asks = spec.paths == PathSource::PathRecord;
        Some(Sender { from, to, asks, answered, start: flow.start, stop: flow.stop })
    };
    plan.steps.iter().filter_map(sender).collect()
}

fn port_guid(fabric: &Fabric, host: NodeIndex) -> Guid {
    let port = fabric.node(host).attach_port().and_then(|port| fabric.port(PortRef::new(host, port)));
    port.map_or(Guid(0), |port| port.guid)
}

/// How many data lanes every link has.
fn data_lanes(plan: &Plan) -> u8 {
    plan.device.vl_cap.lanes().min(plan.sm.lanes.max_op_vls.lanes())
}

/// How many of them are there for traffic.
fn traffic_lanes(plan: &Plan) -> u8 {
    plan.management.map_or(data_lanes(plan), |management| management.lane)
}

/// The lane of every level, as the manager writes them: the routing's where it needs several lanes.
fn lane_map(plan: &Plan, routing: &Routing) -> LaneMap {
    match routing.report.lanes > 1 {
        true => routing.lanes.clone(),
        false => LaneMap { everywhere: plan.sm.lanes.sl2vl.map(VirtualLane), ..LaneMap::default() },
    }
}
