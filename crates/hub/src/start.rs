//! In which order a laboratory starts, and who may begin when. Knows no process, socket or clock: drivers say what
//! happened and when, and do what comes out.
//!
//! Agents are started first, managers beside. When all agents listen, they dial, a few at a time;
//! when all their links are up, the subnet manager begins; then standbys start. A process that has
//! ended is not waited for, and a step in which nothing moves for long gives way to the next.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weft_control::hub::Links;
use weft_control::process::ProcessKind;

use crate::admission::Admission;

/// After this long without progress of those that dial, others may dial, too.
const STALL: Duration = Duration::from_millis(500);

/// What a start goes by.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions {
    /// A step in which nothing has moved for this long gives way to the next.
    pub patience: Duration,
    /// Nodes that the subnet manager is to bring up; without a number its own word counts.
    pub nodes: Option<u32>,
    /// Cores of the machine: some agents for each dial at a time.
    pub cores: usize,
    /// Whether the first subnet manager is among the processes; else all stand by for a remote one.
    pub has_first_sm: bool,
}

/// How far a start is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Agents that listen.
    pub agents_ready: u32,
    /// Agents.
    pub agents: u32,
    /// Ends of cables that have a link.
    pub links_up: u64,
    /// Ends of cables at the agents that have reported theirs.
    pub cable_ends: u64,
}

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// That all agents listen.
    Agents,
    /// That all their links are up.
    Links,
    /// That the subnet manager has brought up the subnet.
    Subnet,
    /// That the other managers are ready.
    Others,
    /// Nothing.
    Done,
}

/// How far one process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Planned,
    Started,
    Ready,
    Begun,
    Ended,
}

#[derive(Debug)]
struct Member {
    kind: ProcessKind,
    stage: Stage,
    links: Option<Links>,
}

impl Member {
    fn is_awaited(&self) -> bool {
        matches!(self.stage, Stage::Planned | Stage::Started)
    }
}

/// The start of a laboratory. Times are since any fixed moment.
#[derive(Debug)]
pub struct Start {
    options: StartOptions,
    members: BTreeMap<String, Member>,
    first_sm: Option<String>,
    step: Step,
    to_start: VecDeque<String>,
    standbys: Vec<String>,
    admission: Admission,
    begun: VecDeque<String>,
    /// Agents that are awaited, and agents whose links are not all up.
    awaited: usize,
    unlinked: usize,
    progress: Progress,
    moved: Duration,
    /// The most links that were up, and the furthest that a subnet manager was.
    most_links: u64,
    furthest: u64,
    is_up: bool,
}

impl Start {
    /// Nothing has been started yet.
    pub fn new(processes: &[(String, ProcessKind)], options: StartOptions, now: Duration) -> Self {
        let names = |kind| -> Vec<String> {
            processes.iter().filter(|(_, own)| *own == kind).map(|(name, _)| name.clone()).collect()
        };
        let mut standbys = names(ProcessKind::Sm);
        let first_sm = (options.has_first_sm && !standbys.is_empty()).then(|| standbys.remove(0));
        // It waits for no one's word, so that it is started when there are links.
        standbys.extend(names(ProcessKind::Opensm));
        let mut to_start = VecDeque::from(names(ProcessKind::Agent));
        let agents = to_start.len();
        to_start.extend(first_sm.clone());
        to_start.extend([ProcessKind::Pm, ProcessKind::Vmm, ProcessKind::Ibsim].into_iter().flat_map(names));
        let members = processes
            .iter()
            .map(|(name, kind)| (name.clone(), Member { kind: *kind, stage: Stage::Planned, links: None }));
        let progress = Progress { agents: u32::try_from(agents).unwrap_or(u32::MAX), ..Progress::default() };
        let mut start = Self {
            options,
            members: members.collect(),
            first_sm,
            step: Step::Agents,
            to_start,
            standbys,
            admission: Admission::new(options.cores),
            begun: VecDeque::new(),
            awaited: agents,
            unlinked: agents,
            progress,
            moved: now,
            most_links: 0,
            furthest: 0,
            is_up: false,
        };
        start.advance();
        start
    }

    /// A start that is over.
    pub fn over() -> Self {
        let options = StartOptions { patience: Duration::MAX, nodes: None, cores: 1, has_first_sm: false };
        let mut start = Self::new(&[], options, Duration::ZERO);
        start.step = Step::Done;
        start
    }

    /// What is awaited.
    pub fn step(&self) -> Step {
        self.step
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The next process to start; [`Start::started`] or [`Start::ended`] reports the outcome.
    pub fn next_start(&mut self) -> Option<String> {
        while let Some(name) = self.to_start.pop_front() {
            // It may run already, as after another hub.
            if self.members.get(&name).is_some_and(|member| member.stage == Stage::Planned) {
                return Some(name);
            }
        }
        None
    }

    /// The next process that is to begin now.
    pub fn next_begin(&mut self) -> Option<String> {
        self.begun.pop_front()
    }

    /// Whether a process may have begun: then it gets the request to begin whenever it is met.
    pub fn may_begin(&self, name: &str) -> bool {
        let member = self.members.get(name);
        self.step == Step::Done || member.is_none_or(|member| member.stage == Stage::Begun)
    }

    /// Whether only that is heard of a process which a start needs: all that happens in a fabric that comes up is more.
    pub fn hears_little_of(&self, name: &str) -> bool {
        let is_agent = |member: &Member| member.kind == ProcessKind::Agent;
        self.step != Step::Done && self.members.get(name).is_some_and(is_agent)
    }

    /// A process runs, and is not known to be ready.
    pub fn started(&mut self, name: &str, now: Duration) {
        if let Some(member) = self.members.get_mut(name).filter(|member| member.stage == Stage::Planned) {
            member.stage = Stage::Started;
            self.moved = now;
        }
    }

    /// A process is ready.
    pub fn ready(&mut self, name: &str, now: Duration) {
        let Some(member) = self.members.get_mut(name) else { return };
        if matches!(member.stage, Stage::Ready | Stage::Begun) {
            return;
        }
        let was_awaited = member.is_awaited();
        member.stage = Stage::Ready;
        self.moved = now;
        if member.kind == ProcessKind::Agent {
            self.awaited -= usize::from(was_awaited);
            self.unlinked += usize::from(!was_awaited);
            self.progress.agents_ready += 1;
            if self.step > Step::Agents {
                self.admission.line_up([name.to_owned()]);
            }
        } else if self.first_sm.as_deref() != Some(name) || self.step >= Step::Subnet {
            self.begin(name);
        }
        self.advance();
    }

    /// An agent tells of its links.
    pub fn links(&mut self, name: &str, links: Links, now: Duration) {
        let lives = |member: &&mut Member| member.kind == ProcessKind::Agent && member.stage != Stage::Ended;
        let Some(member) = self.members.get_mut(name).filter(lives) else { return };
        let before = member.links.replace(links);
        if before == Some(links) {
            return;
        }
        let was_linked = before.is_some_and(is_linked);
        let Links { up, total, .. } = before.unwrap_or_default();
        self.progress.links_up = self.progress.links_up + u64::from(links.up) - u64::from(up);
        self.progress.cable_ends = self.progress.cable_ends + u64::from(links.total) - u64::from(total);
        self.unlinked = self.unlinked + usize::from(was_linked) - usize::from(is_linked(links));
        if links.to_dial == 0 {
            self.admission.done(name);
        }
        // A cable that comes and goes is no progress.
        if self.progress.links_up > self.most_links {
            (self.most_links, self.moved) = (self.progress.links_up, now);
        }
        self.advance();
    }

    /// A subnet manager is this far, in any unit. Sweeps that get no further are no progress.
    pub fn swept(&mut self, far: u64, now: Duration) {
        if far > self.furthest {
            (self.furthest, self.moved) = (far, now);
        }
    }

    /// A subnet manager has brought up all that it can reach: this number of nodes.
    pub fn subnet_up(&mut self, nodes: u32) {
        // With more nodes to come there will be another sweep.
        self.is_up |= self.options.nodes.is_none_or(|wanted| nodes >= wanted);
        self.advance();
    }

    /// A process has ended, or cannot be started.
    pub fn ended(&mut self, name: &str, now: Duration) {
        let Some(member) = self.members.get_mut(name).filter(|member| member.stage != Stage::Ended) else {
            return;
        };
        let was_awaited = member.is_awaited();
        member.stage = Stage::Ended;
        self.moved = now;
        if member.kind == ProcessKind::Agent {
            let links = member.links.take();
            self.awaited -= usize::from(was_awaited);
            self.progress.agents_ready -= u32::from(!was_awaited);
            self.unlinked -= usize::from(!links.is_some_and(is_linked));
            let Links { up, total, .. } = links.unwrap_or_default();
            self.progress.links_up -= u64::from(up);
            self.progress.cable_ends -= u64::from(total);
            self.admission.done(name);
        }
        self.advance();
    }

    /// When [`Start::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let pause = if self.admission.is_waiting() { STALL } else { self.options.patience };
        (self.step != Step::Done).then(|| self.moved.saturating_add(pause))
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.moved = now;
        if self.admission.is_waiting() {
            self.admission.stalled();
        } else {
            self.enter_next();
        }
        self.advance();
    }

    /// Goes on as far as nothing is awaited.
    fn advance(&mut self) {
        while self.step != Step::Done && !self.awaits() {
            self.enter_next();
        }
        while let Some(name) = self.admission.next() {
            self.begin(&name);
        }
    }

    fn awaits(&self) -> bool {
        let of = |name: &String| self.members.get(name);
        match self.step {
            Step::Agents => self.awaited > 0,
            Step::Links => self.admission.is_waiting() || self.unlinked > 0,
            Step::Subnet => {
                let manager = self.first_sm.as_ref().and_then(of);
                !self.is_up && manager.is_some_and(|manager| manager.stage != Stage::Ended)
            }
            Step::Others => {
                let mut others = self.members.values().filter(|member| member.kind != ProcessKind::Agent);
                others.any(Member::is_awaited)
            }
            Step::Done => false,
        }
    }

    fn enter_next(&mut self) {
        self.step = match self.step {
            Step::Agents => {
                let ready = self
                    .members
                    .iter()
                    .filter(|(_, member)| member.kind == ProcessKind::Agent && member.stage == Stage::Ready);
                self.admission.line_up(ready.map(|(name, _)| name.clone()));
                Step::Links
            }
            Step::Links => {
                if let Some(manager) = self.first_sm.clone() {
                    self.begin(&manager);
                }
                Step::Subnet
            }
            Step::Subnet => {
                self.to_start.extend(std::mem::take(&mut self.standbys));
                Step::Others
            }
            Step::Others | Step::Done => Step::Done,
        };
    }

    /// Has a process that is ready begin.
    fn begin(&mut self, name: &str) {
        if let Some(member) = self.members.get_mut(name).filter(|member| member.stage == Stage::Ready) {
            member.stage = Stage::Begun;
            self.begun.push_back(name.to_owned());
        }
    }
}

fn is_linked(links: Links) -> bool {
    links.up >= links.total
}

#[cfg(test)]
mod tests;
