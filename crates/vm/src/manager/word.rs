//! Announcement to a subnet manager that has come into charge: place and LID of each machine.

use weft_machine::Time;

use super::{Phase, VmManager};
use crate::names::VmName;
use crate::record::State;
use crate::sm::{SmRequest, SmWish};

impl VmManager {
    /// The addresses of all machines, and the number of the last question that belongs to them: holds of those that are frozen are
    /// asked for again before. `None` while it is not known which machines there are.
    pub(crate) fn announce(&mut self, now: Time) -> Option<(Vec<SmRequest>, u64)> {
        let knows_all = !self.book.adopts || self.hosts.all_known();
        if self.phase != Phase::Running || !knows_all {
            return None;
        }
        for task in self.tasks.values_mut().filter(|task| task.hold_again_at.is_some()) {
            task.hold_again_at = Some(now);
        }
        self.everyone = true;
        self.run(now);
        let names: Vec<VmName> = self.book.vms().keys().cloned().collect();
        let addresses = names.iter().filter_map(|name| self.address(name)).collect();
        Some((addresses, self.sm_number))
    }

    /// Where a machine is, and the other one of a swap under way.
    fn address(&mut self, name: &VmName) -> Option<SmRequest> {
        let vm = self.book.vm(name)?;
        let (place, displaced) = match &vm.state {
            State::Lost(_) | State::Stopping => return None,
            State::Moving(moving) => (&vm.place.slot, moving.displaced),
            State::Starting | State::Running | State::Frozen => (&vm.place.slot, None),
        };
        let moves = self.address_moves(vm.identity.port, displaced, place, place);
        if moves.is_empty() {
            return None;
        }
        let epoch = vm.epoch;
        self.sm_number += 1;
        let (number, wish, route) = (self.sm_number, SmWish::Address, crate::Route::default());
        Some(SmRequest { number, epoch, wish, route, moves })
    }
}
