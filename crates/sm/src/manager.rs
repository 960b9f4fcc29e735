//! The subnet manager itself: what arrives, what is due, what is under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use weft_machine::{Machine, Time};
use weft_routing::{Lids, ServiceLevels};
use weft_wire::{
    AddressedMad, AttributeId, Guid, Lid, Method, MgmtClass, NodeType, Notice, PathRecord, PortNum,
    VirtualLane, trap,
};

use crate::activate::Activate;
use crate::agenda::{Agenda, Due};
use crate::audit::Audit;
use crate::congestion::Regulate;
use crate::discover::Discover;
use crate::election::{Election, Signal, State};
use crate::held::{Held, Memory};
use crate::learn::Learn;
use crate::light::Check;
use crate::partitions::Keys;
use crate::pipe::{Pipe, Step};
use crate::program::Program;
use crate::repair::Repairs;
use crate::sa::{Administrator, ReadTables};
use crate::subnet::Subnet;
use crate::sweep::Sweep;
use crate::traps::{self, TrapLog};
use crate::{Activity, Event, GuidToLid, Input, Options, Output, Phase, Progress, Reason, SaCounts};

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
/// Everything is asked for and told by MADs through one window. Each step owns what it works on and hands it to the
/// next; between sweeps the manager keeps the subnet as it left it and what every device holds.
#[derive(Debug)]
pub struct SubnetManager {
    pub(crate) options: Options,
    pub(crate) guid2lid: GuidToLid,
    pub(crate) own: Option<Own>,
    pub(crate) pipe: Pipe,
    pub(crate) doing: Doing,
    /// The subnet as the last sweep left it; `None` while a step works on it.
    pub(crate) standing: Option<Subnet>,
    /// What devices hold, between sweeps, and during `Activate`.
    pub(crate) memory: Memory,
    pub(crate) held: Vec<Held>,
    /// Who was there when the last sweep ended.
    pub(crate) known: BTreeMap<Guid, (NodeType, String)>,
    pub(crate) lids: Lids,
    /// The service level of every pair by the last routing; `None` where one lane does.
    pub(crate) levels: Option<Arc<ServiceLevels>>,
    /// The operator's mapping of service levels; that of the options is the one in force.
    pub(crate) sl2vl_given: [u8; 16],
    /// The lane that is management's alone, as it was said last.
    pub(crate) management: Option<Option<VirtualLane>>,
    /// Who has which P_Keys; `None` where nobody is told.
    pub(crate) keys: Option<Arc<Keys>>,
    /// Ports whose hosts know that they are to subscribe with this manager.
    pub(crate) reregistered: BTreeSet<Guid>,
    /// Somebody configured nodes before, and whether congestion control was on then is not known yet.
    pub(crate) inherits: bool,
    pub(crate) sm_lid: Lid,
    /// The LID of the own port, as it was read last.
    pub(crate) own_lid: Lid,
    /// Which of several managers is in charge.
    pub(crate) election: Election,
    /// Somebody else was in charge before: LIDs are as the ports have them, whatever is on file.
    pub(crate) adopts: bool,
    /// A manager was found that was still looking around.
    pub(crate) look_again: bool,
    pub(crate) agenda: Agenda,
    pub(crate) sweep: Sweep,
    pub(crate) sweeps: u64,
    /// Sweeps that followed each other at once.
    pub(crate) resweeps: u32,
    /// Sweeps in a row that were not complete.
    pub(crate) incomplete: u32,
    pub(crate) own_port_down: bool,
    /// Its own port did not answer the last sweep, which has been said.
    pub(crate) own_port_silent: bool,
    pub(crate) is_up: bool,
    pub(crate) audit: Audit,
    pub(crate) progress: Progress,
    pub(crate) traps: TrapLog,
    pub(crate) repairs: Repairs,
    pub(crate) sa: Administrator,
    pub(crate) ignored: u64,
    pub(crate) outputs: VecDeque<Output>,
    now: Time,
}

/// The port that the manager is behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) port_guid: Guid,
    pub(crate) port: PortNum,
}

/// What is under way.
#[derive(Debug)]
pub(crate) enum Doing {
    Detached,
    Idle,
    Discover(Box<Discover>),
    Learn(Box<Learn>),
    Program(Box<Program>),
    Activate(Box<Activate>),
    /// Settings of congestion control.
    Regulate(Box<Regulate>),
    Verify(Box<Check>),
    Light(Box<Check>),
    Look(Box<Check>, Reason),
    /// Tables that subnet administration is asked for.
    Tables(Box<ReadTables>),
}

impl Doing {
    pub(crate) fn step(&mut self) -> Option<&mut dyn Step> {
        Some(match self {
            Self::Detached | Self::Idle => return None,
            Self::Discover(step) => step.as_mut(),
            Self::Learn(step) => step.as_mut(),
            Self::Program(step) => step.as_mut(),
            Self::Activate(step) => step.as_mut(),
            Self::Regulate(step) => step.as_mut(),
            Self::Verify(step) | Self::Light(step) | Self::Look(step, _) => step.as_mut(),
            Self::Tables(step) => step.as_mut(),
        })
    }

    fn events(&mut self) -> Vec<Event> {
        match self {
            Self::Discover(step) => std::mem::take(&mut step.events),
            Self::Learn(step) => std::mem::take(&mut step.events),
            Self::Program(step) => std::mem::take(&mut step.events),
            Self::Activate(step) => std::mem::take(&mut step.events),
            Self::Regulate(step) => std::mem::take(&mut step.events),
            _ => Vec::new(),
        }
    }

    /// Whether a heavy sweep is on that has yet to ask the switches whether anything changed.
    pub(crate) fn will_verify(&self) -> bool {
        matches!(
            self,
            Self::Discover(_) | Self::Learn(_) | Self::Program(_) | Self::Activate(_) | Self::Regulate(_)
        )
    }
}

impl SubnetManager {
    /// A manager that is not attached yet; `guid2lid` has the LIDs of earlier runs.
    pub fn new(options: Options, guid2lid: &GuidToLid) -> Self {
        Self {
            pipe: Pipe::new(options.limits()).with_m_key(options.m_key),
            guid2lid: guid2lid.clone(),
            own: None,
            doing: Doing::Detached,
            standing: None,
            memory: Memory::new(),
            held: Vec::new(),
            known: BTreeMap::new(),
            lids: Lids::new(),
            levels: None,
            sl2vl_given: options.sl2vl,
            management: None,
            keys: None,
            reregistered: BTreeSet::new(),
            inherits: false,
            sm_lid: Lid(0),
            own_lid: Lid(0),
            election: Election::new(),
            adopts: false,
            look_again: false,
            agenda: Agenda::default(),
            sweep: Sweep::default(),
            sweeps: 0,
            resweeps: 0,
            incomplete: 0,
            own_port_down: false,
            own_port_silent: false,
            is_up: false,
            audit: Audit::default(),
            progress: Progress::default(),
            traps: TrapLog::default(),
            repairs: Repairs::default(),
            sa: Administrator::new(&options),
            options,
            ignored: 0,
            outputs: VecDeque::new(),
            now: Time::ZERO,
        }
    }

    /// How far it is. Cheap enough to be asked for every few milliseconds.
    pub fn progress(&self) -> Progress {
        let stats = self.pipe.stats();
        let activity = match &self.doing {
            Doing::Detached => Activity::Detached,
            _ if self.election.state == State::Standby => Activity::Standby,
            _ if self.election.state == State::NotActive => Activity::NotActive,
            _ if self.own_port_down => Activity::OwnPortDown,
            Doing::Idle | Doing::Tables(_) if self.is_up => Activity::Up,
            Doing::Idle | Doing::Tables(_) => Activity::Waiting,
            Doing::Light(_) | Doing::Look(..) => Activity::LightSweep,
            _ => self.sweep.phase().map_or(Activity::Waiting, Activity::Sweeping),
        };
        let (switches, hosts) = match &self.doing {
            Doing::Discover(discover) => discover.counts(),
            _ => (self.progress.switches, self.progress.hosts),
        };
        let ports_active = match &self.doing {
            Doing::Activate(activate) => activate.ports_active,
            _ => self.progress.ports_active,
        };
        Progress {
            activity,
            switches,
            hosts,
            ports_active,
            done: self.pipe.done,
            total: self.pipe.asked.max(self.progress.total),
            smps_sent: stats.sent,
            smps_retried: stats.retries,
            audit_pending: self.is_in_doubt() || self.agenda.will_prove(),
            mads_ignored: self.ignored + stats.unmatched + self.sa.counts().ignored,
            ..self.progress
        }
    }

    /// The path records from the port with this GUID to every other, without asking for them: for studies too large to ask.
    pub fn paths_from(&self, from: Guid) -> Vec<PathRecord> {
        self.sa.paths_from(from)
    }

    /// What subnet administration has done.
    pub fn sa_counts(&self) -> SaCounts {
        self.sa.counts()
    }

    pub(crate) fn say(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(crate) fn say_all(&mut self, events: impl IntoIterator<Item = Event>) {
        self.outputs.extend(events.into_iter().map(Output::Event));
    }

    pub(crate) fn persist(&mut self) {
        self.outputs.push_back(Output::Persist(self.guid2lid.clone()));
    }

    /// Ends the phase that is on, if any, and begins the next one, if any.
    pub(crate) fn enter(&mut self, now: Time, phase: Option<Phase>) {
        let events = self.sweep.enter(now, phase, self.pipe.counts.total());
        self.say_all(events);
        (self.pipe.done, self.pipe.asked, self.progress.total) = (0, 0, 0);
    }

    /// Goes on until nothing can be done before the next input or deadline.
    fn run(&mut self, now: Time) {
        loop {
            let finished = match self.doing.step() {
                Some(step) => self.pipe.pump(now, step),
                None => false,
            };
            self.collect();
            if finished {
                self.advance(now);
            } else if self.tables_give_way(now) {
                self.doing = Doing::Idle;
            } else if !matches!(self.doing, Doing::Idle) {
                return;
            } else if let Some(due) = self.due(now) {
                self.start(now, due);
            } else if !self.start_tables() {
                return;
            }
        }
    }

    /// What is due, if this manager may sweep now.
    fn due(&mut self, now: Time) -> Option<Due> {
        if self.election.state.sweeps() { self.agenda.due(now) } else { None }
    }

    /// Reading tables for subnet administration gives way to a sweep that is due.
    fn tables_give_way(&mut self, now: Time) -> bool {
        let Doing::Tables(read) = &self.doing else { return false };
        if self.agenda.next(now).is_none_or(|at| at > now) {
            return false;
        }
        self.pipe.abandon(now, read.as_ref());
        true
    }

    /// Moves what the step and the pipe have to say into the outputs.
    fn collect(&mut self) {
        let events = self.doing.events();
        self.say_all(events);
        let events = self.sa.take_events();
        self.progress.repaths += events.len() as u64;
        self.say_all(events);
        while let Some(mad) = self.pipe.poll_output().or_else(|| self.sa.poll_output()) {
            self.outputs.push_back(Output::Send(mad));
        }
    }

    fn start(&mut self, now: Time, due: Due) {
        match due {
            Due::Heavy(reason) => self.start_heavy(now, reason),
            Due::Light(reason) => self.start_light(now, reason),
            Due::Look(reason, nodes) => self.start_look(reason, nodes),
            Due::Prove => self.prove(now),
        }
    }

    fn receive(&mut self, now: Time, received: &AddressedMad) {
        let mad = &received.mad;
        if mad.class() == MgmtClass::SubnAdm {
            self.sa.receive(now, received, self.pipe.stats().sent as u32);
        } else if !mad.is_smp() && !answers_congestion(mad) {
            self.ignored += 1;
        } else if mad.method().is_response() && Self::is_for_election(mad) {
            self.elected(now, mad);
        } else if mad.method().is_response() {
            if let Some(step) = self.doing.step() {
                // What nobody waits for is counted by the transactions.
                self.pipe.receive(now, received, step);
            } else {
                self.ignored += 1;
            }
        } else {
            match (mad.class(), mad.method(), mad.attribute_id()) {
                (MgmtClass::SubnLid, Method::Trap, AttributeId::Notice) => self.hear(now, received),
                (_, Method::Get, AttributeId::SmInfo) => self.introduce(now, received),
                (_, Method::Set, AttributeId::SmInfo) => self.commanded(now, received),
                _ => self.ignored += 1,
            }
        }
    }

    fn hear(&mut self, now: Time, received: &AddressedMad) {
        if matches!(self.election.state, State::Standby | State::NotActive) {
            // It goes on until the manager that is in charge now has told its port where it is, and hears it.
            self.ignored += 1;
            return;
        }
        let Some((trap, new)) = self.traps.note(received) else {
            self.ignored += 1;
            return;
        };
        self.send_all(traps::repress(received, self.options.m_key));
        let calls_for_sweep = [trap::LINK_STATE_CHANGE, trap::LOCAL_CHANGES].contains(&trap.number);
        let news = new && calls_for_sweep;
        if new {
            self.sa.hear(now, &Notice::from_smp_data(received.mad.smp_data()));
        }
        self.say(Event::TrapReceived { number: trap.number, lid: trap.lid, news });
        if !news || matches!(self.doing, Doing::Detached) {
            return;
        }
        let reason = Reason::Trap { number: trap.number, lid: trap.lid };
        let delay = Time::from_millis(self.options.trap_delay_ms);
        let node = self.lids.owner(trap.lid).map(|port| port.node.0);
        if !self.options.one_sweep_per_cable {
            self.agenda.owe(reason);
        } else if trap.number != trap::LINK_STATE_CHANGE {
            self.agenda.heavy(now + delay, reason);
        } else if !self.doing.will_verify() || self.repairs.touched.is_some() {
            match node {
                Some(node) => self.agenda.look(now + delay, reason, node),
                None => self.agenda.heavy(now + delay, reason),
            }
        }
    }

    /// The operator wants a sweep. A manager that is not in charge looks around.
    fn resweep(&mut self, now: Time, heavy: bool) {
        if matches!(self.doing, Doing::Detached) || !self.election.state.is_in_charge() {
            self.signal(now, Signal::Command);
        } else if heavy {
            self.agenda.heavy(now, Reason::Command);
        } else {
            self.agenda.light(now, Reason::Command);
        }
    }

    /// The own port's link came up or went down.
    fn port_changed(&mut self, now: Time, up: bool) {
        // One that polls finds out by itself.
        if matches!(self.doing, Doing::Detached)
            || matches!(self.election.state, State::Standby | State::NotActive)
        {
            return;
        }
        if !up {
            // Whatever is under way leads nowhere any more, and while nobody looks, anybody may write anything.
            if let Some(step) = self.doing.step() {
                self.pipe.abandon(now, step);
            }
            (self.doing, self.standing) = (Doing::Idle, None);
            self.memory.clear();
            self.agenda.clear();
        }
        // A sweep that has yet to look at the own port will see it.
        if !matches!(&self.doing, Doing::Discover(discover) if discover.own_port_info().is_none()) {
            self.agenda.heavy(now, Reason::OwnPort);
        }
    }

    fn attach(&mut self, now: Time, own: Own) {
        self.detach(now);
        self.own = Some(own);
        self.election.reset(now, Some(own.port_guid));
        let partitions = self.options.routing.partitions.as_ref();
        self.keys = partitions.map(|partitions| Arc::new(Keys::new(partitions, own.port_guid)));
        self.doing = Doing::Idle;
        // A manager that was here before may have left SMPs on the wire.
        self.pipe.doubts.note_everything(now);
        self.agenda.heavy(now, Reason::Start);
        self.signal(now, Signal::Attached);
    }

    fn detach(&mut self, now: Time) {
        self.pipe.renew(now);
        self.sa.detach(now);
        self.doing = Doing::Detached;
        self.own = None;
        // While nobody looked, anything may have been written by anybody.
        self.memory.clear();
        self.agenda.clear();
        self.repairs.begin(None);
        self.election.reset(now, None);
        self.traps.clear();
        (self.is_up, self.own_port_down, self.resweeps, self.incomplete) = (false, false, 0, 0);
        self.own_port_silent = false;
    }
}

fn answers_congestion(mad: &weft_wire::Mad) -> bool {
    mad.class() == MgmtClass::CongestionControl && mad.method().is_response()
}

impl Machine for SubnetManager {
    type Input = Input;
    type Output = Output;

    fn handle_input(&mut self, now: Time, input: Input) {
        self.now = now;
        match input {
            Input::Attached { port_guid, port, .. } => self.attach(now, Own { port_guid, port }),
            Input::Detached => self.detach(now),
            Input::Receive(mad) => self.receive(now, &mad),
            Input::PortChanged { up } => self.port_changed(now, up),
            Input::Resweep { heavy } => self.resweep(now, heavy),
            Input::Instruct { guid, instruction } => self.instruct(now, guid, instruction),
        }
        self.run(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if let Some(step) = self.doing.step() {
            self.pipe.expire(now, step);
        }
        self.sa.handle_timeout(now);
        self.elect(now);
        self.run(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let sweeping = match self.doing {
            Doing::Detached => return None,
            Doing::Idle if !self.election.state.sweeps() => None,
            Doing::Idle => self.agenda.next(self.now),
            Doing::Tables(_) => {
                [self.agenda.next(self.now), self.pipe.poll_timeout()].into_iter().flatten().min()
            }
            _ => self.pipe.poll_timeout(),
        };
        [sweeping, self.sa.poll_timeout(), self.election.poll_timeout()].into_iter().flatten().min()
    }
}
