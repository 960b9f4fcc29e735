//! The subnet manager itself: what arrives, what is due, what is under way.

mod agenda;
mod announced;
mod functions;
mod holds;
mod known;
mod late;
mod learning;
mod levels;
mod mastership;
mod moves;
mod own_port;
mod patience;
mod phases;
mod planned;
mod rebalance;
mod repair;
mod succession;
mod sweep;
mod tally;
mod task;
mod tenants;
mod traps;

use std::collections::VecDeque;

use weft_machine::{Machine, Time, Timer};
use weft_wire::{AddressedMad, AttributeId, Guid, Method, MgmtClass, Notice, PathRecord, trap};

use crate::election::{Election, Signal, State};
use crate::knowledge::{PortAt, Routed, Subnet};
use crate::moves::Desk;
use crate::requests::Requests;
use crate::sa::{Administrator, Releveled};
use crate::sweep::Audit;
use crate::{
    Activity, Event, GuidToLid, Input, Options, Output, Progress, Reason, SaCounts, SmTimer, SweepPhase,
};
use agenda::{Agenda, Due};
use known::Known;
use learning::Learning;
use own_port::{Attachment, OwnPort};
use patience::Patience;
pub use planned::PlannedKeys;
use rebalance::Rebalancing;
use succession::Succession;
use sweep::Sweep;
use tally::Tally;
use task::Task;
use tenants::Tenants;
use traps::TrapLog;

/// How long a light sweep waits where someone is away.
const LIGHT_LATER: Time = Time::from_secs(1);

/// The subnet manager.
///
/// ```text
///            Attached                                            changed meanwhile
///  Detached ──────────▶ Discover ▶ Learn ▶ (Assign, Route) ▶ Program ▶ Activate ▶ Verify ──▶ Idle
///                          ▲  ▲                                                    │          │
///                          │  └────────────────────────────────────────────────────┘          │
///                          └──── something is new ──── Light, Look ◀──── time, traps ◀────────┘
/// ```
///
/// All reads and writes are MADs through one window. Each step owns what it works on and hands it
/// to the next; between sweeps the manager keeps the subnet and what every device holds.
#[derive(Debug)]
pub struct SubnetManager {
    options: Options,
    /// The one notion of what it is doing.
    task: Task,
    /// The record of the heavy sweep that `task` is a phase of, or of the last one.
    sweep: Sweep,
    /// What is to be done next, and when.
    agenda: Agenda,
    patience: Patience,
    requests: Requests,
    own_port: OwnPort,
    known: Known,
    succession: Succession,
    /// Which of several managers is in charge.
    election: Election,
    audit: Audit,
    traps: TrapLog,
    sa: Administrator,
    /// Requests to move LIDs.
    desk: Desk,
    /// Machines' rows that are to become fresh again.
    rebalancing: Rebalancing,
    learning: Learning,
    /// Ports to which queue pairs are held by moves that broke, until a sweep is over.
    unreleased: Vec<Releveled>,
    tenants: Tenants,
    tally: Tally,
    outputs: VecDeque<Output>,
    now: Time,
}

impl SubnetManager {
    /// A manager that is not attached yet; `guid2lid` has the LIDs of earlier runs.
    pub fn new(options: Options, guid2lid: &GuidToLid) -> Self {
        Self {
            task: Task::Detached,
            sweep: Sweep::default(),
            agenda: Agenda::default(),
            patience: Patience::default(),
            requests: Requests::new(options.limits()).with_m_key(options.keys.m_key),
            own_port: OwnPort::default(),
            known: Known::default(),
            succession: Succession::new(guid2lid.clone()),
            election: Election::default(),
            audit: Audit::default(),
            traps: TrapLog::default(),
            sa: Administrator::new(&options),
            desk: Desk::default(),
            rebalancing: Rebalancing::default(),
            learning: Learning::default(),
            unreleased: Vec::new(),
            tenants: Tenants::default(),
            tally: Tally::default(),
            outputs: VecDeque::new(),
            now: Time::ZERO,
            options,
        }
    }

    /// How far it is. Cheap enough to be asked for every few milliseconds.
    pub fn progress(&self) -> Progress {
        let (stats, before) = (self.requests.stats(), self.tally.progress());
        let (switches, hosts) = match &self.task {
            Task::Discover(discover) => discover.counts(),
            _ => (before.switches, before.hosts),
        };
        let ports_active = match &self.task {
            Task::Activate(activate, _) => activate.ports_active,
            _ => before.ports_active,
        };
        Progress {
            activity: self.activity(),
            switches,
            hosts,
            ports_active,
            done: self.requests.done,
            total: self.requests.asked.max(before.total),
            smps_sent: stats.sent,
            smps_retried: stats.retries,
            vm_lids: before.vm_lids.with_late(self.desk.late.count()),
            audit_pending: self.is_in_doubt() || self.agenda.will_prove(),
            mads_ignored: before.mads_ignored + stats.unmatched + self.sa.counts().ignored,
            ..before
        }
    }

    /// The task as others see it.
    fn activity(&self) -> Activity {
        match &self.task {
            Task::Detached => Activity::Detached,
            _ if self.election.state == State::Standby => Activity::Standby,
            _ if self.election.state == State::NotActive => Activity::NotActive,
            _ if self.own_port.down => Activity::OwnPortDown,
            Task::Idle | Task::Tables(_) if self.known.is_up => Activity::Up,
            Task::Light(_) | Task::Look(..) => Activity::LightSweep,
            Task::Move(_) | Task::Drain(..) | Task::Plug(_) => Activity::Moving,
            task => task.phase().map_or(Activity::Waiting, Activity::Sweeping),
        }
    }

    /// Whether anything is to be read back that may have changed since it was written.
    fn is_in_doubt(&self) -> bool {
        self.options.sweeps.audit_smps > 0 && !(self.requests.unconfirmed.is_empty() && self.audit.is_round())
    }

    /// The path records from the port with this GUID to every other, without asking for them: for studies too large to ask.
    pub fn paths_from(&self, from: Guid) -> Vec<PathRecord> {
        self.sa.paths_from(from)
    }

    /// What subnet administration has done.
    pub fn sa_counts(&self) -> SaCounts {
        self.sa.counts()
    }

    fn say(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn say_all(&mut self, events: impl IntoIterator<Item = Event>) {
        self.outputs.extend(events.into_iter().map(Output::Event));
    }

    /// Turns to another task, and says so where that is another phase of the sweep.
    fn turn_to(&mut self, now: Time, task: Task) {
        if let Some(phase) = task.phase().filter(|phase| !self.sweep.is_in(*phase)) {
            self.enter(now, Some(phase));
        }
        self.task = task;
    }

    /// Ends the phase that is on, if any, and begins the next one, if any.
    fn enter(&mut self, now: Time, phase: Option<SweepPhase>) {
        let events = self.sweep.enter(now, phase, self.requests.counts.total);
        self.say_all(events);
        self.requests.begin_phase();
        self.tally.progress.total = 0;
    }

    /// The routing in force, wherever the subnet is.
    fn routed(&self) -> &Routed {
        self.task.subnet().map_or(self.known.routed(), |subnet| &subnet.routed)
    }

    /// Gives up what is under way, and the subnet as it was known.
    fn give_up(&mut self, now: Time) {
        self.abandon_moves(now);
        if let Some(step) = self.task.step() {
            self.requests.abandon(now, step);
        }
        let task = std::mem::replace(&mut self.task, Task::Idle);
        self.known.give_up(task.into_subnet());
        self.tenants.forget();
    }

    /// Goes on until nothing can be done before the next input or deadline.
    fn run(&mut self, now: Time) {
        loop {
            let finished = self.task.step().is_some_and(|step| self.requests.pump(now, step));
            self.collect();
            if finished {
                self.advance(now);
            } else if self.tables_give_way(now) {
                self.task = Task::Idle;
            } else if self.drain_gives_way(now) || self.gives_way_to_moves(now) {
                self.collect();
            } else if !self.task.is_idle() {
                return;
            } else if self.start_moves(now) {
                // It is pumped next.
            } else if let Some(due) = self.due(now) {
                self.start(now, due);
            } else if !self.start_tables(now) {
                return;
            }
        }
    }

    /// What is due, if this manager may sweep now.
    fn due(&mut self, now: Time) -> Option<Due> {
        if self.election.state.sweeps() { self.agenda.due(now) } else { None }
    }

    /// A drained move goes on; a light sweep that has found nothing gives way to moves that wait.
    fn gives_way_to_moves(&mut self, now: Time) -> bool {
        match &self.task {
            Task::Drain(carry, until) if *until <= now || self.is_held(carry) => {}
            Task::Light(check) if self.may_move(now) && check.can_wait() => {}
            _ => return false,
        }
        match std::mem::replace(&mut self.task, Task::Idle) {
            Task::Drain(carry, _) => self.task = self.drained(now, carry),
            Task::Light(check) => self.postpone_light(now, *check),
            other => self.task = other,
        }
        true
    }

    /// Reading tables for subnet administration gives way to a sweep that is due.
    fn tables_give_way(&mut self, now: Time) -> bool {
        let Task::Tables(read) = &self.task else { return false };
        if self.agenda.next(now).is_none_or(|timer| timer.at > now) && !self.may_move(now) {
            return false;
        }
        self.requests.abandon(now, read.as_ref());
        true
    }

    /// Moves what the step and the requests have to say into the outputs.
    fn collect(&mut self) {
        let events = self.task.take_events();
        self.say_all(events);
        let events = std::mem::take(&mut self.sa.events);
        self.tally.progress.repaths += events.len() as u64;
        self.say_all(events);
        while let Some(mad) = self.requests.poll_output().or_else(|| self.sa.poll_output()) {
            self.outputs.push_back(Output::Send(mad));
        }
    }

    fn start(&mut self, now: Time, due: Due) {
        match due {
            Due::Heavy(reason) => self.start_heavy(now, reason),
            // It would take those who are away for gone.
            Due::Light(reason) if self.desk.is_anyone_away() => self.agenda.light(now + LIGHT_LATER, reason),
            Due::Light(reason) => self.start_light(now, reason),
            Due::Look(reason, nodes) => self.start_look(now, reason, nodes),
            // They are missing on purpose.
            Due::Prove if self.desk.late.is_any() => self.plan_proof(now),
            Due::Prove => {
                self.prove(now);
                self.prepare_moves();
                self.rebalance(now);
            }
            Due::Rebalance => self.rebalance(now),
            Due::Learn => self.learn(now),
            Due::Partitions => self.start_partitions(now),
            Due::Plug => self.start_plug(now),
            Due::LateRows => self.start_late_rows(now),
        }
    }

    fn receive(&mut self, now: Time, received: &AddressedMad) {
        let mad = &received.mad;
        if mad.class() == MgmtClass::SubnAdm {
            self.sa.receive(now, received, self.requests.stats().sent as u32);
            self.take_move_requests(now);
            self.take_report(now);
        } else if !mad.is_smp() && !answers_congestion(mad) {
            self.tally.ignored += 1;
        } else if mad.method().is_response() && Self::is_for_election(mad) {
            self.elected(now, mad);
        } else if mad.method().is_response() {
            if let Some(step) = self.task.step() {
                // An answer without a request is counted by the transactions.
                self.requests.receive(now, received, step);
            } else {
                self.tally.ignored += 1;
            }
        } else {
            match (mad.class(), mad.method(), mad.attribute_id()) {
                (MgmtClass::SubnLid, Method::Trap, AttributeId::Notice) => self.hear(now, received),
                (_, Method::Get, AttributeId::SmInfo) => self.introduce(now, received),
                (_, Method::Set, AttributeId::SmInfo) => self.commanded(now, received),
                _ => self.tally.ignored += 1,
            }
        }
    }

    fn hear(&mut self, now: Time, received: &AddressedMad) {
        if matches!(self.election.state, State::Standby | State::NotActive) {
            // The trap repeats until the manager in charge has set its LID at the port.
            self.tally.ignored += 1;
            return;
        }
        let Some((trap, new)) = self.traps.note(received) else {
            self.tally.ignored += 1;
            return;
        };
        let sharing = self.sharing(trap);
        let heard = match sharing.and_then(|zero| self.subnet()?.path(zero)) {
            Some(path) => traps::repress_along(received, &path, self.options.keys.m_key),
            None => traps::repress(received, self.options.keys.m_key),
        };
        self.send_all(heard);
        let calls_for_sweep = [trap::LINK_STATE_CHANGE, trap::LOCAL_CHANGES].contains(&trap.number);
        let news = new && calls_for_sweep;
        if new {
            self.sa.hear(now, received.lid, &Notice::from_smp_data(received.mad.smp_data()));
        }
        self.say(Event::TrapReceived { number: trap.number, lid: trap.lid, news });
        if !news || self.task.is_detached() {
            return;
        }
        let reason = Reason::Trap { number: trap.number, lid: trap.lid };
        let delay = Time::from_millis(self.options.sweeps.trap_delay_ms);
        let owner = self.routed().lids.owner(trap.lid).map(|port| port.node.0);
        let node = sharing.map(|zero| zero.node).or(owner);
        if trap.number == trap::LINK_STATE_CHANGE && self.waits_for_moves(now, node) {
            return;
        }
        if !self.options.sweeps.one_sweep_per_cable {
            self.agenda.owe(reason);
        } else if trap.number != trap::LINK_STATE_CHANGE {
            self.agenda.heavy(now + delay, reason);
        } else if !self.task.will_verify() || self.sweep.is_repair() {
            match node {
                Some(node) => self.agenda.look(now + delay, reason, node),
                None => self.agenda.heavy(now + delay, reason),
            }
        }
    }

    /// The subnet, whoever works on it.
    fn subnet(&self) -> Option<&Subnet> {
        self.task.subnet().or(self.known.subnet.as_ref())
    }

    /// Port 0 of the vSwitch that a trap comes from, where its LID is the physical function's too: only switches say that a
    /// link changed.
    fn sharing(&self, trap: traps::Trap) -> Option<PortAt> {
        let owner = self.routed().lids.owner(trap.lid)?;
        let adapters = &self.subnet()?.adapters;
        adapters.sharing(owner).filter(|_| trap.number == trap::LINK_STATE_CHANGE)
    }

    /// Whether a switch's trap is about one who is on its way, so that it waits.
    fn waits_for_moves(&mut self, now: Time, node: Option<u32>) -> bool {
        let guid = node.and_then(|node| Some(self.subnet()?.node(node)?.guid()));
        let Some(guid) = guid.filter(|guid| self.desk.keeps_trap(*guid)) else { return false };
        if self.desk.expects_at(guid) {
            self.agenda.plug(now);
        }
        true
    }

    /// The operator wants a sweep. A manager that is not in charge looks around.
    fn resweep(&mut self, now: Time, heavy: bool) {
        if self.task.is_detached() || !self.election.state.is_in_charge() {
            self.signal(now, Signal::Command);
        } else if heavy {
            self.agenda.heavy(now, Reason::Command);
        } else {
            self.agenda.light(now, Reason::Command);
        }
    }

    fn attach(&mut self, now: Time, own: Attachment) {
        self.detach(now);
        self.own_port.at = Some(own);
        self.election.reset(now, Some(own.guid));
        self.tenants.attach(self.options.routing.engine.partitions.as_ref(), own.guid);
        self.task = Task::Idle;
        // A manager that was here before may have left SMPs on the wire.
        self.requests.unconfirmed.note_everything(now);
        self.agenda.heavy(now, Reason::Start);
        self.signal(now, Signal::Attached);
    }

    fn detach(&mut self, now: Time) {
        self.requests.renew(now);
        self.sa.detach(now);
        self.desk.clear();
        self.rebalancing = Rebalancing::default();
        let task = std::mem::replace(&mut self.task, Task::Detached);
        self.known.detach(task.into_subnet());
        self.tenants.forget();
        self.known.withdraw_routing();
        self.own_port.detach();
        self.succession.arrival = None;
        self.agenda.clear();
        self.election.reset(now, None);
        self.traps.clear();
        self.patience = Patience::default();
    }
}

fn answers_congestion(mad: &weft_wire::Mad) -> bool {
    mad.class() == MgmtClass::CongestionControl && mad.method().is_response()
}

impl Machine for SubnetManager {
    type Input = Input;
    type Output = Output;
    type Reason = SmTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        self.wake(now);
        match input {
            Input::Attached { port_guid, port, .. } => self.attach(now, Attachment { guid: port_guid, port }),
            Input::Detached => self.detach(now),
            Input::Receive(mad) => self.receive(now, &mad),
            Input::PortChanged { up } => self.port_changed(now, up),
            Input::Resweep { heavy } => self.resweep(now, heavy),
            Input::Partitions(partitions) => self.take_partitions(now, partitions),
            Input::Instruct { guid, instruction } => self.instruct(now, guid, instruction),
        }
        self.run(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.wake(now);
        if let Some(step) = self.task.step() {
            self.requests.expire(now, step);
        }
        self.sa.handle_timeout(now);
        self.expire_away(now);
        self.elect(now);
        self.run(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<SmTimer>> {
        let sweeping = match self.task {
            Task::Detached => return None,
            Task::Idle if !self.election.state.sweeps() => None,
            Task::Idle => self.agenda.next(self.now),
            Task::Tables(_) => Timer::earliest([self.agenda.next(self.now), self.requests.next_timer()]),
            Task::Drain(_, until) => self.drain_timer(until),
            _ => self.requests.next_timer(),
        };
        let away = Timer::new(self.desk.until(), SmTimer::Away);
        Timer::earliest([sweeping, away, self.sa.next_timer(), self.election.next_timer()])
    }
}
