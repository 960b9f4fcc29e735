//! The process of the performance manager.

use weft_machine::{Machine, Time};
use weft_pm::{Event, Input, Output, PerformanceManager};

use crate::Kept;
use crate::programs::{PM, ProgramEvent, Programs};
use crate::world::World;

/// Events that are kept of the performance manager.
pub(crate) const PM_EVENTS_MAX: usize = 1 << 16;

/// The performance manager, when its process runs.
#[derive(Debug, Default)]
pub(crate) struct PmProcess {
    pub(crate) machine: Option<PerformanceManager>,
    /// What it has said, the last one last.
    pub(crate) events: Kept<(Time, Event), PM_EVENTS_MAX>,
}

impl PmProcess {
    /// Its process begins; one that runs ends first.
    pub(crate) fn start(&mut self, at: Time, programs: &mut Programs, world: &mut World) {
        self.machine = Some(PerformanceManager::new(world.options.pm.clone()));
        programs.start(PM, at, &mut world.clock);
    }

    pub(super) fn tell(&mut self, event: ProgramEvent, programs: &mut Programs, world: &mut World) {
        let (node_guid, port_guid, port) = programs.guids(PM, &world.fabric);
        let Some(machine) = &mut self.machine else { return };
        let input = match event {
            ProgramEvent::Attached => Input::Attached { node_guid, port_guid, port },
            ProgramEvent::Detached => Input::Detached,
            ProgramEvent::Receive(mad) => Input::Receive(*mad),
            ProgramEvent::PortChanged(up) => Input::PortChanged { up },
        };
        machine.handle_input(world.clock.now(), input);
        self.drain(programs, world);
    }

    pub(super) fn wake(&mut self, programs: &mut Programs, world: &mut World) {
        if let Some(machine) = &mut self.machine {
            machine.handle_timeout(world.clock.now());
            self.drain(programs, world);
        }
    }

    pub(super) fn drain(&mut self, programs: &mut Programs, world: &mut World) {
        while let Some(output) = self.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                Output::Send(mad) => programs.push_mad(PM, true, Box::new(mad), world),
                Output::Event(event) => self.event(event, world),
            }
        }
        let due = self.machine.as_ref().and_then(Machine::poll_timeout);
        programs.wake_at(PM, due, &mut world.clock);
    }

    fn event(&mut self, event: Event, world: &mut World) {
        world.trace("pm", format_args!("{:<24}", "pm"), format_args!("{event:?}"));
        self.events.push((world.clock.now(), event));
    }
}
