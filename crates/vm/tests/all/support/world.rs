//! Agents, a subnet manager, a disk, a network between them, and the manager that is tested.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::{Machine, Random, Time};
use weft_vm::{
    Act, Change, Command, Content, Create, Deed, Event, HostName, Input, Options, Output, Place, Record,
    Reply, Request, RequestId, Scheme, Slot, State, VmError, VmManager, VmName,
};
use weft_wire::{Guid, Lid};

use super::agent::{Agent, Lives};
use super::disk::Disk;
use super::subnet::{Kind, SubnetManager};

mod faults;

/// Wake-ups at one moment before the machine counts as one that never rests.
const WAKES_MAX: u32 = 1000;

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    ToAgent(HostName, Command),
    /// To the manager of this life.
    ToManager(u64, Input),
    ToSm(u64, weft_vm::SmRequest),
    Sync(u64, u64),
    Wake(u64),
    HasLid(Place, Guid),
    Fault(Fault),
    Ask(Request),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    KillAgent(u8),
    RestartAgent(u8),
    Cut(u8),
    Mend(u8),
    KillSm,
    RestartSm,
    KillManager,
    RestartManager,
    /// An operator removes the journal while no manager runs.
    LoseJournal,
}

/// When a manager dies around a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before it is written.
    Before,
    /// While it is written.
    Torn,
    /// When it is on disk, before the manager hears of it.
    After,
    /// When what it allows has been sent.
    Later,
}

/// A host of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source = 0,
    Destination = 1,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Network {
    pub(crate) lost_per_mille: u32,
    pub(crate) doubled_per_mille: u32,
    /// Longest delay in microseconds.
    pub(crate) delay_max: u32,
}

pub(crate) struct World {
    pub(crate) now: Time,
    queue: BTreeMap<(Time, u64), Happening>,
    number: u64,
    pub(crate) random: Random,
    pub(crate) network: Network,
    pub(crate) options: Options,
    pub(crate) agents: Vec<Agent>,
    pub(crate) cut: BTreeSet<u8>,
    pub(crate) sm: SubnetManager,
    pub(crate) disk: Disk,
    pub(crate) manager: Option<VmManager>,
    pub(crate) life: u64,
    pub(crate) die_at: Option<(String, Moment)>,
    /// Hosts that die shortly after a record: of the move that it belongs to, the source or the destination.
    pub(crate) strikes: Vec<(&'static str, Side)>,
    /// The record at which the subnet manager dies.
    pub(crate) sm_dies_at: Option<&'static str>,
    /// Where moves come from and go to.
    ways: BTreeMap<VmName, [HostName; 2]>,
    /// How often a manager has died at its record.
    pub(crate) died_at: u64,
    wakes: (Time, u32),
    lives: Lives,
    lids: BTreeMap<Guid, Lid>,
    /// How long a sweep takes to find a port without a LID.
    pub(crate) sweep: Time,
    pub(crate) asked: BTreeMap<u64, Request>,
    pub(crate) replies: BTreeMap<u64, Result<Reply, VmError>>,
    /// Virtual machines of which some place has died since they started.
    pub(crate) mourned: BTreeSet<VmName>,
    pub(crate) journals_lost: u64,
    pub(crate) events: Vec<(Time, Event)>,
    pub(crate) log: Option<Vec<String>>,
    pub(crate) hash: u64,
}

impl World {
    pub(crate) fn new(seed: u64, hosts: u8, vfs: u8, options: Options, sm: SubnetManager) -> Self {
        let waits_for_lids = sm.kind == Kind::Unknown;
        let agent = |number| Agent { waits_for_lids, ..Agent::new(number, vfs) };
        let agents: Vec<Agent> = (0..hosts).map(agent).collect();
        // A GUID keeps the LID that it had.
        let lids = agents.iter().flat_map(Agent::lids).collect();
        Self {
            now: Time::ZERO,
            queue: BTreeMap::new(),
            number: 0,
            random: Random::of_purpose(seed, "network"),
            network: Network { lost_per_mille: 0, doubled_per_mille: 0, delay_max: 1000 },
            options,
            agents,
            cut: BTreeSet::new(),
            sm,
            disk: Disk::new(),
            manager: None,
            life: 0,
            die_at: None,
            strikes: Vec::new(),
            sm_dies_at: None,
            ways: BTreeMap::new(),
            died_at: 0,
            wakes: (Time::ZERO, 0),
            lives: Lives::new(),
            lids,
            sweep: Time::ZERO,
            asked: BTreeMap::new(),
            replies: BTreeMap::new(),
            mourned: BTreeSet::new(),
            journals_lost: 0,
            events: Vec::new(),
            log: None,
            hash: 0,
        }
    }

    pub(crate) fn at(&mut self, at: Time, what: Happening) {
        self.number += 1;
        self.queue.insert((at.max(self.now), self.number), what);
    }

    fn soon(&mut self, what: Happening) {
        let delay = Time::from_micros(u64::from(self.random.below(self.network.delay_max)) + 10);
        self.at(self.now + delay, what);
    }

    /// Sends something over the network, which may lose it or give it twice, late.
    fn send(&mut self, what: Happening) {
        if self.random.below(1000) < self.network.doubled_per_mille {
            let late = self.now + Time::from_millis(u64::from(self.random.below(3000)));
            self.at(late, what.clone());
        }
        if self.random.below(1000) >= self.network.lost_per_mille {
            self.soon(what);
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{} {}", self.now, what()));
        }
    }

    pub(crate) fn host(&self, number: u8) -> HostName {
        self.agents[usize::from(number)].name.clone()
    }

    fn index(&self, host: &HostName) -> Option<usize> {
        self.agents.iter().position(|agent| agent.name == *host)
    }

    pub(crate) fn start_manager(&mut self) -> Result<(), String> {
        self.life += 1;
        let journal = self.disk.open()?;
        let hosts = self.agents.iter().map(|agent| agent.name.clone()).collect();
        self.manager = Some(VmManager::new(self.options.clone()));
        self.note(|| format!("the manager starts with {:?} records", journal.as_ref().map(Vec::len)));
        self.feed(Input::Start { journal, hosts, guids: vec![Guid(0xfab)] })?;
        for number in 0..self.agents.len() as u8 {
            self.tell_up(number);
        }
        Ok(())
    }

    pub(crate) fn kill_manager(&mut self) {
        if self.manager.take().is_some() {
            self.note(|| "the manager dies".to_owned());
            self.life += 1;
            self.disk.crash(&mut self.random);
        }
    }

    pub(crate) fn ask(&mut self, request: Request) -> Result<u64, String> {
        let id = self.asked.len() as u64;
        self.asked.insert(id, request.clone());
        self.feed(Input::Request { id: RequestId(id), request })?;
        Ok(id)
    }

    /// Feeds the manager, and does what it wants.
    pub(crate) fn feed(&mut self, input: Input) -> Result<(), String> {
        let Some(mut manager) = self.manager.take() else { return Ok(()) };
        self.note(|| format!("  > {input:?}"));
        manager.handle_input(self.now, input);
        self.drain(manager)
    }

    fn drain(&mut self, mut manager: VmManager) -> Result<(), String> {
        while let Some(output) = manager.poll_output() {
            self.note(|| format!("  < {output:?}"));
            if self.carry_out(output)? {
                self.manager = Some(manager);
                self.kill_manager();
                self.at(self.now + Time::from_millis(200), Happening::Fault(Fault::RestartManager));
                return Ok(());
            }
        }
        let wake = manager.poll_timeout();
        self.manager = Some(manager);
        if let Some(at) = wake {
            let at = at.max(self.now);
            let repeats = if at == self.now && self.wakes.0 == at { self.wakes.1 + 1 } else { 0 };
            self.wakes = (at, repeats);
            if repeats > WAKES_MAX {
                return Err(format!(
                    "it wakes without end at {at}: {:?}",
                    self.manager.as_ref().map(Machine::next_timer)
                ));
            }
            self.at(at, Happening::Wake(self.life));
        }
        Ok(())
    }

    /// Whether the manager dies of it.
    fn carry_out(&mut self, output: Output) -> Result<bool, String> {
        match output {
            Output::Journal(write) => {
                let moment = self
                    .die_at
                    .as_ref()
                    .filter(|(name, _)| name == write.change.name())
                    .map(|(_, moment)| *moment);
                if moment.is_some() {
                    self.die_at = None;
                }
                if let Change::Append(record) = &write.change {
                    self.strike(record);
                    if self.sm_dies_at.take_if(|at| *at == record.name()).is_some() {
                        self.sm.alive = false;
                    }
                }
                if moment != Some(Moment::Before) {
                    self.disk.write(&write);
                }
                match moment {
                    None => self.soon(Happening::Sync(self.life, write.number)),
                    Some(Moment::After) => self.disk.sync(write.number),
                    Some(Moment::Before | Moment::Torn) => {}
                    Some(Moment::Later) => {
                        // What is allowed is sent when the machine hears that it is on disk.
                        self.disk.sync(write.number);
                        self.soon(Happening::Sync(self.life, write.number));
                        self.at(self.now + Time::from_millis(2), Happening::Fault(Fault::KillManager));
                        self.at(self.now + Time::from_millis(300), Happening::Fault(Fault::RestartManager));
                        self.died_at += 1;
                        return Ok(false);
                    }
                }
                self.died_at += u64::from(moment.is_some());
                return Ok(moment.is_some());
            }
            Output::Command { host, command } => {
                self.check_is_written(&host, &command)?;
                self.send(Happening::ToAgent(host, command));
            }
            Output::AskSm(request) => self.soon(Happening::ToSm(self.sm.restarts, request)),
            Output::Reply { id, result } => {
                if !self.asked.contains_key(&id.0) || self.replies.insert(id.0, result).is_some() {
                    return Err(format!("{id:?} is answered twice or was not asked"));
                }
            }
            Output::Event(event) => self.events.push((self.now, event)),
        }
        Ok(false)
    }

    /// Whether the record that allows a command is on disk.
    fn check_is_written(&self, host: &HostName, command: &Command) -> Result<(), String> {
        let Act::Slot { deed, .. } = &command.act else { return Ok(()) };
        let (vm, allowed): (&VmName, &[&str]) = match deed {
            Deed::Create(occupant) => (&occupant.vm, &["create"]),
            Deed::Reserve(vm) => (vm, &["reserve"]),
            Deed::Freeze(vm) | Deed::Export { vm, .. } => (vm, &["freeze"]),
            Deed::Import { occupant, .. } => (&occupant.vm, &["import"]),
            Deed::Activate(vm) => (vm, &["commit", "resume"]),
            Deed::Clear(_) => return Ok(()),
        };
        let records = self.disk.synced();
        let last = records.iter().rev().find_map(|record| match record {
            Record::Vm { name, vm: kept } if name == vm => Some(match &kept.state {
                State::Moving(moving) => moving.step.name(),
                State::Starting => "create",
                _ => "another",
            }),
            Record::Create { name, .. } | Record::Reserve { name, .. } | Record::Step { name, .. }
                if name == vm =>
            {
                Some(record.name())
            }
            _ => None,
        });
        if last.is_some_and(|last| allowed.contains(&last)) {
            return Ok(());
        }
        Err(format!("{host} is told {deed:?}, and the last record on disk is {last:?}"))
    }

    /// Lets everything happen until a moment.
    pub(crate) fn run_until(&mut self, until: Time) -> Result<(), String> {
        while let Some(((at, _), what)) = self.queue.first_key_value().map(|(key, what)| (*key, what.clone()))
        {
            if at > until {
                break;
            }
            self.queue.pop_first();
            self.now = at;
            self.happen(what)?;
            self.check().map_err(|wrong| format!("at {}: {wrong}", self.now))?;
        }
        self.now = until;
        Ok(())
    }

    fn happen(&mut self, what: Happening) -> Result<(), String> {
        match what {
            Happening::ToAgent(host, command) => self.at_agent(&host, &command)?,
            Happening::ToManager(life, input) if life == self.life => {
                let down = if let Input::HostDown(host) = &input { self.index(host) } else { None };
                self.feed(input)?;
                // A driver that hears late of the end of a connection makes another one.
                down.into_iter().for_each(|number| self.tell_up(number as u8));
            }
            Happening::Sync(life, number) if life == self.life => {
                self.disk.sync(number);
                self.feed(Input::Synced(number))?;
            }
            Happening::Wake(life) if life == self.life => {
                if let Some(mut manager) = self.manager.take() {
                    if manager.poll_timeout().is_some_and(|at| at <= self.now) {
                        manager.handle_timeout(self.now);
                        return self.drain(manager);
                    }
                    self.manager = Some(manager);
                }
            }
            Happening::ToManager(..) | Happening::Sync(..) | Happening::Wake(_) => {}
            Happening::ToSm(restarts, request) => {
                let (number, lost) = (request.number, self.random.below(1000) < self.network.lost_per_mille);
                let alive = self.sm.alive && self.sm.restarts == restarts;
                let answer = alive.then(|| self.sm.handle(&request, &mut self.random));
                let answer = answer.filter(|_| !lost).unwrap_or(weft_vm::SmAnswer::Timeout);
                self.soon(Happening::ToManager(self.life, Input::Sm { number, answer }));
            }
            Happening::HasLid(place, guid) => self.give_lid(&place, guid),
            Happening::Fault(fault) => self.fault(&fault)?,
            Happening::Ask(request) => drop(self.ask(request)?),
        }
        Ok(())
    }

    fn at_agent(&mut self, host: &HostName, command: &Command) -> Result<(), String> {
        let Some(index) = self.index(host) else { return Ok(()) };
        if !self.agents[index].alive || self.cut.contains(&(index as u8)) {
            return Ok(());
        }
        let outcome = self.agents[index].handle(command, &mut self.lives)?;
        self.note(|| format!("{host}: {command:?} -> {outcome:?}"));
        self.hash = self.hash.rotate_left(5) ^ self.now.as_nanos() ^ command.number;
        if let (Act::Slot { vf, incarnation, deed, .. }, weft_vm::Outcome::Done(Content::Running(occupant))) =
            (&command.act, &outcome)
        {
            if matches!(deed, Deed::Create(_)) {
                self.mourned.remove(&occupant.vm);
            }
            let slot = Slot { host: host.clone(), vf: *vf };
            if occupant.identity.port.lid == Lid(0) {
                let place = Place { slot, incarnation: *incarnation };
                let found = self.now + self.sweep + Time::from_micros(100);
                self.at(found, Happening::HasLid(place, occupant.identity.port.port_guid));
            }
        }
        let input = Input::Answer { host: host.clone(), number: command.number, outcome };
        self.send(Happening::ToManager(self.life, input));
        Ok(())
    }

    /// A sweep has found a port, and gives it the LID that its GUID always has.
    fn give_lid(&mut self, place: &Place, guid: Guid) {
        let next = Lid(1000 + self.lids.len() as u16);
        let lid = *self.lids.entry(guid).or_insert(next);
        let Some(index) = self.index(&place.slot.host) else { return };
        let agent = &mut self.agents[index];
        if agent.incarnation != place.incarnation || !agent.alive {
            return;
        }
        let Some(slot) = agent.slots.get_mut(&place.slot.vf) else { return };
        if let Content::Running(occupant) = &mut slot.content
            && occupant.identity.port.port_guid == guid
        {
            occupant.identity.port.lid = lid;
            let input = Input::PortHasLid { place: place.clone(), port_guid: guid, lid };
            self.send(Happening::ToManager(self.life, input));
        }
    }

    /// All slots of agents that live.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Slot, &Content)> {
        let alive = self.agents.iter().filter(|agent| agent.alive);
        alive.flat_map(|agent| {
            agent.slots.iter().map(|(vf, slot)| (Slot { host: agent.name.clone(), vf: *vf }, &slot.content))
        })
    }

    /// What holds always: a virtual machine runs in one place at most, and a GUID and a LID are plugged in once.
    fn check(&self) -> Result<(), String> {
        let (mut vms, mut guids, mut lids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (slot, content) in self.slots() {
            let port = match content {
                Content::Running(occupant) => {
                    if !vms.insert((&occupant.vm, occupant.identity.port.port_guid)) {
                        return Err(format!("{} runs twice, once in {slot}", occupant.vm));
                    }
                    &occupant.identity.port
                }
                Content::Spare(port) => port,
                _ => continue,
            };
            if !guids.insert(port.port_guid) {
                return Err(format!("GUID {} is there twice, once in {slot}", port.port_guid));
            }
            if port.lid != Lid(0) && !lids.insert(port.lid) {
                return Err(format!("LID {} is there twice, once in {slot}", port.lid));
            }
        }
        Ok(())
    }

    /// Where a virtual machine runs.
    pub(crate) fn running(&self, vm: &VmName) -> Option<Slot> {
        let mut slots = self.slots();
        slots
            .find(|(_, content)| matches!(content, Content::Running(occupant) if occupant.vm == *vm))
            .map(|(slot, _)| slot)
    }

    /// Lets everything come to rest.
    pub(crate) fn rest(&mut self, patience: Time) -> Result<(), String> {
        let limit = self.now + patience;
        loop {
            self.run_until(self.now + Time::from_millis(500))?;
            let manager = self.manager.as_ref();
            if manager.is_some_and(VmManager::is_at_rest) {
                return Ok(());
            }
            if self.now > limit {
                let timer = manager.map(Machine::next_timer);
                return Err(format!(
                    "it does not come to rest: {timer:?}, {:?}",
                    manager.map(VmManager::list)
                ));
            }
        }
    }

    pub(crate) fn create(name: &str, host: Option<HostName>) -> Request {
        Request::Create(Create::new(name.parse().unwrap(), host))
    }

    pub(crate) fn is_prepopulated(&self) -> bool {
        self.options.scheme == Scheme::Prepopulated
    }
}
