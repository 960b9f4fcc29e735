//! The manager: one decision after the other, from what the journal says and from what agents say.
//!
//! Nothing here remembers which message it waits for. Each time something happens, every virtual machine that is concerned is looked
//! at, and whatever has to be done next and is not yet done follows from the step in the book and from the contents of slots. So a message
//! that is lost, doubled or late, and a manager that begins in the middle, need no cases of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Machine, Time, Timer};
use weft_vocabulary::vm::{Event, Step};
use weft_wire::Guid;

use crate::book::Book;
use crate::error::{VmError, Why};
use crate::hosts::{Heard, Hosts};
use crate::identity::PortIdentity;
use crate::input::Input;
use crate::names::{HostName, Place, Slot, VmName};
use crate::options::Options;
use crate::output::Output;
use crate::record::Record;
use crate::request::{Reply, RequestId};
use crate::sm::SmAnswer;
use crate::task::Task;
use crate::timers::VmTimer;
use crate::{agent, request};

use disk::Disk;
use due::Due;
pub use show::Census;

mod admit;
mod ahead;
mod begin;
mod disk;
mod due;
mod ends;
mod hold;
mod moves;
mod show;
mod silent;
mod slots;
mod undo;
mod word;

/// Passes over everything that is under way after one input. What is left waits for the next one.
const PASSES_MAX: u32 = 64;

/// The VM manager.
#[derive(Debug)]
pub struct VmManager {
    options: Options,
    phase: Phase,
    book: Book,
    hosts: Hosts,
    disk: Disk,
    tasks: BTreeMap<VmName, Task>,
    /// Virtual machines that are to be looked at, whether they have a task or not.
    check: BTreeSet<VmName>,
    /// Whether everyone with a task is to be looked at.
    everyone: bool,
    due: Due,
    /// Slots to be looked at, and whether they are to be cleared even if they look free.
    sweep: BTreeMap<Slot, Sweep>,
    queue: VecDeque<Waiting>,
    fleets: BTreeMap<RequestId, Fleet>,
    /// Requests without an answer.
    open: BTreeSet<RequestId>,
    /// Questions for plans.
    plans: BTreeMap<u64, (RequestId, Time)>,
    /// Ends of holds that the subnet manager has not answered.
    releases: BTreeMap<u64, hold::Unheld>,
    sm_number: u64,
    /// GUIDs of the fabric.
    taken: BTreeSet<Guid>,
    counts: Counts,
    /// When everything was looked at last. What was due then waits for something else.
    ran_at: Time,
    /// Whether there was more to do than one input may cause.
    unfinished: bool,
    outputs: VecDeque<Output>,
    /// What waits for the disk: answers to clients.
    deferred: VecDeque<(u64, Output)>,
}

/// What the manager has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests.
    pub requests: u64,
    /// Requests that found the queue full.
    pub queue_full: u64,
    /// Answers of agents or of the subnet manager that belonged to nothing: late or doubled.
    pub strays: u64,
    /// Reports of agents that cannot be.
    pub bad_reports: u64,
    /// Moves that were completed.
    pub moved: u64,
    /// Moves that were undone.
    pub undone: u64,
    /// Virtual machines lost.
    pub lost: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Not started.
    Idle,
    /// Agents are asked for their generations.
    Gathering {
        until: Time,
        /// The highest generation heard of.
        heard: u64,
    },
    /// Its generation goes to disk.
    Starting {
        write: u64,
        /// Whether it has not run before.
        first: bool,
    },
    Running,
    Stopped(Why),
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    id: RequestId,
    request: request::Request,
    until: Time,
    /// Whether it has had its turn, and waits at least for as long as everything is in use.
    was_full: bool,
}

/// Creations of one request.
#[derive(Debug, Default)]
struct Fleet {
    left: u32,
    single: bool,
    made: Vec<(VmName, Slot)>,
    wanted: u32,
    first_error: Option<VmError>,
}

/// Why a slot is looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    /// Clear it with a later epoch than this, even if it looks free: a late command may be under way to it.
    after: Option<u64>,
    /// Nothing is tried before.
    at: Time,
    /// The write that has to be on disk before.
    disk: u64,
}

impl VmManager {
    /// A manager that has not started.
    pub fn new(options: Options) -> Self {
        let options = options.sound();
        Self {
            phase: Phase::Idle,
            book: Book::default(),
            hosts: Hosts::new(options.timeout, options.tries),
            disk: Disk::default(),
            tasks: BTreeMap::new(),
            check: BTreeSet::new(),
            everyone: false,
            due: Due::default(),
            sweep: BTreeMap::new(),
            queue: VecDeque::new(),
            fleets: BTreeMap::new(),
            open: BTreeSet::new(),
            plans: BTreeMap::new(),
            releases: BTreeMap::new(),
            sm_number: 0,
            taken: BTreeSet::new(),
            counts: Counts::default(),
            ran_at: Time::ZERO,
            unfinished: false,
            outputs: VecDeque::new(),
            deferred: VecDeque::new(),
            options,
        }
    }

    /// What it has counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether nothing is under way and no request waits.
    pub fn is_at_rest(&self) -> bool {
        let idle = self.tasks.is_empty() && self.queue.is_empty() && self.sweep.is_empty();
        self.phase == Phase::Running && idle && self.plans.is_empty() && self.disk.synced == self.disk.written
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Answers a client when everything that was decided is on disk.
    fn reply(&mut self, id: RequestId, result: Result<Reply, VmError>) {
        if self.open.remove(&id) {
            self.deferred.push_back((self.disk.written, Output::Reply { id, result }));
        }
    }

    /// A later epoch than all before.
    fn next_epoch(&mut self) -> u64 {
        self.book.epoch = self.book.epoch.saturating_add(1);
        self.book.epoch
    }

    /// The next epoch is later than this one.
    fn raise_epoch(&mut self, known: u64) {
        if known <= agent::COUNT_MAX {
            self.book.epoch = self.book.epoch.max(known);
        }
    }

    /// Writes down the next step of a move; nothing is done before it is on disk.
    fn advance(&mut self, name: &VmName, step: Step, epoch: u64) {
        let write = self.record(Record::Step { name: name.clone(), step, epoch });
        let why = self.tasks.get_mut(name).and_then(|task| {
            (task.disk, task.again_at, task.stage_ends) = (write, None, None);
            (task.activate_again, task.refused) = (Time::ZERO, None);
            task.why.clone()
        });
        let reason = why.filter(|_| step == Step::Undo).map(|why| why.to_string());
        self.event(Event::MoveStep { vm: name.to_string(), step, reason });
    }

    /// The same in an epoch of its own.
    fn advance_anew(&mut self, name: &VmName, step: Step) {
        let epoch = self.next_epoch();
        self.advance(name, step, epoch);
    }

    /// Does nothing any more.
    fn stop(&mut self, why: impl Into<Why>) {
        if matches!(self.phase, Phase::Stopped(_)) {
            return;
        }
        let why = why.into();
        self.event(Event::ManagerStopped { reason: why.to_string() });
        self.phase = Phase::Stopped(why.clone());
        // What waits for the disk may be untrue: nothing more gets there.
        self.deferred.clear();
        for id in std::mem::take(&mut self.open) {
            let result = Err(VmError::Stopped(why.clone()));
            self.outputs.push_back(Output::Reply { id, result });
        }
        self.tasks.clear();
        self.queue.clear();
        self.fleets.clear();
        self.plans.clear();
        self.releases.clear();
        self.sweep.clear();
        self.check.clear();
        self.due = Due::default();
    }

    fn hear(&mut self, now: Time, host: &HostName, number: u64, outcome: agent::Outcome) {
        match self.hosts.answer(now, host, number, outcome) {
            Heard::Stray => self.counts.strays += 1,
            Heard::BadReport(why) => {
                self.counts.bad_reports += 1;
                self.event(Event::BadReport { host: host.to_string(), reason: why });
            }
            Heard::Superseded(other) => self.superseded(other),
            Heard::Report { generation, epoch } => {
                self.everyone = true;
                self.raise_epoch(epoch);
                self.reported(now, host, generation);
            }
            Heard::Done(slot) => self.look_at(now, &slot),
            Heard::Image(slot, image) => {
                let name = self.book.claim(&slot).cloned();
                if let Some(task) = name.as_ref().and_then(|name| self.tasks.get_mut(name)) {
                    task.image = Some(image);
                }
                self.check.extend(name);
            }
            Heard::Refused(slot, deed, refusal) => {
                if let agent::Refusal::Epoch(known) = refusal {
                    self.raise_epoch(known);
                }
                self.hosts.inspect(now, &slot.host);
                self.everyone = true;
                self.refused(now, &slot, &deed, &refusal);
            }
        }
    }

    /// A slot's content has changed.
    fn look_at(&mut self, now: Time, slot: &Slot) {
        if let Some(name) = self.book.claim(slot) {
            self.check.insert(name.clone());
        } else {
            // The end of a move waits for that, where the slot is a source.
            self.everyone = true;
            self.mark_slot(now, slot.clone(), None);
        }
    }

    /// Has a slot looked at when what was decided is on disk.
    fn mark_slot(&mut self, at: Time, slot: Slot, after: Option<u64>) {
        let disk = self.disk.written;
        let sweep = self.sweep.entry(slot).or_insert(Sweep { after, at, disk });
        sweep.after = sweep.after.max(after);
        sweep.disk = disk;
    }

    fn sm_answered(&mut self, now: Time, number: u64, answer: SmAnswer) {
        if let Some((id, _)) = self.plans.remove(&number) {
            self.planned(id, answer);
            return;
        }
        let is_aside = self.unheld(now, number, &answer)
            || self.held_again(now, number, &answer)
            || self.told_silent(number, &answer);
        if is_aside {
            return;
        }
        let is_asked =
            |(_, task): &(&VmName, &mut Task)| task.sm.asked.is_some_and(|(asked, _)| asked == number);
        let Some((name, task)) = self.tasks.iter_mut().find(is_asked) else {
            self.counts.strays += 1;
            return;
        };
        task.sm.asked = None;
        // A hold is asked for once: the machine still runs.
        let holds = self.book.moving(name).is_some_and(|(_, moving)| moving.step == Step::Reserve);
        match answer {
            SmAnswer::Timeout | SmAnswer::Unready(_) if !holds => {
                task.again_at = Some(now + self.options.sm_retry);
            }
            // The subnet manager has taken over, and is about to give the port its LID.
            SmAnswer::Later(wait) if !holds => {
                task.again_at = Some(now + wait.clamp(hold::LATER_MIN, self.options.sm_retry));
            }
            SmAnswer::Refused(words) => task.sm.answer = Some(SmAnswer::Refused(agent::cut(&words))),
            answer => task.sm.answer = Some(answer),
        }
    }

    fn take(&mut self, now: Time, input: Input) {
        // The others say themselves whom they concern.
        self.everyone |= !matches!(
            input,
            Input::Answer { .. } | Input::Synced(_) | Input::PortHasLid { .. } | Input::Request { .. }
        );
        match input {
            Input::Start { journal, hosts, guids } => self.start(now, journal.as_deref(), hosts, guids),
            Input::HostUp(host) => self.hosts.up(now, &host),
            Input::HostDown(host) => self.hosts.down(now, &host),
            Input::HostEnded { host, incarnation, how } => {
                self.hosts.ended(now, &host, incarnation, &how);
                let names: Vec<VmName> = self.book.claims_of(&host).map(|(_, name)| name.clone()).collect();
                self.check.extend(names);
            }
            Input::Answer { host, number, outcome } => self.hear(now, &host, number, outcome),
            Input::PortHasLid { place, port_guid, lid } => self.has_lid(&place, port_guid, lid),
            Input::Synced(number) => {
                self.disk.synced = self.disk.synced.max(number.min(self.disk.written));
                self.check.append(&mut self.due.take_synced(self.disk.synced));
            }
            Input::DiskFailed(words) => self.stop(format!("the journal: {}", agent::cut(&words))),
            Input::Partitions(partitions) => self.options.partitions = Some(partitions),
            Input::Sm { number, answer } => self.sm_answered(now, number, answer),
            Input::Request { id, request } => self.enqueue(now, id, request),
        }
    }

    fn has_lid(&mut self, place: &Place, port_guid: Guid, lid: weft_wire::Lid) {
        if !lid.is_unicast() {
            self.counts.strays += 1;
            return;
        }
        let port = PortIdentity { node_guid: port_guid, port_guid, lid };
        self.hosts.lid(place, &port);
        if let Some(name) = self.book.claim(&place.slot) {
            self.check.insert(name.clone());
        }
    }

    /// Whatever begins, a task is to be looked at.
    fn begin(&mut self, name: VmName, task: Task) {
        self.check.insert(name.clone());
        self.tasks.insert(name, task);
    }

    /// Goes on until nothing can be done before the next input or deadline.
    fn run(&mut self, now: Time) {
        (self.ran_at, self.unfinished) = (now, true);
        self.everyone |= self.hosts.expire(now);
        self.gathered(now);
        self.release_again(now);
        self.look_at_all(now, PASSES_MAX);
        let commands = self.hosts.outputs.drain(..);
        let stopped = matches!(self.phase, Phase::Stopped(_));
        let commands = commands.filter(|_| !stopped);
        self.outputs.extend(commands.map(|(host, command)| Output::Command { host, command }));
        while self.deferred.front().is_some_and(|(write, _)| *write <= self.disk.synced) {
            self.outputs.extend(self.deferred.pop_front().map(|(_, output)| output));
        }
    }

    /// What differs when a pass has done something that the next one may build on. A slot that needs no look any more is free for
    /// requests that wait.
    fn progress(&self) -> [usize; 6] {
        let (tasks, sweep, queue) = (self.tasks.len(), self.sweep.len(), self.queue.len());
        [self.outputs.len(), self.deferred.len(), self.hosts.outputs.len(), tasks, sweep, queue]
    }

    /// What is to be done next about a virtual machine.
    fn look(&mut self, now: Time, name: &VmName) {
        crate::steps::count();
        let synced = self.disk.synced;
        if let Some(write) = self.tasks.get(name).map(|task| task.disk).filter(|write| *write > synced) {
            return self.due.wait_for(write, name);
        }
        if self.phase != Phase::Running {
            return;
        }
        if self.book.moving(name).is_some() {
            self.step(now, name);
        } else {
            self.tend(now, name);
        }
    }
}

impl Machine for VmManager {
    type Input = Input;
    type Output = Output;
    type Reason = VmTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        if let (Phase::Stopped(why), Input::Request { id, .. }) = (&self.phase, &input) {
            let result = Err(VmError::Stopped(why.clone()));
            self.outputs.push_back(Output::Reply { id: *id, result });
            return;
        }
        if !matches!(self.phase, Phase::Stopped(_)) {
            self.take(now, input);
            self.run(now);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if !matches!(self.phase, Phase::Stopped(_)) {
            self.everyone = true;
            self.run(now);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<VmTimer>> {
        if matches!(self.phase, Phase::Stopped(_) | Phase::Idle) {
            return None;
        }
        if self.unfinished {
            return Timer::new(Some(self.ran_at), VmTimer::Stage);
        }
        let gather = match self.phase {
            Phase::Gathering { until, .. } => Some(until),
            _ => None,
        };
        let next = |moments: &mut dyn Iterator<Item = Time>| moments.filter(|at| *at > self.ran_at).min();
        let sweeps = self.sweep.values().map(|sweep| sweep.at);
        let asked = self
            .tasks
            .values()
            .filter_map(|task| task.sm.asked)
            .chain(self.plans.values().map(|(_, at)| (0, *at)))
            .map(|(_, at)| at + self.options.sm_timeout);
        let releases = self.releases.values().filter_map(|release| release.again_at);
        let clients = self.tasks.values().filter(|task| task.request.is_some()).map(|task| task.answer_by);
        let clients = clients.chain(self.queue.iter().map(|waiting| waiting.until));
        Timer::earliest([
            Timer::new(gather, VmTimer::Gather),
            Timer::new(self.hosts.next_expiry(), VmTimer::Agent),
            Timer::new(next(&mut sweeps.chain(self.due.first())), VmTimer::Stage),
            Timer::new(next(&mut asked.chain(releases)), VmTimer::SubnetManager),
            Timer::new(next(&mut clients.into_iter()), VmTimer::Client),
        ])
    }
}

#[cfg(test)]
mod tests;
