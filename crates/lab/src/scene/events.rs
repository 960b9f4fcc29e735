//! Events as the page shows them, and what they make worth asking.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_control::EventKind;
use weft_page::Mark;
use weft_page::state::{EVENTS_MAX, Event, Table};

use crate::events::Told;

/// Events that come too often to be read, and say little.
const QUIET: &[&str] = &[
    "links",
    "swept",
    "phase-started",
    "phase-done",
    "quiet",
    "progress",
    "start-progress",
    "lid-assigned",
    "node-found",
    "trap-sent",
    "process-started",
    "attached",
    "detached",
    "port-state",
    "events-lost",
    "vm-move-step",
    "contributor",
];
/// Events that a time bar shows.
const MARKED: &[&str] = &[
    "fault",
    "fault-set",
    "fault-cleared",
    "process-ended",
    "process-restarted",
    "hot-spot",
    "hot-spot-ended",
    "subnet-up",
    "sweep-incomplete",
    "flow-started",
    "flow-stopped",
    "flow-ended",
    "host-cut-off",
    "sm-state",
    "move-started",
    "move-finished",
    "lab-started",
    "link-degraded",
];

/// What is to be asked again.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Agents whose ports have changed.
    pub(super) agents: BTreeSet<String>,
    /// The hub's list of processes.
    pub(super) status: bool,
    /// The list of flows.
    pub(super) flows: bool,
    /// Faults that last.
    pub(super) faults: bool,
    /// Managers and virtual machines.
    pub(super) managers: bool,
    /// Ways of flows, and partitions: tables have changed.
    pub(super) paths: bool,
    /// All ports, as events were lost.
    pub(super) all: bool,
    /// Processes that have ended.
    pub(super) ended: BTreeSet<String>,
}

impl Due {
    /// Whether anything but the hub's list of processes is asked again.
    pub(super) fn asks(&self) -> bool {
        self.all || self.flows || !self.agents.is_empty()
    }

    /// Notes what an event makes worth asking.
    pub(super) fn note(&mut self, told: &Told) {
        let source = &told.head.source;
        match told.head.event.as_str() {
            "link-up" | "link-down" | "port-state" | "lid-changed" | "link-degraded" | "link-mismatch" => {
                self.agents.insert(source.clone());
            }
            "fault-set" | "fault-cleared" | "fault" => self.faults = true,
            "flow-started" | "flow-stopped" | "flow-ended" => self.flows = true,
            "process-ended" => {
                self.status = true;
                if let Some(EventKind::Lab(weft_control::event::LabEvent::ProcessEnded { process, .. })) =
                    told.kind()
                {
                    self.ended.insert(process);
                }
            }
            "process-started" | "process-ready" | "process-stopping" | "process-failed"
            | "process-restarted" | "lab-started" => {
                self.status = true;
                self.agents.insert(source.clone());
            }
            "subnet-up" | "sweep-incomplete" | "routed" | "move-finished" | "rebalanced" | "unsettled"
            | "partitions-taken" => (self.paths, self.managers) = (true, true),
            "events-lost" => self.all = true,
            _ => {}
        }
        self.managers |= matches!(told.head.area.as_str(), "vm" | "pm")
            || matches!(
                told.head.event.as_str(),
                "sm-state" | "sweep-started" | "hot-spot" | "hot-spot-ended"
            );
    }
}

/// The newest events.
#[derive(Debug, Default)]
pub(super) struct Events {
    next: u64,
    shown: VecDeque<(u64, Event)>,
}

impl Events {
    /// Takes an event; a mark, where a time bar shows it.
    pub(super) fn take(&mut self, told: &Told) -> Option<Mark> {
        let kind = told.head.event.as_str();
        if QUIET.contains(&kind) {
            return None;
        }
        let sentence = told.kind().map_or_else(|| kind.to_owned(), |kind| kind.to_string());
        // Sentences of processes do not say whose they are.
        let text = match told.head.area.as_str() {
            "agent" | "lab" => sentence,
            _ => format!("{}: {sentence}", told.head.source),
        };
        let text: String = text.chars().take(400).collect();
        let at_ms = told.moment.as_nanos() / 1_000_000;
        let (_, node) = told.head.about();
        let event = Event { at_ms, kind: kind.to_owned(), node: node.map(str::to_owned), text: text.clone() };
        self.shown.push_back((self.next, event));
        self.next += 1;
        while self.shown.len() > EVENTS_MAX {
            self.shown.pop_front();
        }
        MARKED.contains(&kind).then(|| Mark { at_ms, kind: kind.to_owned(), text })
    }

    pub(super) fn table(&self) -> Table<Event> {
        let rows: BTreeMap<_, _> =
            self.shown.iter().map(|(id, event)| (id.to_string(), event.clone())).collect();
        rows
    }
}
