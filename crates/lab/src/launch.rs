//! The start of a laboratory, followed: `up` starts the hub, which starts the processes, and listens to it.

mod hub;
mod stuck;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weft_bundle::failure::{Failure, Interrupted};
use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_control::event::{LabEvent, SmEvent};
use weft_control::sm::{self, EngineReport, Summary};
use weft_control::{Event, EventKind, p_keys_missing};

use crate::launch::hub::HubLine;
use crate::progress::{Count, Goal, Phases, StartPhase};
use crate::signals::Signals;
use crate::{process, teardown};

/// The most characters of a sentence about routing, and the most sentences.
const REASON_CHARS_MAX: usize = 2000;
const ROUTING_LINES_MAX: usize = 6;

/// As many as taking a laboratory down opens at once, with room to spare.
const SPARE_DESCRIPTORS: usize = 8;

/// What came of the start.
#[derive(Clone, Debug)]
pub struct SubnetUp {
    /// When, since the start.
    pub at: Duration,
    /// SMPs sent, retries included; OpenSM does not tell.
    pub smps: Option<u64>,
    /// Which engine routed, why those before it did not, and what its routing does not keep: a line each. And which ports have no room
    /// for their P_Keys.
    pub routing: Vec<String>,
}

/// What a subnet manager has reported of its piece.
#[derive(Clone, Debug, Default)]
struct Subnet {
    /// How far it is: nodes, LIDs, tables done, tables, ports that are Active, ports.
    far: [u32; 6],
    routing: Option<EngineReport>,
    /// Once all of the piece is up.
    up: Option<Summary>,
}

/// A laboratory while it starts.
#[derive(Debug)]
pub struct Launcher<'a> {
    lab: &'a LabFolder,
    /// What the laboratory consists of.
    pub record: &'a LabRecord,
    goal: Goal,
    hub: HubLine<'a>,
    interrupt: Signals,
    /// By manager.
    subnets: BTreeMap<String, Subnet>,
    /// By port GUID: how many P_Keys it has no room for.
    p_keys_left_out: BTreeMap<String, u32>,
    /// What the subnet manager reported, and when.
    pub subnet_up: Option<SubnetUp>,
    /// The phases and their times.
    pub phases: Phases,
    /// The hub has started all, and waits for nothing more.
    has_started: bool,
    /// The goal was reached once. What happens to the laboratory afterwards is the user's doing.
    came_up: bool,
    /// All runs, but the goal is out of reach.
    gave_up: bool,
    released: bool,
    /// Descriptors that clearing up will need: a limit of open files may be what ends the start.
    spare: Vec<std::os::fd::OwnedFd>,
}

impl<'a> Launcher<'a> {
    /// Starts nothing yet. The signals must have been taken over before.
    pub fn new(
        lab: &'a LabFolder,
        record: &'a LabRecord,
        goal: Goal,
        interrupt: Signals,
        phases: Phases,
    ) -> anyhow::Result<Self> {
        let spare = (0..SPARE_DESCRIPTORS).map(|_| interrupt.spare()).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            lab,
            record,
            goal,
            hub: HubLine::new(lab),
            interrupt,
            subnets: BTreeMap::new(),
            p_keys_left_out: BTreeMap::new(),
            subnet_up: None,
            phases,
            has_started: false,
            came_up: false,
            gave_up: false,
            released: false,
            spare,
        })
    }

    /// Has the hub start every process, and returns when the goal is reached.
    pub fn bring_up(&mut self) -> anyhow::Result<()> {
        let total = self.record.agents.len() as u64;
        self.phases.set(StartPhase::AgentsStarted, Count { done: 0, total });
        self.hub.start(&mut self.interrupt)?;
        while !self.reached() {
            let left = self.goal.patience.saturating_sub(self.phases.moved().elapsed());
            if left.is_zero() {
                let failure = self.stuck();
                return Err(self.give_up(failure));
            }
            self.turn(Some(left))?;
        }
        self.came_up = true;
        Ok(())
    }

    /// Listens until an interrupt.
    pub fn stay(&mut self) -> anyhow::Result<()> {
        loop {
            match self.turn(None) {
                Err(error) if error.is::<Interrupted>() => return Ok(()),
                turned => turned?,
            }
        }
    }

    /// Listens until a moment; an interrupt is an error.
    pub fn serve_until(&mut self, until: Instant) -> anyhow::Result<()> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            self.turn(Some(left))?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Leaves the laboratory to itself and to its hub.
    pub fn release(mut self) {
        self.released = true;
    }

    /// How each subnet manager routes its piece.
    pub fn routings(&self) -> impl Iterator<Item = &EngineReport> {
        self.subnets.values().filter_map(|subnet| subnet.routing.as_ref())
    }

    /// Whether the laboratory is to run on although the goal is out of reach.
    pub fn is_kept(&self) -> bool {
        self.goal.keep == Some(true) && self.gave_up
    }

    fn reached(&self) -> bool {
        let links = self.phases.finished(StartPhase::LinksUp).is_some();
        links && self.has_started && (self.goal.subnets.is_empty() || self.subnet_up.is_some())
    }

    /// Waits for something to happen and takes note of it.
    fn turn(&mut self, timeout: Option<Duration>) -> anyhow::Result<()> {
        let events = self.hub.wait(&mut self.interrupt, timeout)?;
        for event in events {
            self.take(event)?;
        }
        if self.came_up {
            return Ok(());
        }
        self.hub.go_on(&mut self.interrupt)
    }

    fn take(&mut self, event: Event) -> anyhow::Result<()> {
        match event.kind {
            EventKind::Lab(event) => self.take_of_lab(event)?,
            EventKind::Sm(of_sm) => self.take_of_sm(&event.source, of_sm)?,
            _ => {}
        }
        Ok(())
    }

    fn take_of_sm(&mut self, manager: &str, event: SmEvent) -> anyhow::Result<()> {
        // Those that stand by come later, and what happens to a subnet that is up is no part of its start.
        let Some(expected) = self.goal.nodes_of(manager) else { return Ok(()) };
        let subnet = self.subnets.entry(manager.to_owned()).or_default();
        if subnet.up.is_some() {
            return Ok(());
        }
        match event {
            SmEvent::Progress { nodes, lids, tables_done, tables, ports_active, ports } => {
                subnet.far = [nodes, lids, tables_done, tables, ports_active, ports];
                self.count_subnets();
            }
            SmEvent::Routed(report) => subnet.routing = Some(report),
            SmEvent::PartitionsLeftOut { port_guid, partitions } => {
                self.p_keys_left_out.insert(port_guid.to_string(), partitions);
            }
            SmEvent::SubnetUp(summary) => {
                let nodes = [summary.switches, summary.hosts, summary.others];
                let nodes = nodes.into_iter().fold(0, u32::saturating_add);
                // What it can reach may still grow: then it will report again.
                if summary.complete && u64::from(nodes) >= expected {
                    // Its last progress may not have been reported.
                    subnet.far[0] = nodes;
                    subnet.up = Some(summary);
                    self.count_subnets();
                    self.take_subnet_up();
                }
            }
            // With more nodes to come, the next sweep may find what an engine can route.
            SmEvent::RouteFailed { message } if !self.came_up && u64::from(subnet.far[0]) >= expected => {
                let reason: String = message.chars().take(REASON_CHARS_MAX).collect();
                let who = self.who(manager);
                let failure = Failure::new(format!("{who} cannot route this fabric: {reason}"));
                return Err(self.give_up(failure));
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows how far all subnet managers are.
    fn count_subnets(&mut self) {
        let mut all = [0; 6];
        for subnet in self.subnets.values() {
            all.iter_mut().zip(subnet.far).for_each(|(sum, far)| *sum += u64::from(far));
        }
        let [nodes, lids, tables_done, tables, ports_active, ports] = all;
        let count = |done, total| Count { done, total };
        self.phases.set(StartPhase::NodesDiscovered, count(nodes, self.goal.nodes()));
        self.phases.set(StartPhase::Lids, count(lids, lids));
        self.phases.set(StartPhase::Tables, count(tables_done, tables));
        self.phases.set(StartPhase::PortsActive, count(ports_active, ports));
    }

    fn take_of_lab(&mut self, event: LabEvent) -> anyhow::Result<()> {
        match event {
            LabEvent::StartProgress { agents_ready, links_up, .. } => {
                let total = self.record.agents.len() as u64;
                self.count(StartPhase::AgentsStarted, Count { done: agents_ready.into(), total });
                if self.phases.finished(StartPhase::AgentsStarted).is_some() {
                    self.count(StartPhase::LinksUp, Count { done: links_up, total: self.goal.cable_ends });
                }
            }
            LabEvent::LabStarted => {
                self.has_started = true;
                if !self.record.opensms.is_empty() && self.subnet_up.is_none() {
                    // Its process is ready when the subnet is up.
                    let at = self.phases.elapsed();
                    self.subnet_up = Some(SubnetUp { at, smps: None, routing: Vec::new() });
                }
            }
            LabEvent::ProcessEnded { process, code, signal, .. } if !self.came_up => {
                let failure = self.ended(&process, code, signal);
                // One that stands by may be what is looked into.
                if self.goal.keep == Some(true) && self.is_standby(&process) {
                    self.lab.front().listener.problem(&failure.into());
                    return Ok(());
                }
                return Err(failure.hint("nothing is left running"));
            }
            LabEvent::StartFailed { process, reason } if !self.came_up => {
                let who = self.who(&process);
                return Err(
                    Failure::new(format!("cannot start {who}: {reason}")).hint("nothing is left running")
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes how far a phase is that ends when all is done.
    fn count(&mut self, phase: StartPhase, count: Count) {
        // Another hub counts again what was done before.
        if self.phases.finished(phase).is_some() {
            return;
        }
        self.phases.set(phase, count);
        if count.done >= count.total {
            self.phases.finish(phase, self.phases.elapsed());
        }
    }

    /// Says what becomes of the laboratory.
    fn give_up(&mut self, failure: Failure) -> anyhow::Error {
        self.gave_up = true;
        let hint = match self.goal.keep {
            Some(true) => "the laboratory runs on: `weft status` tells more, `weft down` ends it",
            Some(false) => "nothing is left running; --keep keeps the laboratory",
            None => "nothing is left running",
        };
        failure.hint(hint)
    }

    /// All is up when the last piece is.
    fn take_subnet_up(&mut self) {
        let up = |(name, _): &(String, u64)| self.subnets.get(name)?.up.as_ref();
        let Some(summaries) = self.goal.subnets.iter().map(up).collect::<Option<Vec<&Summary>>>() else {
            return;
        };
        let smps = summaries.iter().map(|summary| summary.smps.total + summary.retries).sum();
        // Several begin one after the other: what the longest took is what is known.
        let longest = summaries.into_iter().max_by_key(|summary| summary.took);
        let mut end = Duration::ZERO;
        let mut ends = Vec::new();
        for time in longest.iter().flat_map(|summary| &summary.phases) {
            end += Duration::from_nanos(time.took.as_nanos());
            ends.push((time.phase, end));
        }
        let at = self.phases.elapsed();
        let began = at.saturating_sub(end);
        for (phase, of) in [
            (StartPhase::NodesDiscovered, sm::SweepPhase::Discover),
            (StartPhase::Lids, sm::SweepPhase::Assign),
            (StartPhase::Tables, sm::SweepPhase::Program),
            (StartPhase::PortsActive, sm::SweepPhase::Activate),
        ] {
            let end = ends.iter().find(|(own, _)| *own == of).map_or(Duration::ZERO, |(_, end)| *end);
            self.phases.finish(phase, began + end);
        }
        // Of a circle of channels the first line will do here; `weft status` has the others.
        let brief = |line: String| -> String {
            let first = line.lines().next().unwrap_or_default().trim_end_matches(':');
            first.chars().take(REASON_CHARS_MAX).collect()
        };
        let several = self.subnets.len() > 1;
        let routing = self.subnets.iter().flat_map(|(name, subnet)| {
            let lines = subnet.routing.iter().flat_map(EngineReport::lines).map(brief);
            lines
                .take(ROUTING_LINES_MAX)
                .map(move |line| if several { format!("{name}: {line}") } else { line })
        });
        let p_keys = p_keys_missing(&self.p_keys_left_out).map(|sentence| format!("partitions: {sentence}"));
        let routing = routing.chain(p_keys).collect();
        self.subnet_up = Some(SubnetUp { at, smps: Some(smps), routing });
    }
}

impl Drop for Launcher<'_> {
    /// A laboratory that was not released goes with its launcher, whatever ended that.
    fn drop(&mut self) {
        if self.released {
            return;
        }
        self.phases.end();
        // First the hub, so that it starts no more.
        self.hub.kill();
        self.spare.clear();
        if let Err(error) = teardown::take_down_held(self.lab) {
            self.lab.say(&format!("cannot clear up: {error:#}"));
        }
    }
}
