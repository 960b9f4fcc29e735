//! The book: the state that the journal's records make. The same records give the same book.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, Lid};

use crate::Step;
use crate::identity::{Identity, P_KEYS_MAX, PortIdentity, Scheme};
use crate::names::{Place, Slot, VmName};
use crate::record::{Move, Record, State, Vm};
use crate::request::VMS_MAX;
use users::{User, Users};

mod users;

/// How far a GUID that a client chose may lie ahead and still move the next one that the manager chooses.
const GUIDS_AHEAD: u64 = 1 << 20;

/// What the journal comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) generation: u64,
    pub(crate) scheme: Scheme,
    /// Whether a manager has once begun without a journal.
    pub(crate) adopts: bool,
    /// The highest epoch.
    pub(crate) epoch: u64,
    pub(crate) next_guid: Guid,
    vms: BTreeMap<VmName, Vm>,
    /// The virtual machine that a slot is kept for.
    claims: BTreeMap<Slot, VmName>,
    /// Identities of slots without virtual machines, where they are known.
    spares: BTreeMap<Slot, PortIdentity>,
    /// Slots to be emptied.
    tombs: BTreeSet<Slot>,
    /// What uses which GUID, as the machines and spare identities above have it.
    users: Users,
}

impl Book {
    /// The book of a journal.
    ///
    /// # Errors
    ///
    /// Which record contradicts those before it, and how.
    pub(crate) fn replay(records: &[Record]) -> Result<Self, String> {
        let mut book = Self::default();
        for (i, record) in records.iter().enumerate() {
            book.apply(record)
                .map_err(|wrong| format!("record {} contradicts earlier ones: {wrong}", i + 1))?;
        }
        Ok(book)
    }

    /// The shortest journal that comes to the same.
    pub(crate) fn records(&self) -> Vec<Record> {
        let started = Record::Started {
            generation: self.generation,
            scheme: self.scheme,
            adopts: self.adopts,
            epoch: self.epoch,
            next_guid: self.next_guid,
        };
        let vms =
            self.vms.iter().map(|(name, vm)| Record::Vm { name: name.clone(), vm: Box::new(vm.clone()) });
        let spares = self.spares.iter().map(|(slot, port)| Record::Spare { slot: slot.clone(), port: *port });
        let tombs = self.tombs.iter().cloned().map(Record::Tomb);
        std::iter::once(started).chain(vms).chain(spares).chain(tombs).collect()
    }

    /// All virtual machines.
    pub(crate) fn vms(&self) -> &BTreeMap<VmName, Vm> {
        &self.vms
    }

    pub(crate) fn vm(&self, name: &VmName) -> Option<&Vm> {
        self.vms.get(name)
    }

    /// The move of a virtual machine, if it moves.
    pub(crate) fn moving(&self, name: &VmName) -> Option<(&Vm, &Move)> {
        let vm = self.vms.get(name)?;
        let State::Moving(moving) = &vm.state else { return None };
        Some((vm, moving))
    }

    /// The virtual machine that a slot is kept for.
    pub(crate) fn claim(&self, slot: &Slot) -> Option<&VmName> {
        self.claims.get(slot)
    }

    /// The claimed slots of a host.
    pub(crate) fn claims_of(&self, host: &crate::HostName) -> impl Iterator<Item = (&Slot, &VmName)> {
        let end = |vf| Slot { host: host.clone(), vf };
        self.claims.range(end(0)..=end(u8::MAX))
    }

    /// The identity of a slot without a virtual machine, if it is known.
    pub(crate) fn spare(&self, slot: &Slot) -> Option<&PortIdentity> {
        self.spares.get(slot)
    }

    pub(crate) fn is_tomb(&self, slot: &Slot) -> bool {
        self.tombs.contains(slot)
    }

    /// What uses a GUID, in words, besides the spare identity of `but`.
    pub(crate) fn user_of(&self, port: &PortIdentity, but: Option<&Slot>) -> Option<String> {
        users::first(&self.users, port, but).map(ToString::to_string)
    }

    /// Takes what a virtual machine uses into the index, or out of it.
    fn index(&mut self, name: &VmName, is_in: bool) {
        let Some(vm) = self.vms.get(name) else { return };
        if !matches!(vm.state, State::Lost(_)) {
            self.users.note(&vm.identity.port, &User::Vm(name.clone()), is_in);
        }
        if let State::Moving(moving) = &vm.state
            && let Some(displaced) = &moving.displaced
        {
            self.users.note(displaced, &User::Displaced(moving.to.slot.clone()), is_in);
        }
    }

    fn set_spare(&mut self, slot: &Slot, port: Option<PortIdentity>) {
        let user = || User::Spare(slot.clone());
        if let Some(before) = self.spares.remove(slot) {
            self.users.note(&before, &user(), false);
        }
        if let Some(port) = port {
            self.users.note(&port, &user(), true);
            self.spares.insert(slot.clone(), port);
        }
    }

    /// Takes a record.
    ///
    /// # Errors
    ///
    /// How it contradicts earlier ones. The book is then of no use any more.
    pub(crate) fn apply(&mut self, record: &Record) -> Result<(), String> {
        let Some(name) = record.vm() else { return self.take(record) };
        self.index(name, false);
        let taken = self.take(record);
        self.index(name, true);
        taken
    }

    fn take(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::Started { generation, scheme, adopts, epoch, next_guid } => {
                if *generation <= self.generation {
                    return Err(format!("generation {generation} after {}", self.generation));
                }
                if self.generation > 0 && *scheme != self.scheme && !self.vms.is_empty() {
                    return Err("virtual machines keep their LID scheme".to_owned());
                }
                (self.generation, self.scheme, self.adopts) = (*generation, *scheme, *adopts);
                (self.epoch, self.next_guid) = (self.epoch.max(*epoch), self.next_guid.max(*next_guid));
            }
            Record::Spare { slot, .. } if self.claims.contains_key(slot) => {
                return Err(format!("{slot} is not free and has a spare identity"));
            }
            Record::Spare { slot, port } => self.lay(slot, Some(*port)),
            Record::Vm { name, vm } => self.insert(name, vm)?,
            Record::Tomb(slot) => drop(self.tombs.insert(slot.clone())),
            Record::Cleared(slot) => drop(self.tombs.remove(slot)),
            Record::Create { name, identity, place, epoch } => self.create(name, identity, place, *epoch)?,
            Record::Created(name) => {
                let vm = self.vm_mut(name)?;
                if vm.state != State::Starting {
                    return Err(format!("`{name}` was not to be created"));
                }
                vm.state = State::Running;
            }
            Record::HasLid { name, lid } => self.vm_mut(name)?.identity.port.lid = *lid,
            Record::Destroy { name, epoch } => {
                let vm = self.vm_mut(name)?;
                if !matches!(vm.state, State::Running | State::Frozen) {
                    return Err(format!("`{name}` does not run and is to end"));
                }
                (vm.state, vm.epoch) = (State::Stopping, *epoch);
                self.epoch = self.epoch.max(*epoch);
            }
            Record::Gone(name) | Record::Forgotten(name) => {
                let slots = self.release(name)?;
                self.vms.remove(name);
                if matches!(record, Record::Forgotten(_)) {
                    self.tombs.extend(slots);
                }
            }
            Record::Lost { name, proof } => {
                let moved = self.moving(name).is_some();
                let slots = self.release(name)?;
                self.vm_mut(name)?.state = State::Lost(proof.clone());
                self.tombs.extend(slots.into_iter().filter(|_| moved));
            }
            Record::Reserve { name, to, displaced, cold, epoch } => {
                self.reserve(name, to, *displaced, *cold, *epoch)?;
            }
            Record::Step { name, step, epoch } => self.step(name, *step, *epoch)?,
        }
        Ok(())
    }

    fn vm_mut(&mut self, name: &VmName) -> Result<&mut Vm, String> {
        self.vms.get_mut(name).ok_or_else(|| format!("there is no `{name}`"))
    }

    /// Gives a free slot an identity; only prepopulated ones have one.
    fn lay(&mut self, slot: &Slot, port: Option<PortIdentity>) {
        if let Some(port) = port.filter(|_| self.scheme == Scheme::Prepopulated) {
            self.set_spare(slot, Some(port));
        }
    }

    fn claim_for(&mut self, slot: &Slot, name: &VmName) -> Result<(), String> {
        match self.claims.insert(slot.clone(), name.clone()) {
            Some(other) if other != *name => Err(format!("{slot} is kept for `{other}`")),
            _ => Ok(()),
        }
    }

    fn create(
        &mut self,
        name: &VmName,
        identity: &Identity,
        place: &Place,
        epoch: u64,
    ) -> Result<(), String> {
        if self.vms.contains_key(name) {
            return Err(format!("a second `{name}`"));
        }
        let (guid, next) = (identity.port.port_guid.0, self.next_guid.0);
        if (next..next.saturating_add(GUIDS_AHEAD)).contains(&guid) {
            self.next_guid = Guid(guid + 1);
        }
        let vm = Vm { identity: identity.clone(), place: place.clone(), epoch, state: State::Starting };
        self.insert(name, &vm)
    }

    fn insert(&mut self, name: &VmName, vm: &Vm) -> Result<(), String> {
        if vm.identity.p_keys.len() > P_KEYS_MAX {
            return Err(format!("`{name}` has {} P_Keys", vm.identity.p_keys.len()));
        }
        if let Some(old) = self.vms.get(name) {
            if old.state != State::Frozen {
                return Err(format!("a second `{name}`"));
            }
            self.claims.retain(|_, other| other != name);
        }
        if self.vms.len() >= VMS_MAX {
            return Err(format!("more than {VMS_MAX} virtual machines"));
        }
        if !matches!(vm.state, State::Lost(_)) {
            self.claim_for(&vm.place.slot, name)?;
            self.set_spare(&vm.place.slot, None);
        }
        if let State::Moving(moving) = &vm.state {
            self.claim_for(&moving.to.slot, name)?;
            self.set_spare(&moving.to.slot, None);
            self.epoch = self.epoch.max(moving.epoch);
        }
        self.epoch = self.epoch.max(vm.epoch);
        self.vms.insert(name.clone(), vm.clone());
        Ok(())
    }

    /// Frees what a virtual machine has, and says which slots it had. Its identity, and the one that it was to change places with,
    /// stay where the tables lead to.
    fn release(&mut self, name: &VmName) -> Result<Vec<Slot>, String> {
        let vm = self.vms.get(name).cloned().ok_or_else(|| format!("there is no `{name}`"))?;
        if let State::Lost(_) = vm.state {
            return Ok(Vec::new());
        }
        let mut slots = vec![vm.place.slot.clone()];
        let own = Some(vm.identity.port);
        match &vm.state {
            State::Moving(moving) => {
                slots.push(moving.to.slot.clone());
                let (here, there) = if moving.step.is_before_commit() {
                    (own, moving.displaced)
                } else {
                    (moving.displaced, own)
                };
                self.lay(&vm.place.slot, here);
                self.lay(&moving.to.slot, there);
            }
            _ => self.lay(&vm.place.slot, own),
        }
        for slot in &slots {
            self.claims.remove(slot);
        }
        Ok(slots)
    }

    fn reserve(
        &mut self,
        name: &VmName,
        to: &Place,
        displaced: Option<PortIdentity>,
        cold: bool,
        epoch: u64,
    ) -> Result<(), String> {
        let vm = self.vm_mut(name)?;
        if vm.state != State::Running {
            return Err(format!("`{name}` does not run and is to move"));
        }
        if vm.place.slot == to.slot {
            return Err(format!("`{name}` is to move to its own slot"));
        }
        let to = to.clone();
        let slot = to.slot.clone();
        let (step, frozen, imported, rerouted) = (Step::Reserve, None, None, false);
        vm.state =
            State::Moving(Box::new(Move { to, displaced, cold, step, epoch, frozen, imported, rerouted }));
        self.epoch = self.epoch.max(epoch);
        self.set_spare(&slot, None);
        self.claim_for(&slot, name)
    }

    fn step(&mut self, name: &VmName, step: Step, epoch: u64) -> Result<(), String> {
        self.epoch = self.epoch.max(epoch);
        let vm = self.vm_mut(name)?;
        let State::Moving(moving) = &mut vm.state else {
            return Err(format!("`{name}` does not move and has the step {step}"));
        };
        if !step.may_follow(moving.step) {
            return Err(format!("the step {step} of `{name}` after {}", moving.step));
        }
        if step == Step::Commit && moving.imported.is_none() {
            return Err(format!("the step {step} of `{name}`, which was not imported"));
        }
        (moving.step, moving.epoch) = (step, epoch);
        match step {
            Step::Freeze => moving.frozen = Some(epoch),
            Step::Import => moving.imported = Some(epoch),
            Step::Reroute => moving.rerouted = true,
            Step::Done => self.done(name),
            Step::Undone => self.undone(name),
            Step::Reserve | Step::Commit | Step::Undo | Step::Back | Step::Resume => {}
        }
        Ok(())
    }

    /// It runs at its destination.
    fn done(&mut self, name: &VmName) {
        let Some(vm) = self.vms.get_mut(name) else { return };
        let State::Moving(moving) = std::mem::replace(&mut vm.state, State::Running) else { return };
        let from = std::mem::replace(&mut vm.place, moving.to);
        vm.epoch = moving.epoch;
        if self.scheme == Scheme::Function {
            vm.identity.port = moving.displaced.unwrap_or(vm.identity.port);
        }
        self.claims.remove(&from.slot);
        self.lay(&from.slot, moving.displaced);
        // Its host may come back when the virtual machine is long gone, and what is left there must not pass for one.
        self.tombs.insert(from.slot);
    }

    /// It runs where it was.
    fn undone(&mut self, name: &VmName) {
        let Some(vm) = self.vms.get_mut(name) else { return };
        let State::Moving(moving) = std::mem::replace(&mut vm.state, State::Running) else { return };
        if moving.frozen.is_some() {
            vm.epoch = moving.epoch;
        }
        self.claims.remove(&moving.to.slot);
        self.lay(&moving.to.slot, moving.displaced);
        self.tombs.insert(moving.to.slot);
    }

    /// The LID that a virtual machine is known by.
    pub(crate) fn lid(&self, name: &VmName) -> Lid {
        self.vms.get(name).map_or(Lid(0), |vm| vm.identity.port.lid)
    }
}

#[cfg(test)]
mod tests;
