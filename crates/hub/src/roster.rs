//! The laboratory's processes, with what each is doing and which of its events have been heard.
//!
//! Knows no socket and no clock: drivers say what they found and when.

use std::collections::{BTreeMap, BTreeSet};

use weft_control::event::EventHead;
use weft_control::hub::{EndKind, Links, ProcessEnd, ProcessLine, ProcessState};
use weft_control::process::{ProcessKind, Subscribed};
use weft_control::{Incarnation, NamePage, Since, Utc};

use crate::heard::{Greeting, READY};

/// The most processes that are known at the same time; further ones are left out and counted.
pub const PROCESSES_MAX: usize = 65_536;
/// The longest text about what is wrong with a process, in characters.
const PROBLEM_CHARS_MAX: usize = 200;

/// All processes by name.
#[derive(Debug, Default)]
pub struct Roster {
    processes: BTreeMap<String, Known>,
    left_out: u64,
    restarts: u64,
    events: u64,
    events_lost: u64,
    events_refused: u64,
}

#[derive(Debug)]
struct Known {
    /// What a listing shows of it.
    line: ProcessLine,
    /// The laboratory consists of it no more: it is forgotten when it has ended.
    is_gone: bool,
    /// That life is known to be over.
    is_over: bool,
    /// Behind the last event that was heard.
    next: Option<(Incarnation, u64)>,
    events_refused: u64,
}

impl Known {
    fn new(name: &str, kind: Option<ProcessKind>, is_expected: bool, now: Utc) -> Self {
        let name = name.to_owned();
        let line = ProcessLine { name, kind, is_expected, since: now, ..ProcessLine::default() };
        Self { line, is_gone: false, is_over: false, next: None, events_refused: 0 }
    }

    fn enter(&mut self, state: ProcessState, now: Utc) {
        if self.line.state != state {
            (self.line.state, self.line.since) = (state, now);
        }
    }

    fn line(&self) -> ProcessLine {
        let links = self.line.links.filter(|_| self.line.state.is_alive());
        ProcessLine { links, ..self.line.clone() }
    }
}

/// What an event means for the stream of all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// It has been heard before.
    Known,
    /// It is new.
    New,
    /// It is new, and before it this many were lost without a word.
    NewAfterGap(u64),
}

impl Roster {
    /// The laboratory was planned with this process.
    pub fn expect(&mut self, name: &str, kind: ProcessKind, now: Utc) {
        self.processes.entry(name.to_owned()).or_insert_with(|| Known::new(name, Some(kind), true, now));
    }

    /// The laboratory consists of these processes from now on. Those that it does not consist of any more are forgotten when they
    /// have ended; gives their names.
    pub fn plan(&mut self, processes: &[(String, ProcessKind)], now: Utc) -> Vec<String> {
        let planned: BTreeSet<&str> = processes.iter().map(|(name, _)| name.as_str()).collect();
        let mut gone = Vec::new();
        for (name, known) in &mut self.processes {
            if known.line.is_expected && !planned.contains(name.as_str()) {
                (known.line.is_expected, known.is_gone) = (false, true);
                gone.push(name.clone());
            }
        }
        self.processes.retain(|_, known| !known.is_gone || known.line.state.is_alive());
        for (name, kind) in processes {
            self.expect(name, *kind, now);
            if let Some(known) = self.processes.get_mut(name) {
                (known.line.is_expected, known.is_gone, known.line.kind) = (true, false, Some(*kind));
            }
        }
        gone
    }

    /// A process has a socket; false when there are too many.
    pub fn admit(&mut self, name: &str, now: Utc) -> bool {
        if self.processes.contains_key(name) {
            return true;
        }
        if self.processes.len() >= PROCESSES_MAX {
            self.left_out += 1;
            return false;
        }
        self.processes.insert(name.to_owned(), Known::new(name, None, false, now));
        true
    }

    /// Takes note that a process has left no trace of a life. False when it was met all the same.
    pub fn dismiss(&mut self, name: &str) -> bool {
        let Some(known) = self.processes.get(name) else { return true };
        let was_met =
            known.line.incarnation.is_some() || (known.line.is_expected && known.line.state.is_alive());
        if !was_met && !known.line.is_expected {
            self.processes.remove(name);
        }
        !was_met
    }

    /// A process runs, and has not said who it is yet.
    pub fn silent(&mut self, name: &str, now: Utc) {
        if let Some(known) = self.processes.get_mut(name).filter(|known| !known.line.state.is_alive()) {
            known.enter(ProcessState::Silent, now);
        }
    }

    /// A process does not answer any more, and still runs.
    pub fn fell_silent(&mut self, name: &str, now: Utc) {
        if let Some(known) = self.processes.get_mut(name) {
            known.enter(ProcessState::Silent, now);
        }
    }

    /// A process has said who it is. True when its life before this one has ended without being noticed.
    pub fn met(&mut self, name: &str, greeting: Greeting, now: Utc) -> bool {
        let Some(known) = self.processes.get_mut(name) else { return false };
        let is_same = known.line.incarnation == Some(greeting.incarnation);
        let unnoticed = !is_same && known.line.incarnation.is_some() && !known.is_over;
        // A process that was met before keeps its state: only the connection is new.
        if !is_same
            || matches!(known.line.state, ProcessState::Silent | ProcessState::Expected | ProcessState::Ended)
        {
            known.enter(ProcessState::Starting, now);
        }
        // What the laboratory was planned with is what the plan says.
        known.line.kind =
            known.line.kind.filter(|_| known.line.is_expected).or(greeting.kind).or(known.line.kind);
        known.line.version = Some(greeting.version);
        known.line.pid = Some(greeting.pid);
        known.line.incarnation = Some(greeting.incarnation);
        known.is_over = false;
        known.line.problem =
            (greeting.name != name).then(|| shortened(&format!("it calls itself {}", greeting.name)));
        unnoticed
    }

    /// A process says that it is ready.
    pub fn ready(&mut self, name: &str, now: Utc) {
        let known = self.processes.get_mut(name).filter(|known| known.line.state == ProcessState::Starting);
        if let Some(known) = known {
            known.enter(ProcessState::Ready, now);
        }
    }

    /// An agent tells of its links.
    pub fn links(&mut self, name: &str, links: Links) {
        if let Some(known) = self.processes.get_mut(name) {
            known.line.links = Some(links);
        }
    }

    /// A process speaks no version of the protocol that the hub speaks.
    pub fn other_protocol(&mut self, name: &str, version: Option<u32>, now: Utc) {
        let Some(known) = self.processes.get_mut(name) else { return };
        known.enter(ProcessState::OtherProtocol, now);
        known.line.problem = Some(version.map_or_else(
            || "it speaks another version of the control protocol".to_owned(),
            |version| format!("it speaks version {version} of the control protocol"),
        ));
    }

    /// Something is wrong with a process.
    pub fn problem(&mut self, name: &str, problem: &str) {
        if let Some(known) = self.processes.get_mut(name) {
            known.line.problem = Some(shortened(problem));
        }
    }

    /// From where on a process is to tell its events.
    pub fn resume(&self, name: &str) -> Since {
        let next = self.processes.get(name).and_then(|known| known.next);
        next.map_or(Since::Start, |(incarnation, next)| Since::behind(incarnation, next))
    }

    /// A process tells its events. How many it has forgotten that have not been heard, and the number of the last of them.
    pub fn subscribed(&mut self, name: &str, told: Subscribed, now: Utc) -> Option<(u64, u64)> {
        let known = self.processes.get_mut(name)?;
        known.next = Some((told.incarnation, told.next));
        if told.forgotten == 0 {
            return None;
        }
        // It has forgotten events, its `process-ready` among them: it has long been ready.
        if known.line.state == ProcessState::Starting {
            known.enter(ProcessState::Ready, now);
        }
        known.line.events_lost += told.forgotten;
        self.events_lost += told.forgotten;
        Some((told.forgotten, told.next.saturating_sub(1)))
    }

    /// A process sent an event.
    pub fn hear(&mut self, name: &str, head: &EventHead, now: Utc) -> Novelty {
        let Some(known) = self.processes.get_mut(name) else { return Novelty::Known };
        let expected = match known.next {
            Some((incarnation, next)) if incarnation == head.incarnation => next,
            _ => 0,
        };
        if head.sequence < expected {
            return Novelty::Known;
        }
        known.next = Some((head.incarnation, head.sequence.saturating_add(1)));
        let gap = head.sequence - expected;
        let lost = match head.lost() {
            // A slow reader learns of a gap by an event with the number of the last one lost.
            Some(count) if count == gap.saturating_add(1) => count,
            _ => gap,
        };
        known.line.events_lost += lost;
        self.events_lost += lost;
        known.line.events += 1;
        self.events += 1;
        match head.event.as_str() {
            READY if known.line.state == ProcessState::Starting => known.enter(ProcessState::Ready, now),
            "process-stopping" => known.enter(ProcessState::Stopping, now),
            _ => {}
        }
        if lost == gap && gap > 0 { Novelty::NewAfterGap(gap) } else { Novelty::New }
    }

    /// What a process is.
    pub fn kind(&self, name: &str) -> Option<ProcessKind> {
        self.processes.get(name)?.line.kind
    }

    /// A process sent an event that is not its own; the number of those that it has sent.
    pub fn refuse_event(&mut self, name: &str) -> u64 {
        self.events_refused += 1;
        let Some(known) = self.processes.get_mut(name) else { return 0 };
        known.events_refused += 1;
        known.line.problem = Some("it tells events about other processes, which are refused".to_owned());
        known.events_refused
    }

    /// A process has ended. False when that was known.
    pub fn ended(&mut self, name: &str, end: ProcessEnd) -> bool {
        let Some(known) = self.processes.get_mut(name) else { return false };
        let was_known = known.line.state == ProcessState::Ended;
        known.enter(ProcessState::Ended, end.time);
        known.line.pid = None;
        known.is_over = true;
        if was_known && known.line.last_end.is_some_and(|last| last.how == end.how) {
            return false;
        }
        known.line.last_end = Some(end);
        if known.is_gone {
            self.processes.remove(name);
        }
        !was_known
    }

    /// A process was started again; how often that has happened to it.
    pub fn restarted(&mut self, name: &str) -> u64 {
        self.restarts += 1;
        let Some(known) = self.processes.get_mut(name) else { return 0 };
        known.line.restarts += 1;
        known.line.restarts
    }

    /// The state of a process.
    pub fn state(&self, name: &str) -> Option<ProcessState> {
        self.processes.get(name).map(|known| known.line.state)
    }

    /// The names of all processes in a state.
    pub fn in_state(&self, state: ProcessState) -> Vec<String> {
        let wanted = self.processes.iter().filter(|(_, known)| known.line.state == state);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// How many processes there are of each state.
    pub fn states(&self) -> [(ProcessState, u64); 7] {
        ProcessState::ALL.map(|state| {
            let count = self.processes.values().filter(|known| known.line.state == state).count();
            (state, count as u64)
        })
    }

    /// How many processes are expected, and how many of them run.
    pub fn expected(&self) -> (u64, u64) {
        let expected = self.processes.values().filter(|known| known.line.is_expected);
        expected.fold((0, 0), |(all, alive), known| (all + 1, alive + u64::from(known.line.state.is_alive())))
    }

    /// Events heard, lost and refused, restarts, and processes left out.
    pub fn totals(&self) -> Totals {
        let Self { left_out, restarts, events, events_lost, events_refused, .. } = *self;
        Totals { events, events_lost, events_refused, restarts, left_out }
    }

    /// A page of the list; also tells whether more follows.
    pub fn page(&self, page: &NamePage) -> (Vec<ProcessLine>, bool) {
        use std::ops::Bound;
        let from = page.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.processes.range::<String, _>((from, Bound::Unbounded)).peekable();
        let lines = rest.by_ref().take(page.items_max()).map(|(_, known)| known.line()).collect();
        (lines, rest.peek().is_some())
    }
}

/// What has been counted since the hub began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events heard.
    pub events: u64,
    /// Events that processes forgot before they were heard.
    pub events_lost: u64,
    /// Events that processes sent about others.
    pub events_refused: u64,
    /// Processes started again.
    pub restarts: u64,
    /// Processes left out because there were too many.
    pub left_out: u64,
}

/// An end whose exit code is not known.
pub fn end_without_code(how: EndKind, time: Utc) -> ProcessEnd {
    ProcessEnd { time, how, code: None, signal: None }
}

fn shortened(text: &str) -> String {
    text.chars().take(PROBLEM_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
