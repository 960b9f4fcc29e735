//! Managers' processes that are frozen, as by SIGSTOP: they do nothing, and what arrives meanwhile waits for them.

use std::collections::{BTreeMap, VecDeque};

use weft_vm::station;
use weft_wire::AddressedMad;

use super::Simulation;
use super::programs::{PM, ProgramEvent, VMM};

/// MADs that wait for a frozen program at most; a socket holds no more.
const WAITING_MAX: usize = 4096;

/// What waits for each frozen program, in the order in which it came.
pub(super) type Frozen = BTreeMap<u32, VecDeque<Waiting>>;

/// Something for a frozen program.
#[derive(Debug)]
pub(super) enum Waiting {
    Attached,
    Detached,
    PortChanged(bool),
    Mad(Box<AddressedMad>),
    /// Anything for the VM manager.
    Station(Box<station::Input>),
}

impl Simulation {
    pub(super) fn is_frozen(&self, program: u32) -> bool {
        self.frozen_programs.contains_key(&program)
    }

    /// The process of a program stops; one that is frozen stays so.
    pub(super) fn freeze_program(&mut self, program: u32) {
        if self.runs(program) {
            self.frozen_programs.entry(program).or_default();
        }
    }

    /// The process of a program goes on: with what has come meanwhile, and then with what it waited for.
    pub(super) fn thaw_program(&mut self, program: u32) {
        for waiting in self.frozen_programs.remove(&program).unwrap_or_default() {
            match waiting {
                Waiting::Attached => self.tell_program(program, ProgramEvent::Attached),
                Waiting::Detached => self.tell_program(program, ProgramEvent::Detached),
                Waiting::PortChanged(up) => self.tell_program(program, ProgramEvent::PortChanged(up)),
                Waiting::Mad(mad) => self.tell_program(program, ProgramEvent::Receive(&mad)),
                Waiting::Station(input) => self.feed_station(*input),
            }
        }
        match program {
            PM => self.drain_pm(),
            VMM => self.drain_vmm(),
            _ => self.drain_sm(program),
        }
    }

    /// The process of a program has ended, and with it what waited for it.
    pub(super) fn forget_frozen(&mut self, program: u32) {
        self.frozen_programs.remove(&program);
    }

    /// Keeps an event for a frozen program; false where the program runs.
    pub(super) fn keep_for_frozen(&mut self, program: u32, event: ProgramEvent<'_>) -> bool {
        let Some(waiting) = self.frozen_programs.get_mut(&program) else { return false };
        match event {
            ProgramEvent::Attached => waiting.push_back(Waiting::Attached),
            ProgramEvent::Detached => waiting.push_back(Waiting::Detached),
            ProgramEvent::PortChanged(up) => waiting.push_back(Waiting::PortChanged(up)),
            ProgramEvent::Receive(_) if waiting.len() >= WAITING_MAX => {}
            ProgramEvent::Receive(mad) => waiting.push_back(Waiting::Mad(Box::new(*mad))),
        }
        true
    }

    /// The same of any input of the VM manager, which is given back where it runs.
    pub(super) fn keep_for_frozen_vmm(&mut self, input: station::Input) -> Option<station::Input> {
        match self.frozen_programs.get_mut(&VMM) {
            None => Some(input),
            Some(waiting) => {
                waiting.push_back(Waiting::Station(Box::new(input)));
                None
            }
        }
    }
}
