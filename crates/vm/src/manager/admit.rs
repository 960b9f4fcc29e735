//! Requests: which are refused, which wait, and which begin.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::{Guid, Lid};

use super::ahead::Ahead;
use super::{Fleet, VmManager, Waiting};
use crate::agent::Content;
use crate::error::{VmError, Why};
use crate::identity::{Identity, PortIdentity, Scheme};
use crate::names::{HostName, Place, Slot, VmName};
use crate::partitions::check_p_keys;
use crate::record::{Record, State};
use crate::request::{Create, FLEET_MAX, Migrate, QUEUE_MAX, Reply, Request, RequestId, VMS_MAX};
use crate::sm::{PLAN_WRITES_MAX, Route, SmAnswer, SmRequest, SmWish};
use crate::task::Task;

/// What becomes of a request now.
enum Turn {
    /// It is answered.
    Answer(Result<Reply, VmError>),
    /// It has begun.
    Begun,
    /// It waits for what is under way.
    Wait,
}

impl VmManager {
    pub(super) fn enqueue(&mut self, now: Time, id: RequestId, request: Request) {
        self.counts.requests += 1;
        if self.open.contains(&id) {
            let result = Err(VmError::NumberTaken);
            return self.outputs.push_back(crate::Output::Reply { id, result });
        }
        if self.queue.len() >= QUEUE_MAX {
            self.counts.queue_full += 1;
            return self.outputs.push_back(crate::Output::Reply { id, result: Err(VmError::QueueFull) });
        }
        self.open.insert(id);
        let until = now + self.options.answer_within;
        self.queue.push_back(Waiting { id, request, until, was_full: false });
    }

    /// Lets requests begin, in the order in which they came. One that has to wait lets others pass that do not want the same.
    pub(super) fn admit(&mut self, now: Time) {
        if self.is_full() && self.queue.iter().all(|waiting| waiting.was_full) {
            return;
        }
        let mut ahead = Ahead::default();
        for mut waiting in std::mem::take(&mut self.queue) {
            let id = waiting.id;
            // What was found to wait cannot begin before something ends.
            let turn = match waiting.was_full && self.is_full() {
                true => Turn::Wait,
                false => self.turn(now, id, &waiting.request, &ahead),
            };
            match turn {
                Turn::Answer(result) => self.reply(id, result),
                Turn::Begun => {}
                Turn::Wait => {
                    ahead.wait_for(&waiting.request);
                    ahead.leaving.extend(self.leaves(&waiting.request));
                    waiting.was_full = !matches!(waiting.request, Request::Plan { .. });
                    self.queue.push_back(waiting);
                }
            }
        }
    }

    fn turn(&mut self, now: Time, id: RequestId, request: &Request, ahead: &Ahead) -> Turn {
        let turn = match request {
            Request::List => Ok(Turn::Answer(Ok(Reply::List(self.list())))),
            Request::Create(create) => self.create(now, id, create, ahead),
            Request::Destroy(name) => self.destroy(now, id, name, ahead),
            Request::Migrate(migrate) => self.migrate(now, id, migrate, ahead),
            Request::Plan { vm, host, route } => self.plan(now, id, vm, host, *route),
            Request::Forget { vm, force } => self.forget(now, vm, *force),
        };
        turn.unwrap_or_else(|error| Turn::Answer(Err(error)))
    }

    /// The host that gets a free slot by this request.
    fn leaves(&self, request: &Request) -> Option<HostName> {
        let vm = match request {
            Request::Migrate(migrate) => &migrate.vm,
            Request::Destroy(vm) => vm,
            _ => return None,
        };
        self.book.vm(vm).map(|vm| vm.place.slot.host.clone())
    }

    /// Whether as much is under way as may be.
    fn is_full(&self) -> bool {
        self.tasks.len() >= self.options.at_once as usize
    }

    /// A virtual machine that exists and with which nothing is under way.
    fn idle(&self, name: &VmName, ahead: &Ahead) -> Result<&State, VmError> {
        let vm = self.book.vm(name).ok_or_else(|| VmError::UnknownVm(name.clone()))?;
        let busy = |doing: String| VmError::Busy { vm: name.clone(), doing };
        if ahead.vms.contains(name) {
            return Err(busy("an earlier request waits for its turn".to_owned()));
        }
        match &vm.state {
            State::Moving(moving) => Err(busy(format!("it moves to {} ({})", moving.to.slot, moving.step))),
            State::Starting => Err(busy("it starts".to_owned())),
            State::Stopping => Err(busy("it ends".to_owned())),
            _ if self.tasks.contains_key(name) => Err(busy("its move ends".to_owned())),
            state => Ok(state),
        }
    }

    fn known_host(&self, host: &HostName) -> Result<(), VmError> {
        self.hosts.get(host).map(|_| ()).ok_or_else(|| VmError::UnknownHost(host.clone()))
    }

    fn reachable(&self, host: &HostName) -> Result<(), VmError> {
        self.known_host(host)?;
        if self.hosts.is_away(host) { Err(VmError::HostAway(host.clone())) } else { Ok(()) }
    }

    /// Whether a virtual machine can come to a slot.
    fn is_free(&self, slot: &Slot) -> bool {
        let Some(view) = self.hosts.view(slot) else { return false };
        let has_identity = match (self.options.scheme, &view.content) {
            (Scheme::Dynamic | Scheme::Function, Content::Bare) => true,
            (Scheme::Prepopulated, Content::Spare(port)) => {
                self.book.spare(slot).is_none_or(|known| known.is_same_port(port))
                    && self.book.user_of(port, Some(slot)).is_none()
            }
            _ => false,
        };
        let is_kept = self.book.claim(slot).is_some() || self.book.is_tomb(slot);
        has_identity && !is_kept && !self.hosts.is_busy(slot) && !self.sweep.contains_key(slot)
    }

    pub(super) fn free_slots<'a>(&'a self, host: &'a HostName) -> impl Iterator<Item = Slot> + 'a {
        let vfs = self.hosts.get(host).into_iter().flat_map(|host| host.slots.keys());
        vfs.map(|vf| Slot { host: host.clone(), vf: *vf }).filter(|slot| self.is_free(slot))
    }

    /// Whether a slot of this host that is not free now will be, without further requests.
    fn will_free(&self, host: &HostName) -> bool {
        let leaves = |name: &VmName| {
            let vm = self.book.vm(name);
            vm.is_some_and(|vm| match &vm.state {
                State::Stopping => true,
                State::Moving(moving) => moving.to.slot.host != *host || vm.place.slot.host == *host,
                _ => false,
            })
        };
        if !self.hosts.is_ready(host) {
            // It is being asked what it has.
            return !self.hosts.is_away(host);
        }
        let swept = self.sweep.keys().any(|slot| slot.host == *host);
        swept || self.book.claims_of(host).any(|(_, name)| leaves(name))
    }

    /// A free slot on a host; `None` if the request has to wait for one.
    fn slot_on(&self, host: &HostName, vf: Option<u8>, ahead: &Ahead) -> Result<Option<Slot>, VmError> {
        self.reachable(host)?;
        let vfs = self.hosts.get(host).map_or(0, |host| host.slots.len());
        let may_wait = self.will_free(host) || ahead.leaving.contains(host);
        let free = match vf {
            Some(vf) => {
                let slot = Slot { host: host.clone(), vf };
                if !self.hosts.get(host).is_some_and(|host| host.slots.contains_key(&vf)) {
                    return Err(VmError::UnknownSlot { slot, vfs });
                }
                if !self.is_free(&slot) && !may_wait {
                    return Err(VmError::SlotTaken(slot));
                }
                Some(slot).filter(|slot| self.is_free(slot))
            }
            None => self.free_slots(host).next(),
        };
        let is_ahead = ahead.anywhere || ahead.hosts.contains(host);
        match free {
            Some(_) if is_ahead => Ok(None),
            None if !is_ahead && !may_wait => Err(VmError::HostFull { host: host.clone(), vfs }),
            found => Ok(found),
        }
    }

    /// The identity in a free slot. One that has just been plugged in keeps the LID that it had.
    fn resident_of(&self, slot: &Slot) -> Option<PortIdentity> {
        let port = *self.hosts.view(slot)?.content.port()?;
        let known = self.book.spare(slot).filter(|known| known.is_same_port(&port));
        let lid =
            if port.lid == weft_wire::Lid(0) { known.map_or(port.lid, |known| known.lid) } else { port.lid };
        Some(PortIdentity { lid, ..port })
    }

    /// The identity of a slot's configuration, whose LID its port gets.
    fn own_of(&self, slot: &Slot) -> Option<PortIdentity> {
        let own = self.hosts.view(slot)?.configured;
        Some(PortIdentity { lid: Lid(0), ..own }).filter(|own| own.port_guid != Guid(0))
    }

    /// The identity that a free slot has, or that a machine gets there.
    fn identity_at(&self, slot: &Slot) -> Option<PortIdentity> {
        match self.options.scheme {
            Scheme::Function => self.own_of(slot),
            Scheme::Prepopulated | Scheme::Dynamic => self.resident_of(slot),
        }
    }

    fn place(&self, slot: Slot) -> Result<Place, VmError> {
        let incarnation = self.hosts.incarnation(&slot.host);
        let incarnation = incarnation.ok_or_else(|| VmError::HostAway(slot.host.clone()))?;
        Ok(Place { slot, incarnation })
    }

    fn create(&mut self, now: Time, id: RequestId, create: &Create, ahead: &Ahead) -> Result<Turn, VmError> {
        let names = self.names_of(create)?;
        if let Some(name) =
            names.iter().find(|name| self.book.vm(name).is_some() || ahead.vms.contains(*name))
        {
            return Err(VmError::NameTaken(name.clone()));
        }
        check_p_keys(&create.p_keys)?;
        if !create.p_keys.is_empty() && self.options.partitions.is_none() {
            return Err(VmError::NoPartitions);
        }
        if self.book.vms().len() + names.len() > VMS_MAX {
            return Err(VmError::TooManyVms);
        }
        if !self.has_room() {
            return Err(VmError::JournalFull);
        }
        if let Some(guid) = create.guid {
            self.verify_guid(guid)?;
        }
        let slots = match &create.host {
            Some(host) if names.len() == 1 => self.slot_on(host, create.vf, ahead)?.map(|slot| vec![slot]),
            host => self.spread(host.as_ref(), names.len() as u32, ahead)?,
        };
        // A fleet begins as a whole: what is under way afterwards is bounded by its size.
        let Some(slots) = slots.filter(|_| !self.is_full()) else { return Ok(Turn::Wait) };
        slots.iter().try_for_each(|slot| self.check_partitions(slot, create))?;
        let wanted = names.len() as u32;
        let single = create.count.is_none();
        self.fleets.insert(id, Fleet { left: wanted, single, wanted, ..Fleet::default() });
        for (name, slot) in names.into_iter().zip(slots) {
            self.create_one(now, id, name, slot, create)?;
        }
        Ok(Turn::Begun)
    }

    /// Whether a machine in this slot can have the partitions that are asked for.
    fn check_partitions(&self, slot: &Slot, create: &Create) -> Result<(), VmError> {
        let Some(partitions) = &self.options.partitions else { return Ok(()) };
        let guid = match self.options.scheme {
            Scheme::Prepopulated => self.resident_of(slot).map(|port| port.port_guid),
            Scheme::Function => self.own_of(slot).map(|port| port.port_guid),
            // No one can have named a GUID that the manager chooses.
            Scheme::Dynamic => Some(create.guid.unwrap_or_else(|| self.choose_guid())),
        };
        guid.map_or(Ok(()), |guid| partitions.check(slot, guid, &create.p_keys))
    }

    fn names_of(&self, create: &Create) -> Result<Vec<VmName>, VmError> {
        let Some(count) = create.count else { return Ok(vec![create.name.clone()]) };
        if !(1..=FLEET_MAX).contains(&count) {
            return Err(VmError::FleetSize(count));
        }
        if count > 1 && (create.guid.is_some() || create.vf.is_some()) {
            return Err(VmError::FleetShares);
        }
        (1..=count).map(|number| Ok(create.name.numbered(number)?)).collect()
    }

    /// Whether a client may choose this GUID.
    fn verify_guid(&self, guid: Guid) -> Result<(), VmError> {
        if guid == Guid(0) {
            return Err(VmError::GuidZero);
        }
        if let Some(by) = self.user_of(guid) {
            return Err(VmError::GuidTaken { guid, by });
        }
        match self.options.scheme {
            Scheme::Prepopulated => Err(VmError::GuidOfSlot),
            Scheme::Function => Err(VmError::GuidOfFunction),
            Scheme::Dynamic => Ok(()),
        }
    }

    fn user_of(&self, guid: Guid) -> Option<String> {
        let port = PortIdentity { node_guid: guid, port_guid: guid, lid: weft_wire::Lid(0) };
        let adapter = self.hosts.adapter_of(guid).map(|name| format!("host `{name}`"));
        let fabric = self.taken.contains(&guid).then(|| "the fabric".to_owned());
        self.book.user_of(&port, None).or(adapter).or(fabric)
    }

    /// Free slots for a number of machines: one after the other on the host that has most left, of equal ones the first.
    fn spread(
        &self,
        host: Option<&HostName>,
        wanted: u32,
        ahead: &Ahead,
    ) -> Result<Option<Vec<Slot>>, VmError> {
        if let Some(host) = host {
            self.reachable(host)?;
        }
        let hosts =
            self.hosts.iter().map(|(name, _)| name).filter(|name| host.is_none_or(|host| host == *name));
        let mut free: BTreeMap<&HostName, Vec<Slot>> = BTreeMap::new();
        for name in hosts {
            let mut slots: Vec<Slot> = self.free_slots(name).collect();
            slots.reverse();
            free.insert(name, slots);
        }
        let total: usize = free.values().map(Vec::len).sum();
        let is_ahead = ahead.anywhere || free.keys().any(|name| ahead.hosts.contains(*name));
        let will_free = || free.keys().any(|name| self.will_free(name) || ahead.leaving.contains(*name));
        if total < wanted as usize && !is_ahead && !will_free() {
            return Err(VmError::FabricFull { free: total, wanted });
        }
        if total < wanted as usize || is_ahead {
            return Ok(None);
        }
        let mut slots = Vec::new();
        for _ in 0..wanted {
            let emptiest = free.values_mut().rev().max_by_key(|slots| slots.len());
            slots.extend(emptiest.and_then(Vec::pop));
        }
        Ok(Some(slots))
    }

    fn create_one(
        &mut self,
        now: Time,
        id: RequestId,
        name: VmName,
        slot: Slot,
        create: &Create,
    ) -> Result<(), VmError> {
        let port = match self.options.scheme {
            Scheme::Prepopulated => self.resident_of(&slot),
            Scheme::Function => self.own_of(&slot),
            Scheme::Dynamic => {
                let guid = create.guid.unwrap_or_else(|| self.choose_guid());
                Some(PortIdentity { node_guid: guid, port_guid: guid, lid: weft_wire::Lid(0) })
            }
        };
        let port = port.ok_or_else(|| VmError::SlotTaken(slot.clone()))?;
        let Create { p_keys, weight, rate_mbps, .. } = create.clone();
        let place = self.place(slot)?;
        let identity = Box::new(Identity { port, p_keys, weight, rate_mbps });
        let epoch = self.next_epoch();
        let disk = self.record(Record::Create { name: name.clone(), identity, place, epoch });
        let mut task = Task::new(now, Some(id), self.options.answer_within);
        task.disk = disk;
        self.begin(name, task);
        Ok(())
    }

    fn choose_guid(&self) -> Guid {
        let mut guid = self.book.next_guid;
        while self.user_of(guid).is_some() {
            guid.0 = guid.0.wrapping_add(1).max(1);
        }
        guid
    }

    fn destroy(&mut self, now: Time, id: RequestId, name: &VmName, ahead: &Ahead) -> Result<Turn, VmError> {
        if let State::Lost(_) = self.idle(name, ahead)? {
            self.record(Record::Gone(name.clone()));
            return Ok(Turn::Answer(Ok(Reply::Destroyed)));
        }
        let Some(vm) = self.book.vm(name) else { return Err(VmError::UnknownVm(name.clone())) };
        self.reachable(&vm.place.slot.host)?;
        if self.is_full() || !self.hosts.is_ready(&vm.place.slot.host) {
            return Ok(Turn::Wait);
        }
        let epoch = self.next_epoch();
        let disk = self.record(Record::Destroy { name: name.clone(), epoch });
        let mut task = Task::new(now, Some(id), self.options.answer_within);
        task.disk = disk;
        self.begin(name.clone(), task);
        Ok(Turn::Begun)
    }

    /// Whether a virtual machine could move to a host, and to which slot; `None` if it has to wait for one.
    fn way(&self, vm: &VmName, host: &HostName, ahead: &Ahead) -> Result<Option<Slot>, VmError> {
        let state = self.idle(vm, ahead)?;
        self.known_host(host)?;
        let not_running = |why| VmError::NotRunning { vm: vm.clone(), why };
        match state {
            State::Running => {}
            State::Lost(proof) => return Err(VmError::Lost { vm: vm.clone(), why: proof.to_string() }),
            _ => return Err(not_running(Why::with_hint("it was found frozen", "weft vm forget --force"))),
        }
        let source = self.book.vm(vm).map(|vm| &vm.place.slot);
        let Some(source) = source else { return Err(VmError::UnknownVm(vm.clone())) };
        if source.host == *host {
            return Err(VmError::SameHost { vm: vm.clone(), host: host.clone() });
        }
        self.reachable(&source.host)?;
        let is_ready = self.hosts.is_ready(&source.host);
        Ok(self.slot_on(host, None, ahead)?.filter(|_| is_ready))
    }

    fn migrate(
        &mut self,
        now: Time,
        id: RequestId,
        migrate: &Migrate,
        ahead: &Ahead,
    ) -> Result<Turn, VmError> {
        let Migrate { vm, host, cold, detach, hypervisor, route } = migrate;
        let slot = self.way(vm, host, ahead)?;
        let Some(slot) = slot.filter(|_| !self.is_full()) else { return Ok(Turn::Wait) };
        let displaced = self.identity_at(&slot);
        let to = self.place(slot)?;
        let epoch = self.next_epoch();
        let disk = self.record(Record::Reserve { name: vm.clone(), to, displaced, cold: *cold, epoch });
        let mut task = Task::new(now, Some(id), self.options.answer_within);
        (task.disk, task.detach, task.hypervisor, task.route) = (disk, *detach, *hypervisor, *route);
        self.begin(vm.clone(), task);
        self.event(crate::Event::MoveStep { vm: vm.to_string(), step: crate::Step::Reserve, reason: None });
        Ok(Turn::Begun)
    }

    fn plan(
        &mut self,
        now: Time,
        id: RequestId,
        vm: &VmName,
        host: &HostName,
        route: Route,
    ) -> Result<Turn, VmError> {
        let Some(slot) = self.way(vm, host, &Ahead::default())? else { return Ok(Turn::Wait) };
        if self.options.scheme == Scheme::Function {
            return Err(VmError::NoPlan(
                "GUID and LID stay with functions, so that no row is written".into(),
            ));
        }
        let displaced = self.resident_of(&slot);
        let to = self.place(slot)?;
        let Some(machine) = self.book.vm(vm) else { return Err(VmError::UnknownVm(vm.clone())) };
        if machine.identity.port.lid == Lid(0) {
            return Err(VmError::NoLid(vm.clone()));
        }
        let moves = self.address_moves(machine.identity.port, displaced, &machine.place.slot, &to.slot);
        self.sm_number += 1;
        let (number, epoch) = (self.sm_number, self.book.epoch);
        self.plans.insert(number, (id, now));
        let request = SmRequest { number, epoch, wish: SmWish::Plan, route, moves };
        self.outputs.push_back(crate::Output::AskSm(request));
        Ok(Turn::Begun)
    }

    /// The subnet manager has answered a question for a plan.
    pub(super) fn planned(&mut self, id: RequestId, answer: SmAnswer) {
        let result = match answer {
            SmAnswer::Plan(mut plan) => {
                plan.writes.truncate(PLAN_WRITES_MAX);
                Ok(Reply::Plan(plan))
            }
            SmAnswer::Unknown => {
                Err("it does not know moves; it will sweep when the port appears elsewhere".into())
            }
            SmAnswer::Timeout => Err(Why::with_hint("it does not answer", "weft ps")),
            SmAnswer::Refused(words) => Err(crate::agent::cut(&words).into()),
            SmAnswer::Unready(words) => {
                Err(Why::with_hint(format!("it cannot be asked: {words}"), "weft ps"))
            }
            SmAnswer::Done(_) | SmAnswer::OldEpoch(_) | SmAnswer::Later(_) => {
                Err("its answer is not one to that question".into())
            }
        };
        self.reply(id, result.map_err(VmError::NoPlan));
    }

    fn forget(&mut self, now: Time, name: &VmName, force: bool) -> Result<Turn, VmError> {
        let vm = self.book.vm(name).ok_or_else(|| VmError::UnknownVm(name.clone()))?;
        if let State::Lost(_) = vm.state {
            self.record(Record::Gone(name.clone()));
            return Ok(Turn::Answer(Ok(Reply::Forgotten)));
        }
        if self.doubt(name).is_none() {
            return Err(VmError::NotInDoubt(name.clone()));
        }
        if !force {
            return Err(VmError::NeedsForce(name.clone()));
        }
        self.abandon(now, name);
        let why = "it was forgotten meanwhile".to_owned();
        self.finish(name, Err(VmError::InDoubt { vm: name.clone(), why }));
        Ok(Turn::Answer(Ok(Reply::Forgotten)))
    }
}
