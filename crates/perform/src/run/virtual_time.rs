//! A plan in virtual time.

mod machines;

use weft_bundle::failure::Failure;
use weft_device::Counters;
use weft_experiment::{
    Action, Conservation, Driver, HostReconfigurations, LaneConservation, Late, Mark, MarkKind,
    MigrationRecord, Plan, PortPlace, PortSample,
};
use weft_fault::Sign;
use weft_host::stack::Reconfiguration;
use weft_host::traffic::{Command, FlowReport, LearntPath};
use weft_lab::scene::TapeTo;
use weft_machine::Time;
use weft_routing::EngineReport;
use weft_sim::{SimOptions, Simulation, TrafficAccount};
use weft_sm::Signalled;
use weft_topology::{Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, ServiceLevel};

use super::marks;
use super::stage::{Stage, given_levels, has_port};
use crate::film::{PlanFlows, SimFilm, Unit};
use machines::{Machines, with_slots};

/// States of a tape, however many samples there are.
const STATES_MAX: u64 = 1000;
/// How long a fabric may take to come up.
const LIMIT: Time = Time::from_secs(600);

/// A simulated fabric that a plan is carried out on.
pub(super) struct Virtual<'a> {
    plan: &'a Plan,
    simulation: Simulation,
    /// The moment when the plan's clock began.
    began: Time,
    machines: Machines,
    /// Marks of migrations that have not been returned.
    marks: Vec<Mark>,
    /// Summaries, events and repaths that have been returned.
    told: (usize, usize, usize),
    taped: Option<Taped<'a>>,
}

/// What is taped of a run.
struct Taped<'a> {
    film: SimFilm,
    flows: PlanFlows<'a>,
    /// When the next state is due, and what has happened before that.
    next: Time,
    marks: Vec<Mark>,
}

impl<'a> Virtual<'a> {
    /// Brings the fabric up, tells the hosts what they are to know, and begins the plan's clock.
    pub(super) fn begin(plan: &'a Plan, tape: Option<&TapeTo>) -> anyhow::Result<Self> {
        let plain = SimOptions::default();
        let options = SimOptions {
            device: plan.device.clone(),
            sm: plan.sm.clone(),
            sm_port: Some(plan.sm_at),
            with_pm: plan.pm.is_some(),
            pm: plan.pm.clone().unwrap_or_default(),
            pm_port: Some(plan.pm_at),
            hosts: true,
            host: plan.stack.clone(),
            // A cable without a length keeps the order of events that cables have.
            data_link_delay: (plan.cable_delay > Time::ZERO).then_some(plan.cable_delay),
            link_delays: plan.cable_delays.clone(),
            ..plain
        };
        let simulation = Simulation::new(&plan.fabric, with_slots(plan, options), plan.run.seed);
        let (machines, marks) = (Machines::default(), Vec::new());
        let (began, told, taped) = (Time::ZERO, (0, 0, 0), None);
        let mut stage = Self { plan, simulation, began, machines, marks, told, taped };
        stage
            .simulation
            .run_until_quiet(LIMIT)
            .map_err(|error| Failure::new(format!("the simulated fabric does not come up: {error}")))?;
        Machines::create(plan, &mut stage.simulation)?;
        if plan.learn_paths {
            stage.learn_paths();
        }
        let given = given_levels(plan, |port| stage.lid(port));
        for (node, command) in given.iter().chain(&plan.setup) {
            stage.tell(*node, command)?;
        }
        stage.began = stage.simulation.now();
        stage.told = stage.told();
        if let Some(to) = tape {
            let film = SimFilm::begin(&stage.simulation, to, &plan.title, Unit::Millis)?;
            let (flows, next, marks) = (PlanFlows::of(plan), Time::ZERO, Vec::new());
            stage.taped = Some(Taped { film, flows, next, marks });
        }
        Ok(stage)
    }

    /// Fills every host's path cache with what the subnet manager would answer.
    fn learn_paths(&mut self) {
        let fabric = self.plan.fabric.clone();
        for (index, node) in fabric.iter().filter(|(_, node)| !node.is_switch()) {
            let Some((_, port)) = node.external_ports().next() else { continue };
            let known = self.simulation.sm().map(|sm| sm.paths_from(port.guid)).unwrap_or_default();
            let path = |record| {
                let path = LearntPath::from(record);
                let slow = self.plan.oracle.as_ref().filter(|oracle| oracle.hot_spots.contains(&path.to));
                let service_level = slow.map_or(path.service_level, |oracle| ServiceLevel(oracle.slow_sl));
                LearntPath { service_level, ..path }
            };
            let paths = known.iter().map(path).collect();
            self.simulation.host_command(index, Command::LearnPaths(paths));
        }
    }

    /// How many summaries, events and repaths there are.
    fn told(&self) -> (usize, usize, usize) {
        let simulation = &self.simulation;
        (simulation.summaries().count(), simulation.pm_events().count(), simulation.repaths().count())
    }

    /// The LID of a port.
    fn lid(&self, port: Guid) -> Option<Lid> {
        let (index, _) = self.plan.fabric.iter().find(|(_, node)| has_port(node, port))?;
        let ports = self.simulation.device(index)?.snapshot().ports;
        ports.iter().find(|snapshot| snapshot.guid == port).map(|snapshot| snapshot.lid)
    }

    fn tell(&mut self, node: NodeIndex, command: &Command) -> anyhow::Result<()> {
        if let Some(vm) = self.plan.born_in(node) {
            self.machines.tell(&mut self.simulation, &vm.name, command.clone());
            return Ok(());
        }
        // A host that is dead does nothing, as the plan may want.
        self.simulation.host_command(node, command.clone());
        Ok(())
    }

    fn since(&self, at: Time) -> Time {
        at.saturating_sub(self.began)
    }

    fn counters(&self, port: PortRef) -> Option<Counters> {
        let device = self.simulation.device(port.node)?;
        device.port_snapshot_at(port.port, self.simulation.now()).map(|snapshot| snapshot.counters)
    }
}

impl Stage for Virtual<'_> {
    fn driver(&self) -> Driver {
        Driver::Virtual
    }

    fn play_until(&mut self, at: Time) -> anyhow::Result<()> {
        let limit = self.began + at;
        if let Some(vms) = &self.plan.vms {
            while self.simulation.run_until_vmm_replies(limit) {
                let marks = self.machines.hear(&mut self.simulation, self.plan, vms, self.began);
                self.marks.extend(marks);
            }
        }
        self.simulation.run_until(limit);
        self.machines.look(&self.simulation, self.plan);
        Ok(())
    }

    fn act(&mut self, action: &Action) -> anyhow::Result<()> {
        match action {
            Action::Host(node, command) => self.tell(*node, command),
            Action::Fault(fault) => {
                self.simulation.apply(fault.clone());
                Ok(())
            }
            Action::Migrate(migrate) => {
                let at = self.since(self.simulation.now());
                self.machines.migrate(&mut self.simulation, self.plan, migrate, at);
                Ok(())
            }
        }
    }

    fn reports(&mut self) -> anyhow::Result<Vec<(NodeIndex, Vec<FlowReport>)>> {
        let is_slot = |node: NodeIndex| {
            self.plan.vms.iter().flat_map(|vms| &vms.adapters).any(|adapter| adapter.vfs.contains(&node))
        };
        let hosts = self.plan.fabric.iter().filter(|(index, node)| !node.is_switch() && !is_slot(*index));
        let hosts = hosts.map(|(index, _)| (index, self.simulation.host_reports(index)));
        Ok(hosts
            .chain(Machines::reports(self.plan, &self.simulation))
            .map(|(index, mut reports)| {
                for moved in reports.iter_mut().flat_map(|report| &mut report.moves) {
                    moved.at = self.since(moved.at);
                }
                (index, reports)
            })
            .collect())
    }

    fn ports(&mut self, ports: &[PortPlace]) -> anyhow::Result<Vec<PortSample>> {
        Ok(ports
            .iter()
            .map(|place| {
                let counters = self.counters(place.port).unwrap_or_default();
                PortSample {
                    xmit_wait: counters.port_xmit_wait,
                    xmit_data: counters.port_xmit_data,
                    rcv_data: counters.port_rcv_data,
                    xmit_discards: counters.port_xmit_discards,
                }
            })
            .collect())
    }

    fn show(&mut self, reports: &[(NodeIndex, Vec<FlowReport>)], marks: &[Mark]) -> anyhow::Result<()> {
        let now = self.clock();
        let Some(taped) = &mut self.taped else { return Ok(()) };
        taped.marks.extend(marks.iter().cloned());
        if now < taped.next && now < self.plan.duration {
            return Ok(());
        }
        taped.next = now + Time::from_nanos(self.plan.duration.as_nanos() / STATES_MAX);
        let lines = taped.flows.lines(now, reports);
        taped.film.show(&self.simulation, now, &lines, &std::mem::take(&mut taped.marks))
    }

    fn clock(&self) -> Time {
        self.since(self.simulation.now())
    }

    fn fault_signs(&mut self) -> anyhow::Result<Vec<(Time, Sign<String>)>> {
        Ok(self.simulation.fault_signs().into_iter().map(|(at, sign)| (self.since(at), sign)).collect())
    }

    fn marks(&mut self) -> anyhow::Result<Vec<Mark>> {
        let (summaries, events, repaths) = self.told;
        let mut new: Vec<Mark> = self
            .simulation
            .summaries()
            .since(summaries)
            .iter()
            .map(|(at, _)| Mark {
                at: self.since(*at),
                kind: MarkKind::Rerouted,
                text: marks::REROUTED.into(),
            })
            .collect();
        let told = self.simulation.pm_events().since(events).iter();
        new.extend(told.filter_map(|(at, event)| marks::of_pm(self.plan, self.since(*at), event)));
        let told = self.simulation.repaths().since(repaths).iter();
        new.extend(told.filter_map(|(at, event)| marks::of_sm(self.since(*at), event)));
        self.told = self.told();
        new.append(&mut self.marks);
        Ok(new)
    }

    fn signalled(&mut self) -> anyhow::Result<Option<Signalled>> {
        Ok(self.simulation.sm().map(|sm| sm.sa_counts().signalled()))
    }

    fn reconfigurations(&mut self) -> Option<Vec<HostReconfigurations>> {
        let heeded = |(host, node): (NodeIndex, &Node)| {
            let stack = self.simulation.stack(PortRef::new(host, node.attach_port()?))?;
            let stretches = stack.reconfigurations().map(|one| Reconfiguration {
                began: self.since(one.began),
                ended: self.since(one.ended),
                ..*one
            });
            Some(HostReconfigurations { host, stretches: stretches.collect() })
        };
        Some(self.plan.fabric.hosts().filter_map(heeded).collect())
    }

    fn migrations(&mut self) -> anyhow::Result<Vec<MigrationRecord>> {
        Ok(self.machines.migrations.records())
    }

    fn routed_by(&mut self) -> anyhow::Result<String> {
        Ok(self.simulation.routing().map(EngineReport::brief).unwrap_or_default())
    }

    fn close(&mut self) -> anyhow::Result<(Conservation, Option<Late>)> {
        self.taped.take().map_or(Ok(()), |taped| taped.film.end())?;
        let conservation = match self.simulation.check_traffic() {
            Ok(report) => {
                let used =
                    report.lanes.iter().zip(0..).filter(|(lane, _)| **lane != TrafficAccount::default());
                Conservation {
                    lanes: used.map(|(lane, number)| balance(number, lane)).collect(),
                    violations: Vec::new(),
                }
            }
            Err(violations) => Conservation {
                lanes: Vec::new(),
                violations: violations.iter().map(ToString::to_string).collect(),
            },
        };
        Ok((conservation, None))
    }
}

/// The balance of a lane.
fn balance(lane: u8, account: &TrafficAccount) -> LaneConservation {
    let &TrafficAccount { injected, moved_in, moved_out, delivered, .. } = account;
    let (in_flight, dropped) = (account.under_way(), account.gone());
    LaneConservation { lane, injected, moved_in, moved_out, delivered, in_flight, dropped }
}
