//! Virtual machines in the slots of adapters: their manager's steps, and what the simulator knows of who is where.

use weft_node::{Answer, Refusal, Request, SlotState, SlotStatus, VmCommand, VmDone, VmIdentity};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use super::Simulation;
use crate::ledger::Asked;

/// The fabric does not know a function that is not plugged in: its GUIDs here are its index and this.
const NOBODY: u64 = 0xfffe_0000_0000_0000;

impl Simulation {
    /// Takes a virtual machine one step on in the slot of a virtual function, now ([`SimOptions::adapters`]). The answer is the
    /// node's, at once.
    ///
    /// # Errors
    ///
    /// The node's refusal; [`Refusal::NoSuchDevice`] when the function's node is off.
    ///
    /// [`SimOptions::adapters`]: crate::SimOptions::adapters
    pub fn vm(&mut self, slot: NodeIndex, command: VmCommand) -> Result<VmDone, Refusal> {
        self.disturb();
        let at = self.at(PortRef::new(slot, PortNum(1)));
        if self.trace.is_on() {
            let id = &self.fabric.node(slot).id;
            let what = format_args!("{} {} {}", command.step.name(), command.vm, command.epoch);
            self.trace.line(self.now, "vm", format_args!("{id:<24}"), what);
        }
        self.vm_outcome = None;
        let request = Request::Vm { device: at.device, command: Box::new(command) };
        self.request(slot, Asked::Vm(slot), request);
        match self.vm_outcome.take() {
            Some(Ok(Answer::Vm(done))) => Ok(*done),
            Some(Err(refusal)) => Err(refusal),
            _ => Err(Refusal::NoSuchDevice(at.device)),
        }
    }

    /// The slot that a virtual function is, if its node is on.
    pub fn slot(&self, function: NodeIndex) -> Option<SlotStatus> {
        self.node(function)?.slot(self.at(PortRef::new(function, PortNum(1))).device)
    }

    /// Every slot that is on, and the function that it is.
    pub fn slots(&self) -> impl Iterator<Item = (NodeIndex, SlotStatus)> {
        let functions = self.device_slots.iter().zip(0..).filter(|(slot, _)| slot.is_function);
        functions.filter_map(|(_, number)| Some((NodeIndex(number), self.slot(NodeIndex(number))?)))
    }

    /// Sets of management that a device has received, in a slot also those of its earlier identities.
    pub fn smp_sets(&self, node: NodeIndex) -> u64 {
        let past = self.past_sets.get(&node).copied().unwrap_or(0);
        past + self.device(node).map_or(0, |device| device.statistics().smp_sets)
    }

    /// The function in whose slot a virtual machine is, and what it does there; of several the one that is not frozen.
    pub fn find_vm(&self, vm: &str) -> Option<(NodeIndex, SlotStatus)> {
        let is_it = |slot: &SlotStatus| slot.vm.as_deref() == Some(vm) && slot.state != SlotState::Reserved;
        let here = self.slots().filter(|(_, slot)| is_it(slot));
        here.min_by_key(|(_, slot)| slot.state == SlotState::Frozen)
    }

    /// A step of a virtual machine has its answer.
    pub(super) fn vm_answered(&mut self, function: NodeIndex, outcome: Result<Answer, Refusal>) {
        if let Ok(Answer::Vm(done)) = &outcome {
            if let Some(account) = &done.removed {
                self.past.bury(account);
                *self.past_sets.entry(function).or_default() += done.removed_sets;
            }
            self.know_identity(function, &done.slot);
        }
        self.vm_outcome = Some(outcome);
    }

    /// The cabling says who is where: what is plugged in has its identity. One that a function had when its agent died may be
    /// plugged in elsewhere since; of two that have the same for a moment, the later one gets it when the earlier one leaves it.
    fn know_identity(&mut self, function: NodeIndex, slot: &SlotStatus) {
        self.unnamed.remove(&function);
        if !self.name(function, slot) {
            self.unnamed.insert(function);
        }
        for waiting in self.unnamed.clone() {
            if self.slot(waiting).is_none_or(|slot| self.name(waiting, &slot)) {
                self.unnamed.remove(&waiting);
            }
        }
    }

    /// Gives a function the GUIDs of what is plugged in; false while they are another's.
    fn name(&mut self, function: NodeIndex, slot: &SlotStatus) -> bool {
        if !slot.plugged {
            return self.be_nobody(function);
        }
        let VmIdentity { guid, port_guid, .. } = slot.identity;
        if let Some(before) = self.fabric.by_guid(guid).filter(|before| self.device(*before).is_none()) {
            self.be_nobody(before);
        }
        self.be(function, [guid, port_guid])
    }

    /// The cabling has a function's GUIDs no more.
    fn be_nobody(&mut self, function: NodeIndex) -> bool {
        self.be(function, [Guid(NOBODY | u64::from(function.0)); 2])
    }

    fn be(&mut self, function: NodeIndex, [guid, port]: [Guid; 2]) -> bool {
        let node = self.fabric.node(function);
        let first = [node.guid, node.port(PortNum(1)).map_or(node.guid, |port| port.guid)];
        self.first_guids.entry(function).or_insert(first);
        self.fabric.identify(function, guid, port)
    }

    /// A function that is switched on has the GUIDs that it had at first. Whether it can: they may be elsewhere now.
    pub(super) fn forget_identity(&mut self, function: NodeIndex) -> bool {
        let Some(&[guid, port]) = self.first_guids.get(&function) else { return true };
        self.fabric.identify(function, guid, port)
    }
}
