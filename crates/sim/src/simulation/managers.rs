//! The processes of the subnet manager and of the performance manager.

use weft_machine::{Machine, Time};
use weft_pm::PerformanceManager;
use weft_routing::EngineReport;
use weft_sm::{Event, GuidToLid, Past, SubnetManager, Summary};
use weft_topology::{NodeIndex, PortRef};

use super::Simulation;
use super::programs::{PM, ProgramEvent, SM, STANDBY};
use crate::{Kept, Process};

/// The subnet manager, when its process runs.
#[derive(Debug, Default)]
pub(super) struct SmProcess {
    pub(super) machine: Option<SubnetManager>,
    /// The log of the processes that have ended.
    history: Vec<Past>,
    /// What its `guid2lid` file has in it.
    pub(super) persisted: GuidToLid,
    /// What it has said of each heavy sweep, the last one last.
    summaries: Kept<(Time, Summary), SUMMARIES_MAX>,
    /// Its repath notices to hosts, the last one last.
    repaths: Kept<(Time, Event), REPATHS_MAX>,
    /// What it has said of the last routing.
    routing: Option<EngineReport>,
    /// Light sweeps that found nothing since the last disturbance.
    quiet_sweeps: u32,
    /// Why it could not route the subnet, since it last could.
    not_routed: Option<String>,
}

/// The performance manager, when its process runs.
#[derive(Debug, Default)]
pub(super) struct PmProcess {
    pub(super) machine: Option<PerformanceManager>,
    /// What it has said, the last one last.
    events: Kept<(Time, weft_pm::Event), PM_EVENTS_MAX>,
}

/// Summaries that are kept.
const SUMMARIES_MAX: usize = 1024;

/// Repath notices that are kept.
const REPATHS_MAX: usize = 1 << 14;

/// Events that are kept of the performance manager.
const PM_EVENTS_MAX: usize = 1 << 16;

/// Where a subnet manager is in the list of them.
fn place(program: u32) -> usize {
    program.checked_sub(STANDBY).map_or(0, |standby| standby as usize + 1)
}

impl Simulation {
    /// The subnet manager that is in charge, or the first one, if its process runs.
    pub fn sm(&self) -> Option<&SubnetManager> {
        self.sm_process(self.foremost()).machine.as_ref()
    }

    /// Takes the subnet manager out of its process, as it is; the fabric ends here.
    pub fn into_sm(mut self) -> Option<SubnetManager> {
        let program = self.foremost();
        self.sm_process_mut(program).machine.take()
    }

    /// The port that the subnet manager is attached to.
    pub fn sm_port(&self) -> PortRef {
        self.attachments[self.foremost() as usize].port
    }

    /// Every subnet manager whose process runs and is not frozen, with its port.
    pub fn managers(&self) -> impl Iterator<Item = (PortRef, &SubnetManager)> {
        self.sm_programs().filter(|program| !self.is_frozen(*program)).filter_map(|program| {
            Some((self.attachments[program as usize].port, self.sm_process(program).machine.as_ref()?))
        })
    }

    /// What the subnet manager wrote into its `guid2lid` file last.
    pub fn guid2lid(&self) -> &GuidToLid {
        &self.sm_process(self.foremost()).persisted
    }

    /// What the subnet manager said of its heavy sweeps, and when.
    pub fn summaries(&self) -> &Kept<(Time, Summary), SUMMARIES_MAX> {
        &self.sm_process(self.foremost()).summaries
    }

    /// The subnet manager's repath notices to hosts ([`Event::Repath`]), with their times.
    pub fn repaths(&self) -> &Kept<(Time, Event), REPATHS_MAX> {
        &self.sm_process(self.foremost()).repaths
    }

    /// What the subnet manager said of its last routing.
    pub fn routing(&self) -> Option<&EngineReport> {
        self.sm_process(self.foremost()).routing.as_ref()
    }

    /// Why the subnet manager could not route the subnet in its last sweep.
    pub fn not_routed(&self) -> Option<&str> {
        self.sm_process(self.foremost()).not_routed.as_deref()
    }

    /// What the first subnet manager's tables were computed from since this was asked last, where [`SimOptions::history`] wants that. The
    /// logs of processes that have ended are in it, one after the other.
    ///
    /// [`SimOptions::history`]: crate::SimOptions::history
    pub fn take_history(&mut self) -> Vec<Past> {
        let process = self.sm_process_mut(SM);
        let mut all = std::mem::take(&mut process.history);
        all.extend(process.machine.iter_mut().flat_map(SubnetManager::take_history));
        all
    }

    /// A fabric whose subnet manager finds this `guid2lid` file when it begins.
    pub fn set_guid2lid(&mut self, known: GuidToLid) {
        self.sm_process_mut(SM).persisted = known;
    }

    /// The operator wants a heavy sweep of the subnet manager that is in charge, which then computes all rows as at a fresh start.
    pub fn order_sweep(&mut self) {
        let (program, now) = (self.foremost(), self.now);
        if self.is_frozen(program) {
            return;
        }
        if let Some(machine) = &mut self.sm_process_mut(program).machine {
            machine.handle_input(now, weft_sm::Input::Resweep { heavy: true });
            self.disturb();
            self.drain_sm(program);
        }
    }

    /// The programs that are subnet managers, the first one and those beside it.
    fn sm_programs(&self) -> impl Iterator<Item = u32> + use<> {
        std::iter::once(SM).chain(STANDBY..STANDBY + self.options.standbys.len() as u32)
    }

    /// The manager that is in charge, or else the first one.
    fn foremost(&self) -> u32 {
        let in_charge = |program: &u32| {
            let machine = self.sm_process(*program).machine.as_ref();
            machine.is_some_and(SubnetManager::is_in_charge) && !self.is_frozen(*program)
        };
        self.sm_programs().find(in_charge).unwrap_or(SM)
    }

    /// The process of the subnet manager that is in charge, if one is.
    pub fn master(&self) -> Option<Process<NodeIndex>> {
        let program = self.foremost();
        let machine = self.sm_process(program).machine.as_ref();
        machine.filter(|machine| machine.is_in_charge() && !self.is_frozen(program))?;
        Some(program.checked_sub(STANDBY).map_or(Process::Sm, |number| Process::Standby(number as u8)))
    }

    pub(super) fn sm_process(&self, program: u32) -> &SmProcess {
        &self.subnet_managers[place(program)]
    }

    pub(super) fn sm_process_mut(&mut self, program: u32) -> &mut SmProcess {
        &mut self.subnet_managers[place(program)]
    }

    /// Whether a manager has come to rest.
    pub(super) fn is_at_rest(&self, program: u32) -> bool {
        let process = self.sm_process(program);
        let rest = self.now.saturating_sub(self.disturbed_at);
        let Some(machine) = process.machine.as_ref().filter(|_| !self.is_frozen(program)) else {
            return rest > self.options.link_timeout + Time::from_secs(1);
        };
        let progress = machine.progress();
        match progress.activity {
            weft_sm::Activity::Up if progress.audit_pending => false,
            weft_sm::Activity::Up if self.options.sm.sweep_interval_ms > 0 => process.quiet_sweeps >= 2,
            weft_sm::Activity::Up => rest > self.options.link_timeout + Time::from_secs(1),
            weft_sm::Activity::OwnPortDown => rest > self.options.link_timeout + Time::from_secs(10),
            weft_sm::Activity::Standby | weft_sm::Activity::NotActive => {
                let polls = u64::from(self.options.sm.polling_retries) + 2;
                rest > Time::from_millis(self.options.sm.polling_ms * polls)
            }
            _ => false,
        }
    }

    /// Whether all managers have come to rest.
    pub(super) fn are_at_rest(&self) -> bool {
        self.sm_programs().all(|program| self.is_at_rest(program))
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
    pub fn pm_events(&self) -> &Kept<(Time, weft_pm::Event), PM_EVENTS_MAX> {
        &self.performance_manager.events
    }

    /// Starts a subnet manager's process; one that runs ends first.
    pub(super) fn start_sm(&mut self, program: u32, known: &GuidToLid, at: Time) {
        let mut options = self.options.sm.clone();
        if let Some(standby) = self.options.standbys.get(place(program).wrapping_sub(1)) {
            options.priority = standby.priority;
            options.sm_key = standby.sm_key.unwrap_or(options.sm_key);
        }
        let mut machine = SubnetManager::new(options, known);
        if self.options.history {
            machine.keep_history();
        }
        self.sm_process_mut(program).machine = Some(machine);
        self.start_program(program, at);
    }

    pub(super) fn kill_sm(&mut self, program: u32) {
        let process = self.sm_process_mut(program);
        let ended = process.machine.take();
        process.history.extend(ended.into_iter().flat_map(|mut machine| machine.take_history()));
        self.end_program(program);
    }

    /// Starts those beside the first one.
    pub(super) fn start_standbys(&mut self) {
        for program in self.sm_programs().filter(|program| *program != SM) {
            self.start_sm(program, &GuidToLid::default(), self.options.sm_start);
        }
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

    pub(super) fn tell_sm(&mut self, program: u32, event: ProgramEvent<'_>) {
        let (node_guid, port_guid, port) = self.guids_at(program);
        let now = self.now;
        let Some(machine) = &mut self.sm_process_mut(program).machine else { return };
        let input = match event {
            ProgramEvent::Attached => weft_sm::Input::Attached { node_guid, port_guid, port },
            ProgramEvent::Detached => weft_sm::Input::Detached,
            ProgramEvent::Receive(mad) => weft_sm::Input::Receive(*mad),
            ProgramEvent::PortChanged(up) => weft_sm::Input::PortChanged { up },
        };
        machine.handle_input(now, input);
        self.drain_sm(program);
    }

    pub(super) fn tell_pm(&mut self, event: ProgramEvent<'_>) {
        let (node_guid, port_guid, port) = self.guids_at(PM);
        let Some(machine) = &mut self.performance_manager.machine else { return };
        let input = match event {
            ProgramEvent::Attached => weft_pm::Input::Attached { node_guid, port_guid, port },
            ProgramEvent::Detached => weft_pm::Input::Detached,
            ProgramEvent::Receive(mad) => weft_pm::Input::Receive(*mad),
            ProgramEvent::PortChanged(up) => weft_pm::Input::PortChanged { up },
        };
        machine.handle_input(self.now, input);
        self.drain_pm();
    }

    pub(super) fn drain_sm(&mut self, program: u32) {
        while let Some(output) = self.sm_process_mut(program).machine.as_mut().and_then(Machine::poll_output)
        {
            match output {
                weft_sm::Output::Send(mad) => self.push_mad(program, true, Box::new(mad)),
                weft_sm::Output::Event(event) => self.sm_event(program, event),
                weft_sm::Output::Persist(guid2lid) => self.sm_process_mut(program).persisted = guid2lid,
            }
        }
        let due = self.sm_process(program).machine.as_ref().and_then(Machine::poll_timeout);
        self.wake_program_at(program, due);
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

    fn sm_event(&mut self, program: u32, event: Event) {
        if self.trace.is_on() {
            let name = match place(program) {
                0 => "sm".to_owned(),
                place => format!("sm-{}", place + 1),
            };
            self.trace.line(self.now, "sm", format_args!("{name:<24}"), format_args!("{event:?}"));
        }
        let now = self.now;
        match event {
            Event::Quiet => self.sm_process_mut(program).quiet_sweeps += 1,
            Event::SweepStarted { kind: weft_sm::SweepKind::Light, .. } => {}
            Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => {
                self.disturb();
                self.sm_process_mut(program).summaries.push((now, summary));
            }
            Event::Repath { .. } => self.sm_process_mut(program).repaths.push((now, event)),
            Event::Routed(report) => {
                self.disturb();
                let process = self.sm_process_mut(program);
                (process.routing, process.not_routed) = (Some(report), None);
            }
            Event::RouteFailed { message } => {
                self.disturb();
                self.sm_process_mut(program).not_routed = Some(message);
            }
            _ => self.disturb(),
        }
    }

    /// Something changed; what was known to be quiet is not any more.
    pub(crate) fn disturb(&mut self) {
        self.disturbed_at = self.now;
        self.subnet_managers.iter_mut().for_each(|process| process.quiet_sweeps = 0);
    }

    fn pm_event(&mut self, event: weft_pm::Event) {
        if self.trace.is_on() {
            let place = format_args!("{:<24}", "pm");
            self.trace.line(self.now, "pm", place, format_args!("{event:?}"));
        }
        self.performance_manager.events.push((self.now, event));
    }
}
