//! The state that the page shows, of a fabric in virtual time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_control::agent::{CountedPort, LaneCount, PortEnd};
use weft_control::event::PmEvent;
use weft_control::flow::FlowLine;
use weft_control::{HexGuid, Role};
use weft_lab::flows::Units;
use weft_lab::scene::parts::{Plan, PortRates, flow, load, partitions, phases, rate, rates};
use weft_machine::Time;
use weft_page::state::{
    Cable, EVENTS_MAX, Event, Flow, Head, Hop, Hot, Manager, Node, Partition, Summary, Table, VERSION, Vm,
};
use weft_page::{Mark, State};
use weft_sim::{Simulation, SlotState};
use weft_sm::Activity;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Lid, PortState, ServiceLevel};

/// Switches of a way: more are a loop.
const HOPS_MAX: usize = 64;

/// A simulated fabric, as it was shown last.
#[derive(Default)]
pub(super) struct Scene {
    name: String,
    clock: &'static str,
    /// Nanoseconds of machine time in one of fabric time.
    dilation: u32,
    plan: Plan,
    partitions: Table<Partition>,
    /// When ports were read last, and what they had counted.
    counted: Option<(Time, BTreeMap<PortRef, CountedPort>)>,
    rates: BTreeMap<PortRef, PortRates>,
    hot: Table<Hot>,
    events: VecDeque<(u64, Event)>,
    events_total: u64,
    /// Summaries and events of managers that are known.
    told: (usize, usize),
    phase: Option<String>,
}

impl Scene {
    pub(super) fn new(simulation: &Simulation, name: &str, clock: &'static str) -> Self {
        let fabric = simulation.fabric();
        Self {
            name: name.to_owned(),
            clock,
            dilation: simulation.options().device.data.dilation.max(1),
            plan: Plan::of_fabric(fabric),
            partitions: partitions(fabric, simulation.options().sm.routing.engine.partitions.as_ref()),
            ..Self::default()
        }
    }

    /// The state now. `marks`: what has happened since the last one; what managers say joins it.
    pub(super) fn state(
        &mut self,
        simulation: &Simulation,
        at_ms: u64,
        flows: &[FlowLine],
        marks: &mut Vec<Mark>,
    ) -> State {
        self.recable(simulation);
        self.count(simulation);
        let managers = managers(simulation);
        self.hear(simulation, at_ms, marks);
        self.hear_phase(&managers, at_ms, marks);
        for mark in &*marks {
            self.note(mark);
        }
        let (nodes, cables) = (self.plan.nodes.iter().enumerate(), self.plan.cables.iter().enumerate());
        let node = |at: usize, node: &Node| self.node(simulation, at, node.clone(), &managers);
        let nodes: Table<Node> = nodes.map(|(at, plan)| (at.to_string(), node(at, plan))).collect();
        let cable = |at: usize, cable: &Cable| self.cable(simulation, at, cable.clone());
        let cables: Table<Cable> = cables.map(|(at, plan)| (at.to_string(), cable(at, plan))).collect();
        let units = Units { dilation: (self.dilation > 1).then_some(self.dilation) };
        let flows: Table<Flow> = flows
            .iter()
            .map(|line| {
                (line.name.clone(), flow(line, units, self.way(simulation, line).unwrap_or_default()))
            })
            .collect();
        let summary = Summary::of(nodes.values(), cables.values(), flows.values().map(|flow| flow.mbps));
        let head = Head {
            v: VERSION,
            lab: self.name.clone(),
            at_ms,
            clock: self.clock.to_owned(),
            shaped: self.dilation > 1,
            may_act: false,
            role: Role::Viewer.to_string(),
            watched: true,
            summary,
            layout: self.plan.layout.clone(),
        };
        State {
            head,
            nodes,
            cables,
            flows,
            vms: vms(simulation),
            managers,
            partitions: self.partitions.clone(),
            hot: self.hot.clone(),
            events: self.events.iter().map(|(id, event)| (id.to_string(), event.clone())).collect(),
            ..State::default()
        }
    }

    /// Reads what ports have counted, and makes rates of it.
    fn count(&mut self, simulation: &Simulation) {
        let now = simulation.now();
        let mut counted = BTreeMap::new();
        for port in self.plan.ends.iter().flatten() {
            let Some(device) = simulation.device(port.node) else { continue };
            let lanes: Vec<LaneCount> = device
                .lane_totals_at(port.port, now)
                .filter(|lane| lane.rcv_data > 0 || lane.xmit_wait > 0)
                .map(|lane| LaneCount {
                    lane: lane.lane,
                    rcv_words: lane.rcv_data,
                    xmit_wait: lane.xmit_wait,
                })
                .collect();
            let snapshot = device.port_snapshot_at(port.port, now);
            let xmit_wait = snapshot.map_or(0, |port| port.counters.port_xmit_wait);
            let end = PortEnd { node: HexGuid(simulation.fabric().node(port.node).guid), port: port.port };
            counted.insert(*port, CountedPort { end, xmit_wait, lanes });
        }
        let before = self.counted.take();
        if let Some((since, before)) = before.filter(|(since, _)| *since < now) {
            let seconds = now.saturating_sub(since).as_secs_f64() / f64::from(self.dilation);
            let of =
                |(port, counts): (&PortRef, &CountedPort)| (*port, rates(before.get(port), counts, seconds));
            self.rates = counted.iter().map(of).filter(|(_, rates)| *rates != PortRates::default()).collect();
        }
        self.counted = Some((now, counted));
    }

    /// Takes what managers have said since the last time.
    fn hear(&mut self, simulation: &Simulation, at_ms: u64, marks: &mut Vec<Mark>) {
        let (summaries, events) = self.told;
        for (_, summary) in simulation.summaries().since(summaries) {
            let (kind, how) = match summary.complete {
                true => ("subnet-up", "the subnet is up"),
                false => ("sweep-incomplete", "not all is up"),
            };
            let (smps, ports) = (summary.smps.total, summary.ports_active);
            let text = format!("sm: a sweep has ended, {how}: {smps} SMPs, {ports} ports active");
            marks.push(Mark { at_ms, kind: kind.to_owned(), text });
        }
        let fabric = simulation.fabric();
        let host = |guid: &HexGuid| fabric.by_port_guid(guid.0).map(|index| fabric.label(index));
        for (_, event) in simulation.pm_events().since(events) {
            match event {
                PmEvent::HotSpot { port_guid, .. } => {
                    if let Some(host) = host(port_guid) {
                        let begun = Hot { since_ms: at_ms, ..Hot::default() };
                        self.hot.entry(host).or_insert(begun);
                    }
                }
                PmEvent::HotSpotEnded { port_guid, .. } => {
                    if let Some(host) = host(port_guid) {
                        self.hot.remove(&host);
                    }
                }
                PmEvent::Repathed { hot_spot_guid, port_guid, .. } => {
                    let spot = host(hot_spot_guid).and_then(|spot| self.hot.get_mut(&spot));
                    if let Some((spot, slow)) = spot.zip(host(port_guid)) {
                        spot.slow_lane.push(slow);
                    }
                }
                PmEvent::Unpathed { hot_spot_guid, port_guid, .. } => {
                    let spot = host(hot_spot_guid).and_then(|spot| self.hot.get_mut(&spot));
                    if let Some((spot, slow)) = spot.zip(host(port_guid)) {
                        spot.slow_lane.retain(|known| *known != slow);
                    }
                }
                _ => {}
            }
        }
        self.told = (simulation.summaries().count(), simulation.pm_events().count());
    }

    /// Tells of the phases of the first subnet manager's sweeps.
    fn hear_phase(&mut self, managers: &Table<Manager>, at_ms: u64, marks: &mut Vec<Mark>) {
        let phase = managers.get("sm").and_then(|manager| manager.phase.clone());
        if phase != self.phase {
            let begun = phase.iter().map(|phase| format!("sm: sweep phase {phase}"));
            marks.extend(begun.map(|text| Mark { at_ms, kind: "phase-started".to_owned(), text }));
            self.phase = phase;
        }
    }

    /// Draws the cabling again, where it is another.
    fn recable(&mut self, simulation: &Simulation) {
        let cables = simulation.fabric().cables().map(|cable| [cable.a, cable.b]);
        if !cables.eq(self.plan.ends.iter().copied()) {
            self.plan = Plan::of_fabric(simulation.fabric());
            self.counted = None;
            self.rates.clear();
        }
    }

    fn note(&mut self, mark: &Mark) {
        let Mark { at_ms, kind, text } = mark.clone();
        let event = Event { at_ms, kind, node: None, text };
        self.events.push_back((self.events_total, event));
        self.events_total += 1;
        while self.events.len() > EVENTS_MAX {
            self.events.pop_front();
        }
    }

    fn node(&self, simulation: &Simulation, at: usize, mut node: Node, managers: &Table<Manager>) -> Node {
        let device = simulation.device(NodeIndex(at as u32));
        node.state = if device.is_some() { "up" } else { "down" }.to_owned();
        let ports = device.map(|device| device.snapshot().ports).unwrap_or_default();
        let lids: BTreeSet<u16> = ports.iter().map(|port| port.lid.0).filter(|lid| *lid > 0).collect();
        node.lids = lids.into_iter().collect();
        let here = managers.iter().filter(|(_, manager)| manager.node.as_deref() == Some(&node.name));
        node.roles = here.map(|(name, _)| name.clone()).collect();
        node.hot = self.hot.contains_key(&node.name);
        node
    }

    fn cable(&self, simulation: &Simulation, at: usize, mut cable: Cable) -> Cable {
        let ends = self.plan.ends[at];
        let state = |port: PortRef| Some(simulation.device(port.node)?.port_snapshot(port.port)?.state);
        let states = ends.map(state);
        cable.state = match states {
            _ if !simulation.is_link_up(ends[0]) => "down",
            [Some(PortState::Active), Some(PortState::Active)] => "active",
            [Some(PortState::Active | PortState::Armed), Some(PortState::Active | PortState::Armed)] => {
                "armed"
            }
            [Some(_), Some(_)] => "init",
            _ => "down",
        }
        .to_owned();
        if let Some(port) = simulation.fabric().port(ends[0]) {
            (cable.rate, cable.gbps) = rate(&port.link.to_string());
        }
        let rates = |end: usize| self.rates.get(&ends[end]);
        cable.ab = load(rates(0), rates(1));
        cable.ba = load(rates(1), rates(0));
        cable
    }

    /// The cables of a flow, from table to table; `None` where tables lead nowhere.
    fn way(&self, simulation: &Simulation, line: &FlowLine) -> Option<Vec<Hop>> {
        let fabric = simulation.fabric();
        let place = |end: PortEnd| Some(PortRef::new(fabric.by_guid(end.node.0)?, end.port));
        let (from, to) = (place(line.from.at)?, place(line.to.at)?);
        let lid = simulation.device(to.node)?.port_snapshot(to.port)?.lid;
        if lid == Lid(0) {
            return None;
        }
        let told = line.sender.as_ref().and_then(|report| report.service_level);
        let level = told.unwrap_or(ServiceLevel(0));
        let (mut out, mut entry, mut way) = (from, from.port, Vec::new());
        for _ in 0..HOPS_MAX {
            let end = self.plan.at.get(&out)?;
            let lane = simulation.device(out.node)?.lane_of(entry, out.port, level);
            let lane = lane.map(|lane| lane.0).filter(|lane| *lane < 15);
            way.push(Hop(end.cable.to_string(), u8::from(!end.is_a), lane));
            let there = fabric.peer(out)?;
            if there.node == to.node {
                return Some(way);
            }
            let device = simulation.device(there.node).filter(|_| fabric.node(there.node).is_switch())?;
            let port = *device.forwarding_table().get(usize::from(lid.0))?;
            entry = there.port;
            out = PortRef::new(there.node, port);
        }
        None
    }
}

fn managers(simulation: &Simulation) -> Table<Manager> {
    let fabric = simulation.fabric();
    let mut all = Table::new();
    for (number, (at, sm)) in simulation.managers().enumerate() {
        let activity = sm.progress().activity;
        let state = match activity {
            Activity::Standby => "standby",
            Activity::NotActive => "not active",
            Activity::Detached | Activity::OwnPortDown => "down",
            _ => "master",
        };
        let last = simulation.summaries().last().filter(|_| number == 0);
        let phase = match activity {
            Activity::Sweeping(phase) => Some(phase.to_string()),
            _ => None,
        };
        let manager = Manager {
            kind: "sm".to_owned(),
            node: Some(fabric.label(at.node)),
            state: state.to_owned(),
            phase,
            window: Some(sm.window().most),
            in_flight: Some(sm.in_flight()),
            text: last.map_or_else(String::new, |(_, last)| phases(&last.phases)),
        };
        let name = if number == 0 { "sm".to_owned() } else { format!("sm-{}", number + 1) };
        all.insert(name, manager);
    }
    if simulation.pm().is_some() {
        let node = Some(fabric.label(simulation.pm_port().node));
        let (kind, state) = ("pm".to_owned(), "ready".to_owned());
        all.insert("pm".to_owned(), Manager { kind, node, state, ..Manager::default() });
    }
    all
}

fn vms(simulation: &Simulation) -> Table<Vm> {
    let mut all = Table::new();
    for (slot, status) in simulation.slots() {
        let Some(name) = status.vm.filter(|_| status.state == SlotState::Running) else { continue };
        let ports = simulation.device(slot).map(|device| device.snapshot().ports).unwrap_or_default();
        let lid = ports.iter().map(|port| port.lid.0).find(|lid| *lid > 0);
        let host = simulation.fabric().label(slot);
        all.insert(name.clone(), Vm { name, host, lid, state: "running".to_owned(), ..Vm::default() });
    }
    all
}
