//! Virtual machines that are due for a look: those that something has happened to, and those whose time has come.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;

use super::VmManager;
use crate::names::VmName;

/// When a task has something to do without any input, and which write it waits for.
#[derive(Debug, Default)]
pub(super) struct Due {
    at: BTreeMap<VmName, Time>,
    first: BTreeSet<(Time, VmName)>,
    on_disk: BTreeSet<(u64, VmName)>,
}

impl Due {
    fn set(&mut self, name: &VmName, at: Option<Time>) {
        if let Some(before) = self.at.remove(name) {
            self.first.remove(&(before, name.clone()));
        }
        if let Some(at) = at {
            self.at.insert(name.clone(), at);
            self.first.insert((at, name.clone()));
        }
    }

    /// The first moment at which one has.
    pub(super) fn first(&self) -> Option<Time> {
        self.first.first().map(|(at, _)| *at)
    }

    /// One waits for a write.
    pub(super) fn wait_for(&mut self, write: u64, name: &VmName) {
        self.on_disk.insert((write, name.clone()));
    }

    /// Those whose time has come.
    fn take_until(&mut self, now: Time) -> BTreeSet<VmName> {
        let mut names = BTreeSet::new();
        while self.first().is_some_and(|at| at <= now) {
            let Some((_, name)) = self.first.pop_first() else { break };
            self.at.remove(&name);
            names.insert(name);
        }
        names
    }

    /// Those that wait for this write or an earlier one.
    pub(super) fn take_synced(&mut self, write: u64) -> BTreeSet<VmName> {
        let mut names = BTreeSet::new();
        while self.on_disk.first().is_some_and(|(first, _)| *first <= write) {
            names.extend(self.on_disk.pop_first().map(|(_, name)| name));
        }
        names
    }
}

impl VmManager {
    /// Looks at those that are concerned, and at those to which something happens meanwhile, until nothing more can be done.
    pub(super) fn look_at_all(&mut self, now: Time, passes: u32) {
        let mut concerned = self.due.take_until(now);
        for _ in 0..passes {
            if self.phase != super::Phase::Running {
                self.unfinished = false;
                break;
            }
            let before = self.progress();
            self.admit(now);
            if std::mem::take(&mut self.everyone) {
                concerned.extend(self.tasks.keys().cloned());
            }
            concerned.append(&mut self.check);
            concerned.iter().for_each(|name| self.look(now, name));
            self.sweep(now);
            self.lose_patience(now);
            if before == self.progress() && self.check.is_empty() && !self.everyone {
                self.unfinished = false;
                break;
            }
        }
        for name in &concerned {
            let at = self.next_moment(name);
            self.due.set(name, at);
        }
    }

    /// When a task has something to do without any input. What was due already waits for something else.
    fn next_moment(&self, name: &VmName) -> Option<Time> {
        let moments = self.tasks.get(name)?.moments().chain(self.patience_ends(name));
        moments.filter(|at| *at > self.ran_at).min()
    }
}
