//! Announcements of the VM manager to a subnet manager that has come into charge: GUID and LID of each machine.
//!
//! ```text
//!   Announced ─▶ Untold, with the number of this mastership ─▶ Hold, Address of each machine ─▶ Announced with that number ─▶ a sweep gives
//!                                                                                               ports their LIDs that have waited
//! ```

use weft_machine::Time;
use weft_wire::{Guid, Lid, VmMove, VmMoveKind, VmMoveResult};

use super::SubnetManager;
use crate::knowledge::Subnet;
use crate::moves::{AGAIN, Asked, Want, not_at};
use crate::{Output, Reason};

impl SubnetManager {
    /// Takes the requests that subnet administration has let in.
    pub(super) fn take_move_requests(&mut self, now: Time) {
        for (request, ask, want) in std::mem::take(&mut self.sa.moves) {
            let asked = Asked { request, ask, want, since: now };
            match ask.kind {
                // It is asked every second, and light sweeps give way to what waits.
                VmMoveKind::Announced => self.announced(now, &asked),
                _ => self.desk.push(asked),
            }
        }
    }

    /// The VM manager says that it has repeated everything, or asks whether it has to.
    pub(super) fn announced(&mut self, now: Time, asked: &Asked) {
        let (is_told, have_waited) = self.succession.heard_all(asked.ask.mastership);
        if have_waited {
            self.agenda.heavy(now, Reason::Managers);
        }
        let result = if is_told { VmMoveResult::Done } else { VmMoveResult::Untold };
        let mastership = self.succession.mastership();
        self.sa.answer_move(now, &asked.request, &VmMove { result, mastership, ..asked.ask });
    }

    /// The VM manager says whose LID it is. That changes nothing that a sweep would not find, so that it has no epoch to go by.
    pub(super) fn address(&mut self, now: Time, subnet: &Subnet, asked: &Asked) {
        let answer = match self.confirm(subnet, &asked.ask) {
            Ok(_) => VmMove { result: VmMoveResult::Done, ..asked.ask },
            Err(why) => not_at(&asked.ask, VmMoveResult::Invalid, &why),
        };
        self.sa.answer_move(now, &asked.request, &answer);
    }

    /// Takes down which GUIDs of a request have which LIDs, and says whether that is news.
    ///
    /// # Errors
    ///
    /// Says who else has the LID.
    pub(super) fn confirm(&mut self, subnet: &Subnet, ask: &VmMove) -> Result<bool, String> {
        let mut is_news = false;
        for (guid, lid) in pairs(ask) {
            let present = subnet.host_by_guid(guid).and_then(|at| subnet.port(at)?.lid);
            if let Some(present) = present.filter(|present| present.min != lid) {
                return Err(format!("LID {lid} is not that of GUID {guid}, which has LID {}", present.min));
            }
            let has = |at, port: &crate::knowledge::FoundPort| {
                subnet.end_guid(at) != guid
                    && port.lid.is_some_and(|range| (range.min..=range.max).contains(&lid))
            };
            if subnet.end_ports().any(|(at, port)| has(at, port)) {
                return Err(format!("LID {lid} belongs to another GUID than {guid}"));
            }
            let file = self.succession.confirm(guid, lid);
            is_news |= file.is_some();
            self.outputs.extend(file.map(Output::Persist));
        }
        Ok(is_news)
    }

    /// Answers a request about someone who is there and has no LID yet: a sweep is about to give it, and writes the rows.
    pub(super) fn awaits_lid(&mut self, now: Time, subnet: &Subnet, asked: &Asked) -> bool {
        let lacks_lid = |(guid, _): (Guid, Lid)| {
            subnet.host_by_guid(guid).and_then(|at| subnet.port(at)).is_some_and(|port| port.lid.is_none())
        };
        if asked.want != Want::Carry || !pairs(&asked.ask).any(lacks_lid) {
            return false;
        }
        match self.confirm(subnet, &asked.ask) {
            Err(why) => self.refuse(now, asked, VmMoveResult::Invalid, &why),
            Ok(is_news) => {
                if is_news {
                    self.agenda.heavy(now, Reason::Managers);
                }
                let answer = not_at(&asked.ask, VmMoveResult::Later, "its port is about to get its LID");
                let took_us = (AGAIN.as_nanos() / 1000) as u32;
                self.sa.answer_move(now, &asked.request, &VmMove { took_us, ..answer });
            }
        }
        true
    }
}

/// The GUIDs of a request with the LIDs that it says they have.
fn pairs(ask: &VmMove) -> impl Iterator<Item = (Guid, Lid)> + use<> {
    let all = [(ask.guid, ask.lid), (ask.partner, ask.partner_lid)];
    all.into_iter().filter(|(guid, lid)| *guid != Guid(0) && lid.is_unicast())
}
