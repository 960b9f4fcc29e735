//! Admission of agents that dial while a laboratory comes up: a few for each core at a time. All at once would make every handshake
//! wait for all others, and those that time out and are begun again would make that worse.

use std::collections::{BTreeSet, VecDeque};

/// Agents for each core: enough that an agent finds several packets whenever it runs, and not more than lets a handshake
/// be answered within three seconds.
const PER_CORE: usize = 512;

/// The agents that wait for the word to dial, and those that have it and are not done.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: usize,
    waiting: VecDeque<String>,
    inside: BTreeSet<String>,
}

impl Admission {
    /// An empty line.
    pub(crate) fn new(cores: usize) -> Self {
        Self { limit: cores.max(1) * PER_CORE, waiting: VecDeque::new(), inside: BTreeSet::new() }
    }

    /// These wait from now on.
    pub(crate) fn line_up(&mut self, agents: impl IntoIterator<Item = String>) {
        self.waiting.extend(agents);
    }

    /// Whether any agent waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next that may dial, if there is room.
    pub(crate) fn next(&mut self) -> Option<String> {
        if self.inside.len() >= self.limit {
            return None;
        }
        let agent = self.waiting.pop_front()?;
        self.inside.insert(agent.clone());
        Some(agent)
    }

    /// All that an agent dials stands, or it has ended.
    pub(crate) fn done(&mut self, agent: &str) {
        self.inside.remove(agent);
    }

    /// Those inside have not got further for long. Their places are for others: a peer may be dead.
    pub(crate) fn stalled(&mut self) {
        self.inside.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_inside_as_may_be_and_no_stall_keeps_others_out() {
        let mut admission = Admission::new(2);
        let limit = 2 * PER_CORE;
        let name = |nth: usize| format!("a{nth}");
        admission.line_up((0..2 * limit + 8).map(name));
        let all = |admission: &mut Admission| std::iter::from_fn(|| admission.next()).collect::<Vec<_>>();
        assert_eq!(all(&mut admission), (0..limit).map(name).collect::<Vec<_>>());
        admission.done("a3");
        admission.done("a3");
        admission.done(&name(limit + 5));
        assert_eq!(all(&mut admission), [name(limit)], "only who is inside leaves a place");
        admission.stalled();
        assert_eq!(all(&mut admission).len(), limit);
        admission.stalled();
        assert_eq!(all(&mut admission).len(), 7);
        assert!(!admission.is_waiting());
    }
}
