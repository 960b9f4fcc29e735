//! Virtual machines in the slots of adapters: their manager's steps, and what the simulator knows of who is where.

use weft_node::{Answer, Refusal, Request, SlotState, SlotStatus, VmCommand, VmDone};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::PortNum;

use super::Simulation;
use crate::nodes::Asked;

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
        self.world.clock.disturb();
        let at = self.nodes.at(PortRef::new(slot, PortNum(1)));
        let what = format_args!("{} {} {}", command.step.name(), command.vm, command.epoch);
        self.world.trace_node("vm", slot, what);
        self.turn.vm_outcome = None;
        let request = Request::Vm { device: at.device, command: Box::new(command) };
        self.request(slot, Asked::Vm(slot), request);
        match self.turn.vm_outcome.take() {
            Some(Ok(Answer::Vm(done))) => Ok(*done),
            Some(Err(refusal)) => Err(refusal),
            _ => Err(Refusal::NoSuchDevice(at.device)),
        }
    }

    /// The slot that a virtual function is, if its node is on.
    pub fn slot(&self, function: NodeIndex) -> Option<SlotStatus> {
        self.nodes.slot(function)
    }

    /// Every slot that is on, and the function that it is.
    pub fn slots(&self) -> impl Iterator<Item = (NodeIndex, SlotStatus)> {
        self.nodes.slots()
    }

    /// Sets of management that a device has received, in a slot also those of its earlier identities.
    pub fn smp_sets(&self, node: NodeIndex) -> u64 {
        self.nodes.smp_sets(node)
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
            done.removed.iter().for_each(|account| self.world.observers.past.bury(account));
            self.nodes.know_identity(function, done, &mut self.world.fabric);
        }
        self.turn.vm_outcome = Some(outcome);
    }
}
