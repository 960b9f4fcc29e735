//! The processes of the subnet manager and of the performance manager.

use weft_machine::{Machine, Time};
use weft_pm::PerformanceManager;
use weft_routing::EngineReport;
use weft_sm::{Event, GuidToLid, SubnetManager, Summary};
use weft_topology::PortRef;

use super::Simulation;
use super::programs::{PM, SM, Told};

/// The subnet manager, when its process runs.
#[derive(Debug, Default)]
pub(super) struct SmProcess {
    pub(super) machine: Option<SubnetManager>,
    /// What its `guid2lid` file has in it.
    pub(super) persisted: GuidToLid,
    /// What it has said of each heavy sweep, the last one last.
    summaries: Vec<(Time, Summary)>,
    /// What it has told hosts of their paths, the last notice last.
    repaths: Vec<(Time, Event)>,
    /// What it has said of the last routing.
    routing: Option<EngineReport>,
}

/// The performance manager, when its process runs.
#[derive(Debug, Default)]
pub(super) struct PmProcess {
    pub(super) machine: Option<PerformanceManager>,
    /// What it has said, the last one last.
    events: Vec<(Time, weft_pm::Event)>,
}

/// Summaries that are kept.
const SUMMARIES_MAX: usize = 1024;

/// Repath notices that are kept; later ones are not.
const REPATHS_MAX: usize = 1 << 14;

/// Events that are kept of the performance manager; the oldest go first.
const PM_EVENTS_MAX: usize = 1 << 16;

impl Simulation {
    /// The subnet manager, if its process runs.
    pub fn sm(&self) -> Option<&SubnetManager> {
        self.subnet_manager.machine.as_ref()
    }

    /// Takes the subnet manager out of its process, as it is; the fabric ends here.
    pub fn into_sm(mut self) -> Option<SubnetManager> {
        self.subnet_manager.machine.take()
    }

    /// The port that the subnet manager is attached to.
    pub fn sm_port(&self) -> PortRef {
        self.attachments[SM as usize].port
    }

    /// What the subnet manager wrote into its `guid2lid` file last.
    pub fn guid2lid(&self) -> &GuidToLid {
        &self.subnet_manager.persisted
    }

    /// What the subnet manager said of its heavy sweeps, and when.
    pub fn summaries(&self) -> &[(Time, Summary)] {
        &self.subnet_manager.summaries
    }

    /// What the subnet manager has told hosts of their paths ([`Event::Repath`]), and when.
    pub fn repaths(&self) -> &[(Time, Event)] {
        &self.subnet_manager.repaths
    }

    /// What the subnet manager said of its last routing.
    pub fn routing(&self) -> Option<&EngineReport> {
        self.subnet_manager.routing.as_ref()
    }

    /// A fabric whose subnet manager finds this `guid2lid` file when it begins.
    pub fn set_guid2lid(&mut self, known: GuidToLid) {
        self.subnet_manager.persisted = known;
    }

    /// The performance manager, if its process runs.
    pub fn pm(&self) -> Option<&PerformanceManager> {
        self.performance_manager.machine.as_ref()
    }

    /// The port that the performance manager is attached to.
    pub fn pm_port(&self) -> PortRef {
        self.attachments[PM as usize].port
    }

    /// What the performance manager said, and when.
    pub fn pm_events(&self) -> &[(Time, weft_pm::Event)] {
        &self.performance_manager.events
    }

    /// Starts the subnet manager's process; one that runs ends first.
    pub(super) fn start_sm(&mut self, known: &GuidToLid, at: Time) {
        self.subnet_manager.machine = Some(SubnetManager::new(self.options.sm.clone(), known));
        self.start_program(SM, at);
    }

    pub(super) fn kill_sm(&mut self) {
        self.subnet_manager.machine = None;
        self.end_program(SM);
    }

    /// Starts the performance manager's process.
    pub(super) fn start_pm(&mut self, at: Time) {
        self.performance_manager.machine = Some(PerformanceManager::new(self.options.pm.clone()));
        self.start_program(PM, at);
    }

    pub(super) fn kill_pm(&mut self) {
        self.performance_manager.machine = None;
        self.end_program(PM);
    }

    pub(super) fn tell_sm(&mut self, told: Told<'_>) {
        let (node_guid, port_guid, port) = self.guids_at(SM);
        let Some(machine) = &mut self.subnet_manager.machine else { return };
        let input = match told {
            Told::Attached => weft_sm::Input::Attached { node_guid, port_guid, port },
            Told::Detached => weft_sm::Input::Detached,
            Told::Receive(mad) => weft_sm::Input::Receive(*mad),
            Told::PortChanged(up) => weft_sm::Input::PortChanged { up },
        };
        machine.handle_input(self.now, input);
        self.drain_sm();
    }

    pub(super) fn tell_pm(&mut self, told: Told<'_>) {
        let (node_guid, port_guid, port) = self.guids_at(PM);
        let Some(machine) = &mut self.performance_manager.machine else { return };
        let input = match told {
            Told::Attached => weft_pm::Input::Attached { node_guid, port_guid, port },
            Told::Detached => weft_pm::Input::Detached,
            Told::Receive(mad) => weft_pm::Input::Receive(*mad),
            Told::PortChanged(up) => weft_pm::Input::PortChanged { up },
        };
        machine.handle_input(self.now, input);
        self.drain_pm();
    }

    pub(super) fn drain_sm(&mut self) {
        while let Some(output) = self.subnet_manager.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                weft_sm::Output::Send(mad) => self.push_mad(SM, true, Box::new(mad)),
                weft_sm::Output::Event(event) => self.sm_event(event),
                weft_sm::Output::Persist(guid2lid) => self.subnet_manager.persisted = guid2lid,
            }
        }
        let due = self.subnet_manager.machine.as_ref().and_then(Machine::poll_timeout);
        self.wake_program_at(SM, due);
    }

    pub(super) fn drain_pm(&mut self) {
        while let Some(output) = self.performance_manager.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                weft_pm::Output::Send(mad) => self.push_mad(PM, true, Box::new(mad)),
                weft_pm::Output::Event(event) => self.pm_event(event),
            }
        }
        let due = self.performance_manager.machine.as_ref().and_then(Machine::poll_timeout);
        self.wake_program_at(PM, due);
    }

    fn sm_event(&mut self, event: Event) {
        if self.trace.is_on() {
            let place = format_args!("{:<24}", "sm");
            self.trace.line(self.now, "sm", place, format_args!("{event:?}"));
        }
        match event {
            Event::Quiet => self.quiet_sweeps += 1,
            Event::SweepStarted { kind: weft_sm::SweepKind::Light, .. } => {}
            Event::SubnetUp(summary) => {
                self.disturb();
                let summaries = &mut self.subnet_manager.summaries;
                if summaries.len() == SUMMARIES_MAX {
                    summaries.remove(0);
                }
                summaries.push((self.now, summary));
            }
            Event::Repath { .. } => {
                let repaths = &mut self.subnet_manager.repaths;
                if repaths.len() < REPATHS_MAX {
                    repaths.push((self.now, event));
                }
            }
            Event::Routed(report) => {
                self.disturb();
                self.subnet_manager.routing = Some(report);
            }
            _ => self.disturb(),
        }
    }

    fn pm_event(&mut self, event: weft_pm::Event) {
        if self.trace.is_on() {
            let place = format_args!("{:<24}", "pm");
            self.trace.line(self.now, "pm", place, format_args!("{event:?}"));
        }
        let events = &mut self.performance_manager.events;
        if events.len() == PM_EVENTS_MAX {
            events.drain(..PM_EVENTS_MAX / 2);
        }
        events.push((self.now, event));
    }
}
