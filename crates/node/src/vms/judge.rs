//! Judgement of a virtual machine's step: whether it follows from what its slot knows, and its effect.

use super::slots::Slot;
use super::{SlotState, VM_NAME_BYTES_MAX, VmCommand, VmIdentity, VmRefusal, VmStep};

/// What a step that is not refused does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// It was carried out already.
    Nothing,
    /// The identity that is in the slot becomes the virtual machine's.
    Adopt,
    /// Another identity is plugged in.
    Seat,
    /// Only the epoch is another from now on.
    Note,
    /// The slot is kept.
    Keep,
    /// The host software is suspended.
    Suspend,
    /// The function is unplugged, and its image given.
    Export,
    /// The host software goes on.
    Resume,
    /// The virtual machine leaves.
    Leave,
}

/// What is wrong with a command whatever its slot does.
pub(crate) fn check(command: &VmCommand) -> Result<(), VmRefusal> {
    let VmCommand { vm, epoch, step } = command;
    let printable = vm.chars().all(|letter| !letter.is_control());
    let least = usize::from(!matches!(step, VmStep::Unplug { .. }));
    if !(least..=VM_NAME_BYTES_MAX).contains(&vm.len()) || !printable {
        return Err(VmRefusal::Name);
    }
    if *epoch == 0 {
        return Err(VmRefusal::Epoch);
    }
    if let VmStep::Import { from_epoch, .. } = step
        && from_epoch >= epoch
    {
        return Err(VmRefusal::OldEpoch { vm: vm.clone(), given: *epoch, known: *from_epoch });
    }
    Ok(())
}

impl Slot {
    /// What a step does. `latest` is the latest epoch of the virtual machine that any slot here has heard of.
    pub(crate) fn judge(&self, command: &VmCommand, latest: u64) -> Result<Act, VmRefusal> {
        if command.epoch < self.epoch {
            return Err(VmRefusal::OldSlotEpoch { given: command.epoch, known: self.epoch });
        }
        match &self.vm {
            Some(vm) if *vm == command.vm => self.judge_own(command),
            _ if command.vm.is_empty() => self.judge_unplug(command),
            _ => self.judge_other(command, latest),
        }
    }

    /// Whatever is in the slot is to end.
    fn judge_unplug(&self, command: &VmCommand) -> Result<Act, VmRefusal> {
        let done = command.epoch == self.epoch && self.vm.is_none();
        Ok(if done { Act::Nothing } else { Act::Leave })
    }

    /// A step of the virtual machine in the slot.
    fn judge_own(&self, command: &VmCommand) -> Result<Act, VmRefusal> {
        use SlotState::{Frozen, Imported, Reserved, Running};
        let VmCommand { vm, epoch: given, step } = command;
        let (vm, is_later) = (|| vm.clone(), *given > self.epoch);
        let refused = |needs, hint| {
            Err(VmRefusal::State { vm: vm(), state: self.state, step: step.name(), needs, hint })
        };
        match (step, self.state) {
            (VmStep::Import { .. }, Reserved) => Ok(Act::Seat),
            (VmStep::Reserve, Reserved) => Ok(Act::Note),
            (VmStep::Boot(_) | VmStep::Import { .. }, _) if is_later => {
                Err(VmRefusal::Occupied { vm: vm(), state: self.state })
            }
            (VmStep::Boot(identity) | VmStep::Import { identity, .. }, _) if !self.has(identity) => {
                Err(VmRefusal::OtherIdentity { vm: vm() })
            }
            (VmStep::Boot(_) | VmStep::Import { .. }, Running | Frozen | Imported) => Ok(Act::Nothing),
            (VmStep::Activate | VmStep::Resume, Running) => Ok(Act::Note),
            (VmStep::Boot(_) | VmStep::Reserve | VmStep::Import { .. }, _) => {
                Err(VmRefusal::Occupied { vm: vm(), state: self.state })
            }
            (VmStep::Freeze, Running | Frozen) => Ok(Act::Suspend),
            (VmStep::Export, Frozen) => Ok(Act::Export),
            (VmStep::Activate, Imported) | (VmStep::Resume, Frozen) => Ok(Act::Resume),
            (VmStep::Release { .. }, Frozen) | (VmStep::Unplug { .. }, _) => Ok(Act::Leave),
            (VmStep::Freeze, _) => refused(Running, "activate it, or unplug it"),
            (VmStep::Export, _) => refused(Frozen, "freeze it first"),
            (VmStep::Activate, _) => refused(Imported, "resume it here, or import it elsewhere"),
            (VmStep::Resume, _) => refused(Frozen, "activate it"),
            (VmStep::Release { .. }, _) => refused(Frozen, "unplug ends it, whatever it does"),
        }
    }

    /// A step of a virtual machine that is not in the slot.
    fn judge_other(&self, command: &VmCommand, latest: u64) -> Result<Act, VmRefusal> {
        let VmCommand { vm, epoch: given, step } = command;
        let (vm, given) = (|| vm.clone(), *given);
        let left = self.left.as_ref().is_some_and(|(name, epoch)| *name == command.vm && *epoch == given);
        match step {
            VmStep::Release { .. } | VmStep::Unplug { .. } if left => Ok(Act::Nothing),
            VmStep::Boot(_) | VmStep::Reserve | VmStep::Import { .. } => {
                if let Some(other) = &self.vm {
                    return Err(VmRefusal::Occupied { vm: other.clone(), state: self.state });
                }
                if given <= latest {
                    return Err(VmRefusal::OldEpoch { vm: vm(), given, known: latest });
                }
                if matches!(step, VmStep::Reserve) {
                    return Ok(Act::Keep);
                }
                // A device has the limit that it was made with.
                let is_as_limited = |identity: &VmIdentity| self.identity.rate_mbps == identity.rate_mbps;
                let adopts =
                    matches!(step, VmStep::Boot(identity) if self.has(identity) && is_as_limited(identity));
                Ok(if adopts && self.state == SlotState::Free { Act::Adopt } else { Act::Seat })
            }
            _ if given < latest => Err(VmRefusal::OldEpoch { vm: vm(), given, known: latest }),
            _ => {
                let instead = match &self.vm {
                    Some(other) => format!("{other} is, {}", self.state),
                    None => format!("it is {}", self.state),
                };
                Err(VmRefusal::NotHere { vm: vm(), instead })
            }
        }
    }

    /// Whether the slot has these GUIDs.
    fn has(&self, identity: &VmIdentity) -> bool {
        (self.identity.guid, self.identity.port_guid) == (identity.guid, identity.port_guid)
    }
}
