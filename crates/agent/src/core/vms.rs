//! Virtual machines in the slots of the agent's adapters, for their manager.

use weft_control::agent::SlotUse;
use weft_control::vm::{Departed, IMAGE_PART_BYTES_MAX, ImagePart, Slot, VmOrder, VmStep as Ordered};
use weft_control::{Answer, Error, ErrorCode, HexGuid};
use weft_host::stack::Image;
use weft_node::{
    Answer as NodeAnswer, DeviceId, PortId, Refusal, Request, SlotStatus, VmCommand, VmDone, VmRefusal,
    VmStep,
};
use weft_wire::{Guid, Lid, PortNum};

use super::Core;
use crate::asked::{Asker, Reply};
use crate::counter::Counter;
use crate::vms::{VmEpoch, heard_identity, told_identity};

impl Core {
    /// All slots, in order of the GUIDs that they began with.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.names.slots().filter_map(|(guid, id)| Some(self.told_slot(guid, self.node.slot(id)?)))
    }

    /// Slots that are not plugged in.
    pub(crate) fn empty_slots(&self) -> usize {
        self.node.unplugged_slots()
    }

    /// The slot that a device is, if it is one, for the status of its ports.
    pub(crate) fn slot_use(&self, device: DeviceId) -> Option<SlotUse> {
        let state = self.node.slot(device)?.state;
        let guid = self.names.slot_of(device)?;
        Some(SlotUse { slot: HexGuid(guid), state })
    }

    /// Takes a virtual machine a step on; `None` when the node is asked.
    pub(crate) fn vm_order(&mut self, order: VmOrder, reply: Reply) -> Option<Result<Answer, Error>> {
        let device = match self.check_order(&order) {
            Ok(device) => device,
            Err(error) => return Some(Err(error)),
        };
        let VmOrder { vm, epoch, step, .. } = order;
        let offset = if let Ordered::Export { offset } = step { offset } else { 0 };
        match self.vm_step(device, VmEpoch { vm: &vm, epoch }, step) {
            Ok(Some(step)) => {
                let command = Box::new(VmCommand { vm, epoch, step });
                self.ask(Asker::Vm(reply, device, offset), Request::Vm { device, command });
                None
            }
            Ok(None) => Some(self.slot_answer(device, None)),
            Err(error) => Some(Err(self.at_slot(device, error))),
        }
    }

    /// Whether an order is for this life of the agent, from the latest manager, and for a slot that is here.
    fn check_order(&mut self, order: &VmOrder) -> Result<DeviceId, Error> {
        let own = self.waking.clock.incarnation();
        if order.incarnation != own {
            let message = format!(
                "the order is for another life of this agent, {}; this one is {own}, and virtual machines of others have ended",
                order.incarnation
            );
            return Err(Error::new(ErrorCode::Conflict, message).hint("ask `hello` and `slots` again"));
        }
        self.check_generation(&order.manager, order.generation)?;
        let Some(device) = self.names.slot(order.slot.0) else {
            let message = format!("there is no slot {} here", order.slot);
            return Err(Error::new(ErrorCode::NotFound, message).hint("ask `slots` for all of them"));
        };
        self.begin_generation(&order.manager, order.generation)?;
        Ok(device)
    }

    fn check_generation(&self, manager: &str, generation: u64) -> Result<(), Error> {
        let latest = self.vms.generation(manager);
        if generation >= latest {
            return Ok(());
        }
        let message = format!(
            "generation {generation} of the manager of virtual machines is over, {latest} is the latest"
        );
        Err(Error::new(ErrorCode::Conflict, message).hint("stop this manager: another one is there"))
    }

    /// From now on orders of earlier managers are refused.
    pub(crate) fn begin_generation(&mut self, manager: &str, generation: u64) -> Result<Answer, Error> {
        self.check_generation(manager, generation)?;
        if self.vms.note_generation(manager, generation) {
            return Ok(Answer::Done);
        }
        Err(Error::new(ErrorCode::Conflict, "no other manager of virtual machines has a place here")
            .hint("one for each piece of the fabric is enough"))
    }

    /// The node's step; none where the agent has done it.
    fn vm_step(&mut self, device: DeviceId, of: VmEpoch<'_>, step: Ordered) -> Result<Option<VmStep>, Error> {
        let leave = |leave: Option<_>| leave.map(heard_identity);
        Ok(Some(match step {
            Ordered::Part { offset, bytes } => {
                self.vms.keep_part(device, of, offset, bytes.0)?;
                return Ok(None);
            }
            Ordered::Import { identity, from_epoch, image_bytes } => {
                let image = self.arrived_image(device, of, image_bytes)?;
                VmStep::Import { identity: heard_identity(identity), from_epoch, image }
            }
            Ordered::Boot { identity } => VmStep::Boot(heard_identity(identity)),
            Ordered::Reserve => VmStep::Reserve,
            Ordered::Freeze => VmStep::Freeze,
            Ordered::Export { .. } => VmStep::Export,
            Ordered::Activate => VmStep::Activate,
            Ordered::Release { leave: identity } => VmStep::Release { leave: leave(identity) },
            Ordered::Resume => VmStep::Resume,
            Ordered::Unplug { leave: identity } => VmStep::Unplug { leave: leave(identity) },
        }))
    }

    /// The image whose parts have come, or none where it was taken before or there is none.
    fn arrived_image(
        &self,
        device: DeviceId,
        of: VmEpoch<'_>,
        image_bytes: u32,
    ) -> Result<Option<Box<Image>>, Error> {
        let is_here = |slot: SlotStatus| (slot.vm.as_deref(), slot.epoch) == (Some(of.vm), of.epoch);
        if image_bytes == 0 || self.node.slot(device).is_some_and(is_here) {
            return Ok(None);
        }
        let bytes = self.vms.image(device, of).unwrap_or_default();
        if u32::try_from(bytes.len()) != Ok(image_bytes) {
            let message = format!(
                "the image of virtual machine {} in epoch {} has {image_bytes} bytes, and {} are here",
                of.vm,
                of.epoch,
                bytes.len()
            );
            return Err(Error::new(ErrorCode::Conflict, message).hint("send its parts again"));
        }
        let image = Image::decode(bytes).map_err(|error| {
            let message = format!("virtual machine {}: {error}", of.vm);
            Error::new(ErrorCode::InvalidRequest, message).hint("freeze it, and export it again")
        })?;
        Ok(Some(Box::new(image)))
    }

    /// The node has done a step, or refuses it.
    pub(crate) fn vm_answered(
        &mut self,
        reply: Reply,
        device: DeviceId,
        offset: u32,
        outcome: Result<NodeAnswer, Refusal>,
    ) {
        let answer = match outcome {
            Ok(NodeAnswer::Vm(done)) => self.vm_done(device, offset, *done),
            Err(Refusal::Vm(refusal)) => Err(self.at_slot(device, vm_error(&refusal))),
            Err(refusal) => Err(self.refused(&refusal)),
            Ok(_) => self.slot_answer(device, None),
        };
        // A client that has left does not want to know.
        let _ = reply.send(answer);
    }

    fn vm_done(&mut self, device: DeviceId, offset: u32, done: VmDone) -> Result<Answer, Error> {
        let VmDone { slot, removed, removed_sets, image } = done;
        self.recorder.count(Counter::VmSteps);
        if let Some(account) = removed {
            self.vms.bury(device, &account, removed_sets);
            self.vms.forget_parts(device);
        }
        self.know_identity(&slot);
        // Before the manager hears of it and activates the identity on another host.
        self.keep_away(device, &slot).map_err(|error| self.at_slot(device, error))?;
        let part = image.map(|image| part_of(&image, offset)).transpose();
        let part = part.map_err(|error| self.at_slot(device, error))?;
        self.slot_answer(device, part)
    }

    /// Keeps whether the slot's own identity has left it.
    fn keep_away(&mut self, device: DeviceId, slot: &SlotStatus) -> Result<(), Error> {
        let Some(first) = self.names.slot_of(device) else { return Ok(()) };
        let is_away = slot.identity.guid != first || !slot.plugged;
        self.vms.set_away(first, is_away).map_err(|error| {
            let message = format!("the step is done, and cannot be kept for the agent's next life: {error}");
            Error::new(ErrorCode::Failed, message).hint("repeat it when there is room on the disk")
        })
    }

    /// Names and cables follow the identity in a slot.
    fn know_identity(&mut self, slot: &SlotStatus) {
        let known = self.names.of(slot.device).map(|named| named.who.guid);
        if known == Some(slot.identity.guid) {
            return;
        }
        self.names.rename(slot.device, &slot.identity);
        let peer = self.node.peer(PortId::new(slot.device, PortNum(1)));
        if let Some(peer) = peer {
            self.wiring.rename_peer(peer, slot.identity.guid);
        }
    }

    fn slot_answer(&self, device: DeviceId, image: Option<ImagePart>) -> Result<Answer, Error> {
        let guid = self.names.slot_of(device).unwrap_or(Guid(0));
        let gone = || Error::new(ErrorCode::NotFound, "the slot is gone");
        let slot = self.node.slot(device).ok_or_else(gone)?;
        Ok(Answer::Vm { slot: Box::new(self.told_slot(guid, slot)), image })
    }

    fn told_slot(&self, guid: Guid, slot: SlotStatus) -> Slot {
        let port = PortId::new(slot.device, PortNum(1));
        let vswitch = self.peer(port);
        let lid = self.node.device(slot.device).and_then(|device| device.port_snapshot(port.port));
        Slot {
            slot: HexGuid(guid),
            name: slot.name,
            vswitch: HexGuid(vswitch.map_or(Guid(0), |end| end.guid)),
            vswitch_port: vswitch.map_or(0, |end| end.port.0),
            state: slot.state,
            vm: slot.vm,
            epoch: slot.epoch,
            identity: told_identity(&slot.identity),
            lid: lid.map_or(Lid(0), |port| port.lid),
            plugged: slot.plugged,
            left: slot.left.map(|(vm, epoch)| Departed { vm, epoch }),
        }
    }

    /// An error that says at which slot it happened.
    fn at_slot(&self, device: DeviceId, error: Error) -> Error {
        let name = self.node.slot(device).map_or_else(String::new, |slot| slot.name);
        Error { message: format!("slot {name}: {}", error.message), ..error }
    }
}

fn vm_error(refusal: &VmRefusal) -> Error {
    let code = match refusal {
        VmRefusal::NoSlot | VmRefusal::NotHere { .. } => ErrorCode::NotFound,
        VmRefusal::Name | VmRefusal::Epoch | VmRefusal::Guid(_) | VmRefusal::Partitions(..) => {
            ErrorCode::InvalidRequest
        }
        _ => ErrorCode::Conflict,
    };
    Error::new(code, refusal.to_string()).hint(refusal.hint())
}

/// The part of an image that begins at a byte. The image of a frozen function is the same whenever it is asked for.
fn part_of(image: &Image, offset: u32) -> Result<ImagePart, Error> {
    let bytes = image.encode().map_err(|error| Error::new(ErrorCode::Failed, error.to_string()))?;
    let total = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let rest = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).ok_or_else(|| {
        let message = format!("the image has {total} bytes, and byte {offset} is asked for");
        Error::new(ErrorCode::InvalidRequest, message).hint("begin with byte 0")
    })?;
    let part = rest.get(..IMAGE_PART_BYTES_MAX).unwrap_or(rest).to_vec();
    Ok(ImagePart { total, offset, bytes: weft_control::HexBytes(part) })
}
