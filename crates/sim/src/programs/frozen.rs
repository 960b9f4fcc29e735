//! Programs that are frozen, as by SIGSTOP: they do nothing, and what arrives meanwhile waits for them.

use std::collections::{BTreeMap, VecDeque};

use weft_vm::station;

use super::{ProgramEvent, Programs, VMM};

/// MADs that wait for a frozen program at most; a socket holds no more.
const WAITING_MAX: usize = 4096;

/// What waits for each frozen program, in the order in which it came.
pub(super) type Frozen = BTreeMap<u32, VecDeque<Waiting>>;

/// Something for a frozen program.
#[derive(Debug)]
pub(crate) enum Waiting {
    Program(ProgramEvent),
    /// Anything for the VM manager.
    Station(Box<station::Input>),
}

impl Programs {
    pub(crate) fn is_frozen(&self, program: u32) -> bool {
        self.frozen.contains_key(&program)
    }

    /// The process of a program stops; one that is frozen stays so.
    pub(crate) fn freeze(&mut self, program: u32) {
        self.frozen.entry(program).or_default();
    }

    /// The process of a program goes on, or has ended. What has come meanwhile.
    pub(crate) fn thaw(&mut self, program: u32) -> VecDeque<Waiting> {
        self.frozen.remove(&program).unwrap_or_default()
    }

    /// Keeps an event for a frozen program, and gives it back where the program runs.
    pub(crate) fn keep(&mut self, program: u32, event: ProgramEvent) -> Option<ProgramEvent> {
        let Some(waiting) = self.frozen.get_mut(&program) else { return Some(event) };
        if waiting.len() < WAITING_MAX || !matches!(event, ProgramEvent::Receive(_)) {
            waiting.push_back(Waiting::Program(event));
        }
        None
    }

    /// The same of any input of the VM manager, which is given back where it runs.
    pub(crate) fn keep_for_vmm(&mut self, input: station::Input) -> Option<station::Input> {
        let Some(waiting) = self.frozen.get_mut(&VMM) else { return Some(input) };
        waiting.push_back(Waiting::Station(Box::new(input)));
        None
    }
}
