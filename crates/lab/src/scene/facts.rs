//! The gathered facts of a laboratory, and the state that they make.

use std::collections::{BTreeMap, BTreeSet};

use weft_control::Role;
use weft_control::agent::{PortEnd, PortState, PortStatus};
use weft_control::flow::{FlowLine, FlowState};
use weft_control::hub::{LabStatus, ProcessLine, ProcessState};
use weft_page::State;
use weft_page::state::{Cable, Flow, Head, Hop, Node, Number, Summary, VERSION, thousandths};
use weft_topology::PortRef;

use crate::flows::Units;
use crate::scene::act::Acknowledged;
use crate::scene::alarms::Alarms;
use crate::scene::counters::{Counters, is_management, load};
use crate::scene::events::Events;
use crate::scene::paths::Wanted;
use crate::scene::plan::{Plan, rate};
use crate::scene::slow::Slow;
use crate::view::Lab;

/// Everything that was gathered.
pub(super) struct Facts {
    pub(super) lab: Lab,
    pub(super) plan: Plan,
    pub(super) processes: BTreeMap<String, ProcessLine>,
    pub(super) is_starting: bool,
    /// By the port's place in the cabling.
    pub(super) ports: BTreeMap<PortRef, PortStatus>,
    pub(super) counters: Counters,
    pub(super) flows: Vec<FlowLine>,
    /// Flows that are not the hub's.
    pub(super) guests: Vec<FlowLine>,
    /// The flows whose ways are looked for.
    pub(super) followed: Vec<Wanted>,
    pub(super) slow: Slow,
    pub(super) events: Events,
    pub(super) alarms: Alarms,
    pub(super) role: Role,
    pub(super) acknowledged: Acknowledged,
}

impl Facts {
    pub(super) fn of(lab: Lab, role: Role, acknowledged: Acknowledged) -> Self {
        Self {
            plan: Plan::of(&lab),
            lab,
            processes: BTreeMap::new(),
            is_starting: false,
            ports: BTreeMap::new(),
            counters: Counters::default(),
            flows: Vec::new(),
            guests: Vec::new(),
            followed: Vec::new(),
            slow: Slow::default(),
            events: Events::default(),
            alarms: Alarms::default(),
            role,
            acknowledged,
        }
    }

    /// The place of a port that an agent tells of. A slot of virtual machines has the place that it began with.
    pub(super) fn place(&self, status: &PortStatus) -> Option<PortRef> {
        let node = status.slot.map_or(status.end.node, |slot| slot.slot);
        Some(PortRef::new(self.lab.fabric.by_guid(node.0)?, status.end.port))
    }

    /// Whether it is another one than before.
    pub(super) fn take_status(&mut self, status: LabStatus) -> bool {
        let processes = status.processes.into_iter().map(|line| (line.name.clone(), line)).collect();
        let before = std::mem::replace(&mut self.processes, processes);
        let was_starting = std::mem::replace(&mut self.is_starting, status.starting);
        before != self.processes || was_starting != self.is_starting
    }

    pub(super) fn take_ports(&mut self, ports: impl IntoIterator<Item = PortStatus>) {
        for port in ports {
            if let Some(place) = self.place(&port) {
                self.ports.insert(place, port);
            }
        }
    }

    /// All flows, whoever began them.
    pub(super) fn all_flows(&self) -> impl Iterator<Item = &FlowLine> {
        self.flows.iter().chain(&self.guests)
    }

    /// The agents that run, in order of name.
    pub(super) fn live_agents(&self) -> Vec<String> {
        let lives =
            |name: &&String| self.processes.get(*name).is_some_and(|line| line.state == ProcessState::Ready);
        self.lab.record.agents.iter().map(|agent| &agent.name).filter(lives).cloned().collect()
    }

    /// The state that all this is.
    pub(super) fn state(&mut self, now_ms: u64, watched: bool) -> State {
        let frozen = self.slow.frozen.clone();
        let nodes: Vec<Node> = (0..self.plan.nodes.len()).map(|at| self.node(at, &frozen)).collect();
        let cables: Vec<Cable> = (0..self.plan.cables.len()).map(|at| self.cable(at, &nodes)).collect();
        let flows: BTreeMap<String, Flow> =
            self.all_flows().map(|line| (line.name.clone(), self.flow(line))).collect();
        let summary = Summary::of(nodes.iter(), cables.iter(), flows.values().map(|flow| flow.mbps));
        let head = Head {
            v: VERSION,
            lab: self.lab.folder.name().to_owned(),
            at_ms: now_ms,
            clock: "wall".to_owned(),
            shaped: self.counters.dilation > 1,
            may_act: self.role == Role::Operator,
            role: self.role.to_string(),
            watched,
            summary,
            layout: self.plan.layout.clone(),
        };
        let table = |id: usize| id.to_string();
        let mut state = State {
            head,
            nodes: nodes.into_iter().enumerate().map(|(id, node)| (table(id), node)).collect(),
            cables: cables.into_iter().enumerate().map(|(id, cable)| (table(id), cable)).collect(),
            flows,
            vms: self.slow.vms.clone(),
            faults: self.slow.faults.clone(),
            managers: self.slow.managers.clone(),
            partitions: self.slow.partitions.clone(),
            alarms: BTreeMap::new(),
            hot: self.slow.hot.clone(),
            events: self.events.table(),
        };
        state.alarms = self.alarms.of(&state, &self.processes, now_ms, &self.acknowledged);
        state
    }

    fn node(&self, at: usize, frozen: &BTreeSet<String>) -> Node {
        let mut node = self.plan.nodes[at].clone();
        let process = self.processes.get(&node.process);
        node.pid =
            process.and_then(|line| line.pid).filter(|_| process.is_some_and(|line| line.state.is_alive()));
        node.state = match process.map(|line| line.state) {
            _ if frozen.contains(&node.name) => "frozen",
            None | Some(ProcessState::Expected | ProcessState::Starting) => "starting",
            Some(ProcessState::Ready) => "up",
            Some(ProcessState::Stopping | ProcessState::Ended) => "down",
            Some(ProcessState::Silent | ProcessState::OtherProtocol) => "down",
        }
        .to_owned();
        let index = weft_topology::NodeIndex(at as u32);
        let from = PortRef::new(index, weft_wire::PortNum(0));
        let to = PortRef::new(index, weft_wire::PortNum(u8::MAX));
        let lids: BTreeSet<u16> = self.ports.range(from..=to).map(|(_, port)| port.lid.0).collect();
        node.lids = lids.into_iter().filter(|lid| *lid > 0).collect();
        let managers = self.slow.managers.iter();
        let here = managers.filter(|(_, manager)| manager.node.as_deref() == Some(&node.name));
        node.roles = here.map(|(name, _)| name.clone()).collect();
        node.hot = self.slow.hot.contains_key(&node.name);
        node
    }

    fn cable(&self, at: usize, nodes: &[Node]) -> Cable {
        let mut cable = self.plan.cables[at].clone();
        let ends = self.plan.ends[at];
        let is_dead = ends.iter().any(|end| nodes[end.node.index()].state == "down");
        let [a, b] = ends.map(|end| self.ports.get(&end));
        cable.state = match (a, b) {
            _ if is_dead => "down",
            (Some(a), Some(b)) if !(a.link_up && b.link_up) => "down",
            (Some(a), Some(b)) => state_of(a.state.min(b.state)),
            (Some(one), None) | (None, Some(one)) if !one.link_up => "down",
            _ => "init",
        }
        .to_owned();
        let shown = [a, b].into_iter().flatten().find(|port| !port.rate.is_empty());
        if let Some(port) = shown {
            (cable.rate, cable.gbps) = rate(&port.rate);
        }
        cable.planned =
            [a.zip(Some(ends[1])), b.zip(Some(ends[0]))].into_iter().flatten().find_map(|(port, peer)| {
                let Some(told) = port.peer else { return Some("missing".to_owned()) };
                // A slot of virtual machines has the name of what sits in it.
                let there = PortRef::new(self.lab.fabric.by_guid(told.node.0)?, told.port);
                (there != peer).then(|| "swapped".to_owned())
            });
        if cable.planned.is_none() && a.zip(b).is_some_and(|(a, b)| is_slow(a, b)) {
            cable.planned = Some("slow".to_owned());
        }
        cable.faults = self.slow.of_cables.get(&at).cloned().unwrap_or_default();
        let rates = |end: usize| self.counters.rates.get(&self.end(ends[end])?);
        // Where no flow runs, the packets of sweeps are no load.
        let at_rest = self.all_flows().next().is_none();
        let load = |from, to| load(rates(from), rates(to)).filter(|load| !(at_rest && is_management(load)));
        cable.ab = load(0, 1);
        cable.ba = load(1, 0);
        cable
    }

    /// How the agent of a port calls it.
    fn end(&self, port: PortRef) -> Option<PortEnd> {
        Some(self.ports.get(&port)?.end)
    }

    fn flow(&self, line: &FlowLine) -> Flow {
        let path = self.slow.paths.get(&line.name).cloned().unwrap_or_default();
        flow(line, Units { dilation: self.lab.record.dilation }, path)
    }
}

/// A flow as the page shows it.
pub fn flow(line: &FlowLine, units: Units, path: Vec<Hop>) -> Flow {
    let (sender, receiver) = (line.sender.as_ref(), line.receiver.as_ref());
    let latencies = [sender, receiver].into_iter().flatten().map(|report| report.latency);
    let latency = latencies.into_iter().find(|latency| latency.count > 0);
    let micros = |ns: u64| (units.micros(ns) * 10.0).round() / 10.0;
    Flow {
        name: line.name.clone(),
        set: line.set.clone(),
        from: line.from.name.clone(),
        to: line.to.name.clone(),
        state: line.state.name().to_owned(),
        mbps: match line.state {
            FlowState::Running => thousandths(units.megabytes(line)),
            _ => 0.0,
        },
        delivered: Number(receiver.map_or(0, |report| report.bytes)),
        repeated: Number(sender.map_or(0, |report| report.repeated)),
        sl: sender.and_then(|report| report.service_level).map(|level| level.0),
        vl: path.first().and_then(|hop| hop.2),
        mean_us: latency.map(|latency| micros(latency.sum_ns / latency.count)),
        max_us: latency.map(|latency| micros(latency.max_ns)),
        why: line.reason.clone(),
        path,
    }
}

fn state_of(state: PortState) -> &'static str {
    match state {
        PortState::Active => "active",
        PortState::Armed => "armed",
        PortState::Initialize => "init",
        _ => "down",
    }
}

/// Whether a link runs slower than both of its ends can.
fn is_slow(a: &PortStatus, b: &PortStatus) -> bool {
    let bits = |rate: &str| {
        rate.parse::<weft_topology::LinkRate>().ok().map(weft_topology::LinkRate::signalling_bits_per_second)
    };
    let best = bits(&a.rate_supported).into_iter().chain(bits(&b.rate_supported)).min();
    bits(&a.rate).zip(best).is_some_and(|(now, best)| now < best)
}
