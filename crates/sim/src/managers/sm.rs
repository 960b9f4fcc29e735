//! The processes of subnet managers.

use weft_fault::Process;
use weft_machine::{Machine, Time};
use weft_routing::EngineReport;
use weft_sm::{Activity, Event, GuidToLid, Input, Output, Past, SubnetManager, Summary, SweepKind};
use weft_topology::NodeIndex;

use super::Managers;
use crate::Kept;
use crate::clock::Clock;
use crate::programs::{ProgramEvent, Programs, SM, STANDBY};
use crate::world::World;

/// Summaries that are kept.
pub(crate) const SUMMARIES_MAX: usize = 1024;

/// Repath notices that are kept.
pub(crate) const REPATHS_MAX: usize = 1 << 14;

/// A subnet manager, when its process runs.
#[derive(Debug, Default)]
pub(crate) struct SmProcess {
    pub(crate) machine: Option<SubnetManager>,
    /// The log of the processes that have ended.
    history: Vec<Past>,
    /// What its `guid2lid` file has in it.
    pub(crate) persisted: GuidToLid,
    /// What it has said of each heavy sweep, the last one last.
    pub(crate) summaries: Kept<(Time, Summary), SUMMARIES_MAX>,
    /// Its repath notices to hosts, the last one last.
    pub(crate) repaths: Kept<(Time, Event), REPATHS_MAX>,
    /// What it has said of the last routing.
    pub(crate) routing: Option<EngineReport>,
    /// Why it could not route the subnet, since it last could.
    pub(crate) not_routed: Option<String>,
    quiet: Quiet,
}

/// Light sweeps that found nothing, and how often something had changed before them.
#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    sweeps: u32,
    disturbances: u64,
}

impl Quiet {
    /// Those since something last changed.
    fn sweeps(self, clock: &Clock) -> u32 {
        if self.disturbances == clock.disturbances { self.sweeps } else { 0 }
    }

    fn one_more(&mut self, clock: &Clock) {
        *self = Self { sweeps: self.sweeps(clock) + 1, disturbances: clock.disturbances };
    }
}

impl SmProcess {
    /// The log of this process and of those that have ended, one after the other, since this was asked last.
    pub(crate) fn take_history(&mut self) -> Vec<Past> {
        let mut all = std::mem::take(&mut self.history);
        all.extend(self.machine.iter_mut().flat_map(SubnetManager::take_history));
        all
    }

    /// Its process ends.
    pub(crate) fn end(&mut self) {
        let ended = self.machine.take();
        self.history.extend(ended.into_iter().flat_map(|mut machine| machine.take_history()));
    }

    pub(crate) fn is_in_charge(&self) -> bool {
        self.machine.as_ref().is_some_and(SubnetManager::is_in_charge)
    }

    /// The trace's name of a manager is its place's.
    fn event(&mut self, program: u32, event: Event, world: &mut World) {
        if world.observers.trace.is_on() {
            let name = match place(program) {
                0 => "sm".to_owned(),
                place => format!("sm-{}", place + 1),
            };
            world.trace("sm", format_args!("{name:<24}"), format_args!("{event:?}"));
        }
        let now = world.clock.now();
        match event {
            Event::Quiet => self.quiet.one_more(&world.clock),
            Event::SweepStarted { kind: SweepKind::Light, .. } => {}
            Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => {
                world.clock.disturb();
                self.summaries.push((now, summary));
            }
            Event::Repath { .. } => self.repaths.push((now, event)),
            Event::PartitionsTaken { .. }
            | Event::PartitionsKept { .. }
            | Event::PartitionsWait { .. }
            | Event::PartitionsLeftOut { .. } => {
                world.clock.disturb();
                world.observers.partitions.push((now, process(program), event));
            }
            Event::Routed(report) => {
                world.clock.disturb();
                (self.routing, self.not_routed) = (Some(report), None);
            }
            Event::RouteFailed { message } => {
                world.clock.disturb();
                self.not_routed = Some(message);
            }
            _ => world.clock.disturb(),
        }
    }
}

/// Where a subnet manager is in the list of them.
fn place(program: u32) -> usize {
    program.checked_sub(STANDBY).map_or(0, |standby| standby as usize + 1)
}

/// What a schedule of faults calls a subnet manager.
pub(crate) fn process(program: u32) -> Process<NodeIndex> {
    match place(program) {
        0 => Process::Sm,
        place => Process::Standby(place as u8 - 1),
    }
}

impl Managers {
    pub(crate) fn sm(&self, program: u32) -> &SmProcess {
        &self.subnet[place(program)]
    }

    pub(crate) fn sm_mut(&mut self, program: u32) -> &mut SmProcess {
        &mut self.subnet[place(program)]
    }

    /// The programs that are subnet managers, the first one and those beside it.
    pub(crate) fn sms(&self, world: &World) -> impl Iterator<Item = u32> + use<> {
        std::iter::once(SM).chain(STANDBY..STANDBY + world.options.standbys.len() as u32)
    }

    /// The manager that is in charge, or else the first one.
    pub(crate) fn foremost(&self, programs: &Programs, world: &World) -> u32 {
        let in_charge = |program: &u32| self.sm(*program).is_in_charge() && !programs.is_frozen(*program);
        self.sms(world).find(in_charge).unwrap_or(SM)
    }

    /// Whether a subnet manager has come to rest.
    pub(super) fn is_sm_at_rest(&self, program: u32, programs: &Programs, world: &World) -> bool {
        let process = self.sm(program);
        let (rest, options) = (world.clock.rest(), &world.options);
        let Some(machine) = process.machine.as_ref().filter(|_| !programs.is_frozen(program)) else {
            return rest > options.link_timeout + Time::from_secs(1);
        };
        let progress = machine.progress();
        match progress.activity {
            Activity::Up if progress.audit_pending => false,
            Activity::Up if options.sm.sweeps.sweep_interval_ms > 0 => {
                process.quiet.sweeps(&world.clock) >= 2
            }
            Activity::Up => rest > options.link_timeout + Time::from_secs(1),
            Activity::OwnPortDown => rest > options.link_timeout + Time::from_secs(10),
            Activity::Standby | Activity::NotActive => {
                let polls = u64::from(options.sm.election.polling_retries) + 2;
                rest > Time::from_millis(options.sm.election.polling_ms * polls)
            }
            _ => false,
        }
    }

    /// Starts a subnet manager's process with the `guid2lid` file that there is; one that runs ends first.
    pub(crate) fn start_sm(&mut self, program: u32, at: Time, programs: &mut Programs, world: &mut World) {
        let mut options = world.options.sm.clone();
        if let Some(standby) = world.options.standbys.get(place(program).wrapping_sub(1)) {
            options.election.priority = standby.priority;
            options.keys.sm_key = standby.sm_key.unwrap_or(options.keys.sm_key);
        }
        let process = self.sm_mut(program);
        let mut machine = SubnetManager::new(options, &process.persisted);
        if world.options.history {
            machine.keep_history();
        }
        process.machine = Some(machine);
        programs.start(program, at, &mut world.clock);
    }

    pub(super) fn tell_sm(
        &mut self,
        program: u32,
        event: ProgramEvent,
        programs: &mut Programs,
        world: &mut World,
    ) {
        let (node_guid, port_guid, port) = programs.guids(program, &world.fabric);
        let Some(machine) = &mut self.sm_mut(program).machine else { return };
        let input = match event {
            ProgramEvent::Attached => Input::Attached { node_guid, port_guid, port },
            ProgramEvent::Detached => Input::Detached,
            ProgramEvent::Receive(mad) => Input::Receive(*mad),
            ProgramEvent::PortChanged(up) => Input::PortChanged { up },
        };
        machine.handle_input(world.clock.now(), input);
        self.drain_sm(program, programs, world);
    }

    pub(super) fn wake_sm(&mut self, program: u32, programs: &mut Programs, world: &mut World) {
        if let Some(machine) = &mut self.sm_mut(program).machine {
            machine.handle_timeout(world.clock.now());
            self.drain_sm(program, programs, world);
        }
    }

    pub(crate) fn drain_sm(&mut self, program: u32, programs: &mut Programs, world: &mut World) {
        let process = self.sm_mut(program);
        while let Some(output) = process.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                Output::Send(mad) => programs.push_mad(program, true, Box::new(mad), world),
                Output::Event(event) => process.event(program, event, world),
                Output::Persist(guid2lid) => process.persisted = guid2lid,
            }
        }
        let due = process.machine.as_ref().and_then(Machine::poll_timeout);
        programs.wake_at(program, due, &mut world.clock);
    }
}
