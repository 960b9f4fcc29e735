//! Virtual machines in slots: what their steps do to devices, cables and hosts.

use weft_device::{DataAccount, Device, DeviceConfig};
use weft_host::stack::{Guids, Image, Place, Stack, StackOptions};
use weft_wire::{Guid, PKey, PortNum};

use crate::vms::{Act, Slot, check};
use crate::{
    Answer, DeviceId, NewDevice, Node, PortId, Refusal, SlotState, SlotStatus, VmCommand, VmDone, VmIdentity,
    VmRefusal, VmStep,
};

/// The only port of a virtual function.
const VF_PORT: PortNum = PortNum(1);

fn vf_port(device: DeviceId) -> PortId {
    PortId::new(device, VF_PORT)
}

impl Node {
    /// The slots, in order of their devices.
    pub fn slots(&self) -> impl Iterator<Item = SlotStatus> {
        self.slots.all.keys().filter_map(|device| self.slot(*device))
    }

    /// How many slots are not plugged in.
    pub fn unplugged_slots(&self) -> usize {
        self.slots.all.keys().filter(|device| !self.is_seated(vf_port(**device))).count()
    }

    /// The slot that a device is.
    pub fn slot(&self, device: DeviceId) -> Option<SlotStatus> {
        let slot = self.slots.all.get(&device)?;
        Some(SlotStatus {
            device,
            name: slot.first.config.description.clone(),
            state: slot.state,
            vm: slot.vm.clone(),
            epoch: slot.epoch,
            identity: slot.identity.clone(),
            plugged: self.is_seated(vf_port(device)),
            left: slot.left.clone(),
        })
    }

    /// Switches on another device, which is a slot.
    pub(crate) fn add_slot(&mut self, mut new: NewDevice, empty: bool) -> DeviceId {
        new.stack.iter_mut().for_each(|stack| stack.is_function = true);
        let device = self.add_device(&new);
        let identity = identity_of(&new.config);
        let state = if empty { SlotState::Empty } else { SlotState::Free };
        let slot = Slot { first: new, renewals: 0, identity, state, vm: None, epoch: 0, left: None };
        self.slots.all.insert(device, slot);
        self.seat(vf_port(device), !empty);
        device
    }

    /// Carries out a step of a virtual machine.
    pub(crate) fn vm(&mut self, device: DeviceId, command: VmCommand) -> Result<Answer, Refusal> {
        self.vm_step(device, command).map(|done| Answer::Vm(Box::new(done))).map_err(Refusal::Vm)
    }

    fn vm_step(&mut self, device: DeviceId, command: VmCommand) -> Result<VmDone, VmRefusal> {
        check(&command)?;
        let slot = self.slots.all.get(&device).ok_or(VmRefusal::NoSlot)?;
        let act = slot.judge(&command, self.slots.latest(&command.vm))?;
        let VmCommand { vm, epoch, step } = command;
        let (mut removed, mut exported) = (None, None);
        let sets = self.device(device).map_or(0, |device| device.statistics().smp_sets);
        match (act, step) {
            (Act::Adopt | Act::Seat, VmStep::Boot(identity)) => {
                removed = self.boot(device, &vm, epoch, identity, act == Act::Seat)?;
            }
            (Act::Seat, VmStep::Import { identity, from_epoch, image }) => {
                let guids =
                    self.slots.all.get(&device).and_then(|slot| Some(slot.first.stack.as_ref()?.guids));
                let renames = guids == Some(Guids::Dynamic);
                let place = Place { guid: identity.port_guid, from_epoch, epoch, renames, lid: None };
                removed = Some(self.import(device, &vm, identity, image, &place)?);
            }
            (Act::Keep, _) => self.keep(device, &vm),
            (Act::Suspend, _) => {
                let now = self.now;
                self.with_stack(vf_port(device), |stack| {
                    stack.begin_epoch(epoch);
                    stack.suspend(now);
                });
                self.set_state(device, SlotState::Frozen);
            }
            (Act::Export, _) => {
                exported = self.export(device, &vm)?;
                self.seat(vf_port(device), false);
            }
            (Act::Resume, _) => self.resume(device, &vm, epoch)?,
            (Act::Leave, VmStep::Release { leave } | VmStep::Unplug { leave }) => {
                removed = self.leave(device, epoch, leave)?;
            }
            // Whatever else was carried out before.
            _ => {}
        }
        if let Some(slot) = self.slots.all.get_mut(&device) {
            slot.epoch = slot.epoch.max(epoch);
        }
        if !vm.is_empty() {
            self.slots.hear(&vm, epoch);
        }
        let slot = self.slot(device).ok_or(VmRefusal::NoSlot)?;
        let removed_sets = if removed.is_some() { sets } else { 0 };
        Ok(VmDone { slot, removed: removed.map(Box::new), removed_sets, image: exported })
    }

    /// A virtual machine begins. The function is switched off and on again, unless it has the identity already.
    fn boot(
        &mut self,
        device: DeviceId,
        vm: &str,
        epoch: u64,
        identity: VmIdentity,
        renews: bool,
    ) -> Result<Option<DataAccount>, VmRefusal> {
        self.check_alone(device, vm, false)?;
        self.check_identity(device, &identity)?;
        let removed = renews.then(|| {
            self.seat(vf_port(device), false);
            let account = self.renew(device, &identity);
            self.seat(vf_port(device), true);
            account
        });
        self.with_stack(vf_port(device), |stack| {
            stack.begin_epoch(epoch);
            stack.offer_name(vm);
        });
        self.occupy(device, identity, vm, SlotState::Running);
        Ok(removed)
    }

    /// Whether an identity may be plugged in here.
    fn check_identity(&self, device: DeviceId, identity: &VmIdentity) -> Result<(), VmRefusal> {
        for guid in [identity.guid, identity.port_guid] {
            if guid == Guid(0) || guid == Guid(u64::MAX) {
                return Err(VmRefusal::Guid(guid));
            }
        }
        let room = self.slots.all.get(&device).map_or(0, |slot| slot.first.config.options.partition_cap);
        if identity.p_keys.len() > usize::from(room) {
            return Err(VmRefusal::Partitions(identity.p_keys.len(), room));
        }
        // The fabric does not know a slot that is not plugged in.
        let is_there =
            |id: DeviceId| id != device && (!self.slots.all.contains_key(&id) || self.is_seated(vf_port(id)));
        for (id, other) in self.devices().filter(|(id, _)| is_there(*id)) {
            let snapshot = other.snapshot();
            let ports = snapshot.ports.iter().map(|port| port.guid);
            let taken = std::iter::once(snapshot.guid)
                .chain(ports)
                .find(|guid| [identity.guid, identity.port_guid].contains(guid));
            if let Some(guid) = taken {
                let owner = self.slots.all.get(&id).and_then(|slot| slot.vm.clone());
                return Err(VmRefusal::GuidTaken { guid, owner: owner.unwrap_or(snapshot.description) });
            }
        }
        Ok(())
    }

    /// Whether no other slot here has a virtual machine, unless it is frozen there and may leave.
    fn check_alone(&self, device: DeviceId, vm: &str, may_leave: bool) -> Result<(), VmRefusal> {
        let stays = |slot: &Slot| slot.state != SlotState::Frozen || !may_leave;
        let elsewhere =
            |(id, slot): &(&DeviceId, &Slot)| **id != device && slot.vm.as_deref() == Some(vm) && stays(slot);
        match self.slots.all.iter().find(elsewhere) {
            Some((_, other)) => Err(VmRefusal::Elsewhere { vm: vm.to_owned(), state: other.state }),
            None => Ok(()),
        }
    }

    /// Whether the port has the partitions of what arrived, those of its identity and those that its paths use: its manager writes
    /// them before it may run. One that stayed has those that it had.
    fn check_partitions(&self, device: DeviceId, vm: &str) -> Result<(), VmRefusal> {
        let arrived = self.slots.all.get(&device).filter(|slot| slot.state == SlotState::Imported);
        let Some((slot, adapter)) = arrived.zip(self.device(device)) else { return Ok(()) };
        let of_paths = self.stack(vf_port(device)).map(|stack| stack.identity().p_keys);
        let mut wanted = slot.identity.p_keys.iter().copied().chain(of_paths.into_iter().flatten());
        let table = adapter.own_p_keys(VF_PORT);
        let has = |wanted: &PKey| table.iter().any(|own| own.speaks_for(*wanted));
        match wanted.find(|wanted| !has(wanted)) {
            Some(p_key) => Err(VmRefusal::Partition { vm: vm.to_owned(), p_key }),
            None => Ok(()),
        }
    }

    /// Keeps an empty or free slot for a virtual machine; its function stays as it is.
    fn keep(&mut self, device: DeviceId, vm: &str) {
        if let Some(slot) = self.slots.all.get_mut(&device) {
            (slot.state, slot.vm) = (SlotState::Reserved, Some(vm.to_owned()));
        }
    }

    fn occupy(&mut self, device: DeviceId, identity: VmIdentity, vm: &str, state: SlotState) {
        if let Some(slot) = self.slots.all.get_mut(&device) {
            (slot.identity, slot.state, slot.vm) = (identity, state, Some(vm.to_owned()));
        }
    }

    fn set_state(&mut self, device: DeviceId, state: SlotState) {
        if let Some(slot) = self.slots.all.get_mut(&device) {
            slot.state = state;
        }
    }

    /// Empties the slot and lays another identity there, or none. A function that has that identity and no virtual machine
    /// stays plugged in.
    fn leave(
        &mut self,
        device: DeviceId,
        epoch: u64,
        leave: Option<VmIdentity>,
    ) -> Result<Option<DataAccount>, VmRefusal> {
        if let Some(identity) = &leave {
            self.check_identity(device, identity)?;
        }
        let is_seated = self.is_seated(vf_port(device));
        let Some(slot) = self.slots.all.get(&device) else { return Err(VmRefusal::NoSlot) };
        let (identity, state) = match leave {
            Some(identity) => (identity, SlotState::Free),
            None => (identity_of(&slot.first.config), SlotState::Empty),
        };
        let is_vacant = matches!(slot.state, SlotState::Empty | SlotState::Free | SlotState::Reserved);
        let is_same = (slot.identity.guid, slot.identity.port_guid) == (identity.guid, identity.port_guid);
        let stays = is_vacant && is_same && is_seated == (state == SlotState::Free);
        let account = (!stays).then(|| {
            self.seat(vf_port(device), false);
            let account = self.renew(device, &identity);
            self.seat(vf_port(device), state == SlotState::Free);
            account
        });
        if let Some(slot) = self.slots.all.get_mut(&device) {
            (slot.identity, slot.state) = (identity, state);
            slot.left = slot.vm.take().map(|vm| (vm, epoch)).or_else(|| slot.left.take());
        }
        Ok(account)
    }

    /// Takes an image into a function with another identity; nothing changes when it is refused.
    fn import(
        &mut self,
        device: DeviceId,
        vm: &str,
        identity: VmIdentity,
        image: Option<Box<Image>>,
        place: &Place,
    ) -> Result<DataAccount, VmRefusal> {
        self.check_alone(device, vm, true)?;
        self.check_identity(device, &identity)?;
        let first = self.slots.all.get(&device).map(|slot| &slot.first);
        let options = first.and_then(|first| first.stack.clone());
        // A host that began while its machine ran comes along with it.
        let begun_late = image.is_some() && first.is_none_or(|first| first.hosts.is_empty());
        let restored = match (options, image) {
            (options, Some(image)) => {
                let mut stack = Stack::new(options.unwrap_or_default());
                stack.import(*image, self.now, place).map_err(|error| VmRefusal::image(vm, &error))?;
                Some(stack)
            }
            (None, None) => None,
            // It was shut down, and begins again when it is activated.
            (Some(options), None) => {
                let mut stack = Stack::new(options);
                stack.offer_name(vm);
                stack.suspend(self.now);
                Some(stack)
            }
        };
        self.seat(vf_port(device), false);
        let account = self.renew(device, &identity);
        if begun_late {
            self.add_hosts(device, &[vf_port(device).port], &StackOptions::default());
        }
        if let Some(restored) = restored {
            self.with_stack(vf_port(device), |fresh| *fresh = restored);
        }
        self.seat(vf_port(device), true);
        self.occupy(device, identity, vm, SlotState::Imported);
        Ok(account)
    }

    /// What is frozen or was imported goes on in an epoch.
    fn resume(&mut self, device: DeviceId, vm: &str, epoch: u64) -> Result<(), VmRefusal> {
        self.check_alone(device, vm, true)?;
        let identity = self.slots.all.get(&device).map(|slot| slot.identity.clone());
        // The place of one that was exported may have been taken meanwhile.
        identity.map_or(Ok(()), |identity| self.check_identity(device, &identity))?;
        self.check_partitions(device, vm)?;
        self.seat(vf_port(device), true);
        self.set_state(device, SlotState::Running);
        let now = self.now;
        self.with_stack(vf_port(device), |stack| {
            stack.begin_epoch(epoch);
            stack.resume(now);
        });
        Ok(())
    }

    /// Gives an unplugged function another identity: the device loses settings and programs.
    fn renew(&mut self, device: DeviceId, identity: &VmIdentity) -> DataAccount {
        self.detach_all(device);
        self.later.retain(|(at, _)| at.device != device);
        let Some(known) = self.slots.all.get_mut(&device) else { return DataAccount::default() };
        known.renewals += 1;
        let mut config = known.first.config.clone();
        (config.guid, config.description) = (identity.guid, identity.description.clone());
        config.ports.iter_mut().for_each(|port| port.guid = identity.port_guid);
        let limit = &mut config.options.data.host_limit_mbps;
        *limit = tighter(*limit, identity.rate_mbps);
        let (hosts, stack) = (known.first.hosts.clone(), known.first.stack.clone());
        let incarnation = known.first.incarnation.wrapping_add(known.renewals);
        let fresh = Device::new(&config).with_incarnation(incarnation);
        let Some(slot) = self.devices.get_mut(device) else { return DataAccount::default() };
        let account = std::mem::replace(&mut slot.device, fresh).data_account();
        let gone = std::mem::take(&mut slot.hosts);
        self.forget_hosts(gone);
        self.offer_link(vf_port(device));
        self.take_up(device);
        if let Some(options) = &stack {
            self.add_hosts(device, &hosts, options);
        }
        account
    }

    fn export(&self, device: DeviceId, vm: &str) -> Result<Option<Box<Image>>, VmRefusal> {
        let stack = self.stack(vf_port(device));
        let image = stack.map(Stack::export).transpose();
        image.map(|image| image.map(Box::new)).map_err(|error| VmRefusal::image(vm, &error))
    }
}

/// What a device is called at first.
fn identity_of(config: &DeviceConfig) -> VmIdentity {
    VmIdentity {
        guid: config.guid,
        port_guid: config.ports.first().map_or(config.guid, |port| port.guid),
        description: config.description.clone(),
        p_keys: Vec::new(),
        weight: 1,
        rate_mbps: 0,
    }
}

/// Of two limits the lower one; 0 is none.
fn tighter(one: u32, other: u32) -> u32 {
    if one == 0 || other == 0 { one.max(other) } else { one.min(other) }
}
