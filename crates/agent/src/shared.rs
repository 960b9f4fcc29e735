//! State that the agent's tasks share.

use std::cell::RefCell;

use crate::core::Core;

/// The agent, for its tasks. One thread: the core is borrowed for the length of one event and never across an `await`.
pub(crate) struct Agent {
    core: RefCell<Core>,
}

impl Agent {
    pub(crate) fn new(core: Core) -> Self {
        Self { core: RefCell::new(core) }
    }

    /// Does something with the core and then what everything ends with.
    pub(crate) fn with_core<T>(&self, act: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core.borrow_mut();
        let result = act(&mut core);
        core.finish_turn();
        result
    }
}
