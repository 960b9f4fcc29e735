//! Slots without a claim: what is left over is cleared, identities are put where they belong, and what no journal knows is adopted.

use weft_machine::Time;
use weft_vocabulary::vm::Event;

use super::VmManager;
use crate::agent::{Content, Deed, Occupant};
use crate::hosts::SlotView;
use crate::identity::{PortIdentity, Scheme};
use crate::names::{Place, Slot};
use crate::record::{Record, State, Vm};
use crate::request::VMS_MAX;

/// What is to be done with a slot.
enum Duty {
    /// Nothing: it is as it should be.
    None,
    /// It is looked at again when its host can be reached or has answered.
    Later,
    /// Clear it, and plug in an identity.
    Clear(Option<PortIdentity>),
}

impl VmManager {
    /// Looks at the slots that may not be as they should be.
    pub(super) fn sweep(&mut self, now: Time) {
        let synced = self.disk.synced;
        let due = self.sweep.iter().filter(|(_, sweep)| sweep.at <= now && sweep.disk <= synced);
        let due: Vec<Slot> = due.map(|(slot, _)| slot.clone()).collect();
        for slot in due {
            match self.duty(&slot) {
                Duty::None => drop(self.sweep.remove(&slot)),
                Duty::Later => {}
                Duty::Clear(leave) => {
                    let known = self.hosts.view(&slot).map_or(0, |view| view.epoch);
                    self.book.epoch = self.book.epoch.max(known);
                    let epoch = self.next_epoch();
                    self.hosts.command(now, &slot, epoch, Deed::Clear(leave));
                }
            }
        }
    }

    fn duty(&mut self, slot: &Slot) -> Duty {
        if self.book.claim(slot).is_some() {
            return Duty::None;
        }
        if !self.hosts.is_ready(&slot.host) {
            // Its next report brings it up again.
            return Duty::None;
        }
        if self.hosts.is_busy(slot) {
            return Duty::Later;
        }
        let Some(view) = self.hosts.view(slot).cloned() else { return Duty::None };
        let after = self.sweep.get(slot).and_then(|sweep| sweep.after);
        let is_cleared = after.is_none_or(|epoch| view.epoch > epoch);
        if self.book.is_tomb(slot) {
            if !view.content.is_free() || !is_cleared || after.is_none() {
                return self.clear_tomb(slot, &view, after);
            }
            self.record(Record::Cleared(slot.clone()));
            return Duty::Later;
        }
        match &view.content {
            Content::Running(occupant) | Content::Frozen(occupant) | Content::Imported(occupant) => {
                self.left_over(slot, &view, occupant)
            }
            Content::Reserved(_) => Duty::Clear(self.resident(slot, &view)),
            content => self.identity_duty(slot, &view, content.port(), is_cleared),
        }
    }

    /// A slot that is to be cleared once more, whatever it has; from now on it is known which epoch is late enough.
    fn clear_tomb(&mut self, slot: &Slot, view: &SlotView, after: Option<u64>) -> Duty {
        if let Some(sweep) = self.sweep.get_mut(slot) {
            sweep.after = Some(after.unwrap_or(view.epoch));
        }
        Duty::Clear(self.resident(slot, view))
    }

    /// The identity that belongs into a free slot, if there is one and nothing else has it.
    fn resident(&self, slot: &Slot, view: &SlotView) -> Option<PortIdentity> {
        if self.options.scheme != Scheme::Prepopulated {
            return None;
        }
        let known = self.book.spare(slot).copied();
        let own = known.unwrap_or(view.configured);
        let is_port = own.port_guid.0 != 0 && own.node_guid.0 != 0;
        let is_elsewhere = known.is_none() && self.may_be_elsewhere(slot, &own);
        (is_port && !is_elsewhere && self.book.user_of(&own, Some(slot)).is_none()).then_some(own)
    }

    /// Whether the identity of a slot's configuration may have moved to another slot, as far as a manager that has lost its journal
    /// can know: it has to have heard of all slots.
    fn may_be_elsewhere(&self, slot: &Slot, own: &PortIdentity) -> bool {
        self.book.adopts && (!self.hosts.all_known() || self.hosts.has_elsewhere(own, slot))
    }

    fn identity_duty(
        &mut self,
        slot: &Slot,
        view: &SlotView,
        has: Option<&PortIdentity>,
        is_cleared: bool,
    ) -> Duty {
        // A manager that has lost its journal learns identities from the slots that have them.
        if let Some(port) = has
            && self.book.spare(slot).is_none()
            && !port.is_same_port(&view.configured)
            && self.options.scheme == Scheme::Prepopulated
            && self.book.user_of(port, Some(slot)).is_none()
        {
            self.record(Record::Spare { slot: slot.clone(), port: *port });
        }
        let wants = self.resident(slot, view);
        let agrees = wants.map(|port| (port.node_guid, port.port_guid))
            == has.map(|port| (port.node_guid, port.port_guid));
        if agrees && is_cleared { Duty::None } else { Duty::Clear(wants) }
    }

    /// A virtual machine in a slot that the book does not keep for it.
    fn left_over(&mut self, slot: &Slot, view: &SlotView, occupant: &Occupant) -> Duty {
        let running = matches!(view.content, Content::Running(_));
        match self.book.vm(&occupant.vm).map(|vm| &vm.state) {
            Some(State::Frozen) if running => {
                self.adopt(slot, occupant, true);
                Duty::None
            }
            Some(State::Frozen) => {
                self.stranger(
                    slot,
                    format!("it is another copy of `{}`, which is frozen elsewhere", occupant.vm),
                );
                Duty::None
            }
            Some(_) => Duty::Clear(self.resident(slot, view)),
            None if self.book.vms().len() >= VMS_MAX => {
                self.stranger(slot, "there are too many virtual machines".to_owned());
                Duty::None
            }
            None => match self.book.user_of(&occupant.identity.port, Some(slot)) {
                Some(other) => {
                    self.stranger(slot, format!("its GUID is that of {other}"));
                    Duty::None
                }
                None => {
                    self.adopt(slot, occupant, running);
                    Duty::None
                }
            },
        }
    }

    fn stranger(&mut self, slot: &Slot, why: String) {
        self.event(Event::Stranger { host: slot.host.to_string(), vf: slot.vf, reason: why });
    }

    /// Manages a virtual machine that was found; one that does not run is left as it is.
    pub(super) fn adopt(&mut self, slot: &Slot, occupant: &Occupant, running: bool) {
        let Some(incarnation) = self.hosts.incarnation(&slot.host) else { return };
        let epoch = self.hosts.view(slot).map_or(0, |view| view.epoch);
        let place = Place { slot: slot.clone(), incarnation };
        let state = if running { State::Running } else { State::Frozen };
        let before = self.book.vm(&occupant.vm).map(|vm| vm.place.slot.clone());
        let vm = Box::new(Vm { identity: occupant.identity.clone(), place, epoch, state });
        self.record(Record::Vm { name: occupant.vm.clone(), vm });
        self.event(Event::Adopted {
            vm: occupant.vm.to_string(),
            host: slot.host.to_string(),
            vf: slot.vf,
            running,
        });
        // Its other copies are of no use any more.
        let copies = self
            .hosts
            .iter()
            .flat_map(|(host, view)| view.slots.keys().map(|vf| Slot { host: host.clone(), vf: *vf }));
        let copies: Vec<Slot> = copies.filter(|other| running && self.has_copy(other, occupant)).collect();
        for other in copies.into_iter().chain(before).filter(|other| other != slot) {
            self.mark_slot(Time::ZERO, other, None);
        }
    }

    fn has_copy(&self, slot: &Slot, occupant: &Occupant) -> bool {
        let content = self.hosts.view(slot).and_then(|view| view.content.occupant());
        content.is_some_and(|other| other.vm == occupant.vm)
    }
}
