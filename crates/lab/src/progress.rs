//! Progress of a laboratory's start, phase by phase.

use std::time::{Duration, Instant};

use weft_bundle::folder::front;

/// What the launcher waits for.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The subnet managers that bring up their pieces of the fabric, and how many nodes each piece has.
    pub subnets: Vec<(String, u64)>,
    /// Ends of cables in all.
    pub cable_ends: u64,
    /// Give up when nothing has moved for this long.
    pub patience: Duration,
    /// Whether a laboratory that does not come up runs on; `None` where the verb has no such option.
    pub keep: Option<bool>,
}

impl Goal {
    /// Nodes that subnet managers are to find.
    pub fn nodes(&self) -> u64 {
        self.subnets.iter().map(|(_, nodes)| nodes).sum()
    }

    /// Nodes of a manager's piece; `None` if nothing of its is awaited.
    pub fn nodes_of(&self, manager: &str) -> Option<u64> {
        self.subnets.iter().find(|(name, _)| name == manager).map(|(_, nodes)| *nodes)
    }
}

weft_wire::named! {
    /// The phases of coming up, in order, with their names for people.
    #[derive(PartialOrd, Ord)]
    pub enum StartPhase {
        /// Agents run.
        AgentsStarted = "agents started",
        /// Links are up.
        LinksUp = "links up",
        /// Subnet managers have found nodes.
        NodesDiscovered = "nodes discovered",
        /// End ports have LIDs.
        Lids = "LIDs assigned",
        /// Forwarding tables are written.
        Tables = "tables written",
        /// Ports are Active.
        PortsActive = "ports active",
    }
}

/// How far one phase is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number that is done.
    pub done: u64,
    /// The number in all.
    pub total: u64,
}

#[derive(Debug, Default)]
struct Line {
    count: Count,
    finished: Option<Duration>,
}

/// The phases of one start.
#[derive(Debug)]
pub struct Phases {
    start: Instant,
    moved: Instant,
    lines: Vec<Line>,
    /// Who shows them, until they have ended.
    shown: Option<Box<dyn front::Phases>>,
}

impl Phases {
    /// `start`: when the clock began. `phases`: those that this start will have.
    pub fn begin(start: Instant, phases: &[StartPhase], front: &front::Front) -> Self {
        let names: Vec<&'static str> = phases.iter().map(|phase| phase.name()).collect();
        let lines = phases.iter().map(|_| Line::default()).collect();
        Self { start, moved: start, lines, shown: Some(front.listener.start(&names)) }
    }

    /// Takes what is known of a phase.
    pub fn set(&mut self, phase: StartPhase, count: Count) {
        let Some(line) = self.lines.get_mut(phase as usize) else { return };
        if line.count == count {
            return;
        }
        self.moved = Instant::now();
        line.count = count;
        if count.done < count.total {
            line.finished = None;
        }
        if let Some(shown) = &mut self.shown {
            shown.is_at(phase as usize, count.done, count.total);
        }
    }

    /// Takes note that a phase has ended, `at` since the start.
    pub fn finish(&mut self, phase: StartPhase, at: Duration) {
        let Some(line) = self.lines.get_mut(phase as usize) else { return };
        if line.finished.replace(at).is_none()
            && let Some(shown) = &mut self.shown
        {
            shown.has_ended(phase as usize, at);
        }
    }

    /// How far a phase is.
    pub fn count(&self, phase: StartPhase) -> Count {
        self.lines.get(phase as usize).map_or_else(Count::default, |line| line.count)
    }

    /// When a phase ended, since the start.
    pub fn finished(&self, phase: StartPhase) -> Option<Duration> {
        self.lines.get(phase as usize).and_then(|line| line.finished)
    }

    /// When something last moved.
    pub fn moved(&self) -> Instant {
        self.moved
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The start has ended, well or not.
    pub fn end(&mut self) {
        if let Some(mut shown) = self.shown.take() {
            shown.end();
        }
    }
}
