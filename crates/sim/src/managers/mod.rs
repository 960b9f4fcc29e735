//! The processes of managers: subnet managers, the performance manager and the VM manager with its journal.
//!
//! ```text
//!   MADs, wake-ups ──▶ machine ──▶ MADs for the device that it is attached to
//!                            └───▶ events, which are kept and judged
//! ```

mod disk;
mod pm;
mod sm;
mod vmm;

use weft_topology::Fabric;

use crate::SimOptions;
use crate::programs::{PM, ProgramEvent, Programs, STANDBYS_MAX, VMM, Waiting};
use crate::world::World;
pub use disk::DiskCounts;
pub(crate) use pm::PmProcess;
pub(crate) use sm::SmProcess;
pub(crate) use vmm::{VMM_KEPT_MAX, VmmProcess};
pub(crate) use {pm::PM_EVENTS_MAX, sm::REPATHS_MAX, sm::SUMMARIES_MAX, sm::process};

/// All managers.
#[derive(Debug)]
pub(crate) struct Managers {
    /// The first one, and those beside it.
    subnet: Vec<SmProcess>,
    pub(crate) performance: PmProcess,
    pub(crate) vm: VmmProcess,
}

impl Managers {
    /// None of them runs.
    pub(crate) fn new(fabric: &Fabric, options: &SimOptions, seed: u64) -> Self {
        Self {
            subnet: std::iter::repeat_with(SmProcess::default).take(1 + STANDBYS_MAX).collect(),
            performance: PmProcess::default(),
            vm: VmmProcess::new(fabric, options, seed),
        }
    }

    /// Whether a manager's process runs.
    pub(crate) fn runs(&self, program: u32) -> bool {
        match program {
            PM => self.performance.machine.is_some(),
            VMM => self.vm.manager().is_some(),
            _ => self.sm(program).machine.is_some(),
        }
    }

    /// Something happens to a manager's attachment; one that is frozen notices later.
    pub(crate) fn tell(
        &mut self,
        program: u32,
        event: ProgramEvent,
        programs: &mut Programs,
        world: &mut World,
    ) {
        let Some(event) = programs.keep(program, event) else { return };
        match program {
            PM => self.performance.tell(event, programs, world),
            VMM => self.vm.tell(event, programs, world),
            _ => self.tell_sm(program, event, programs, world),
        }
    }

    /// A manager is woken.
    pub(crate) fn wake(&mut self, program: u32, programs: &mut Programs, world: &mut World) {
        match program {
            PM => self.performance.wake(programs, world),
            VMM => self.vm.wake(programs, world),
            _ => self.wake_sm(program, programs, world),
        }
    }

    /// A manager's process goes on: with what has come meanwhile, and then with what it waited for.
    pub(crate) fn thaw(&mut self, program: u32, programs: &mut Programs, world: &mut World) {
        for waiting in programs.thaw(program) {
            match waiting {
                Waiting::Program(event) => self.tell(program, event, programs, world),
                Waiting::Station(input) => self.vm.feed(*input, programs, world),
            }
        }
        match program {
            PM => self.performance.drain(programs, world),
            VMM => self.vm.drain(programs, world),
            _ => self.drain_sm(program, programs, world),
        }
    }

    /// Whether all managers have come to rest.
    pub(crate) fn are_at_rest(&self, programs: &Programs, world: &World) -> bool {
        self.vm.is_at_rest() && self.sms(world).all(|program| self.is_sm_at_rest(program, programs, world))
    }
}
