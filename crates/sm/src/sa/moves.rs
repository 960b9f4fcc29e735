//! Requests to move LIDs: who may, and how they are answered. The manager itself carries them out.
//!
//! | status | result | when |
//! |---|---|---|
//! | 0 | Done, Planned | all is written and acknowledged, or there is a proved plan |
//! | REQ_DENIED | Denied | no key, a key that is 1, or a requester that may not: one within a virtual machine, or no one known |
//! | REQ_INVALID | Invalid, OldEpoch | it contradicts itself, the subnet or an earlier request |
//! | NO_RESOURCES | Unproved, Broken | no plan is safe, or a switch has not acknowledged |
//! | NO_RESOURCES | Later | a machine is not to be frozen yet: packets of other moves are under way; or its port has no LID yet |
//! | NO_RESOURCES | Untold | this manager has come into charge, and has not heard all addresses |
//!
//! The reason is in the answer, in words. A wrong key gets REQ_DENIED and nothing else, as everywhere. **Who may:** whoever
//! shows the manager's SM_Key, from the port of a host or of a physical function. A key of 1 is everyone's, so with that no
//! one may.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_wire::{
    AddressedMad, Guid, Lid, Method, RepathDetails, RepathKind, SaMad, SmKey, VmMove, VmMoveResult,
    VmMoveWrite, sa_status, status, trap,
};

use super::inform::own_notice;
use super::query::{Found, Query};
use super::repath::repath;
use super::view::View;
use super::{Administrator, answer_to, is_same};
use crate::knowledge::{Memory, Subnet};
use crate::moves::{Want, not_at};
use crate::options::Options;

/// The most requests that the manager has not answered yet, and the most of one host. All of them are of those who have its key.
pub(super) const MOVES_MAX: usize = 256;
pub(super) const MOVES_OF_ONE_MAX: usize = 128;

/// Reads a request, or says why its sender may not make it.
pub(super) fn admit(
    request: &AddressedMad,
    query: &Query<'_>,
    view: &View,
    options: &Options,
) -> Result<VmMove, Box<VmMove>> {
    let ask = VmMove::decode(&SaMad::data.get(&request.mad.0));
    // What is answered is the manager's to say.
    let ask = ask.request();
    let why = if options.keys.sa_key == SmKey(1) {
        "the manager's SM_Key is 1, which everyone knows: start it with a key of its own"
    } else if !query.trusted {
        "moves of LIDs need the manager's SM_Key"
    } else {
        match view.by_lid(request.lid) {
            None => "the sender's LID is no one's in this subnet",
            Some(end) if view.is_guest(end) => "the sender is a virtual function",
            Some(_) => return Ok(ask),
        }
    };
    Err(Box::new(not_at(&ask, VmMoveResult::Denied, why)))
}

/// What is to be done with a request that was let in.
pub(super) fn want(method: Method) -> Want {
    match method {
        Method::Set => Want::Carry,
        Method::GetTable => Want::List,
        _ => Want::Plan,
    }
}

/// The status that goes with a result.
pub(super) fn status_of(result: VmMoveResult) -> u16 {
    match result {
        VmMoveResult::Done | VmMoveResult::Planned => status::OK,
        VmMoveResult::Denied => sa_status::REQ_DENIED,
        VmMoveResult::Unproved | VmMoveResult::Broken | VmMoveResult::Later | VmMoveResult::Untold => {
            sa_status::NO_RESOURCES
        }
        _ => sa_status::REQ_INVALID,
    }
}

impl Administrator {
    /// Nodes of the subnet are others than before, or have other tables.
    pub(crate) fn nodes_changed(&mut self, subnet: &Subnet, memory: &Memory, nodes: &BTreeSet<u32>) {
        let view = self.view.as_mut();
        view.into_iter().for_each(|view| view.renew(subnet, memory, nodes));
    }

    /// One that was away does not come back.
    pub(crate) fn is_gone(&mut self, now: Time, guid: Guid) {
        if self.away.remove(&guid)
            && let Some(view) = &self.view
        {
            let notice = self.change(trap::GID_OUT_OF_SERVICE, guid, view);
            self.subscriptions.report(&notice, None, None, view);
            self.flush(now);
        }
    }

    /// These hosts reach a LID that they did not reach for a time after its move. They repeat at once what was lost, as others do when the
    /// port is there.
    pub(crate) fn is_reached(&mut self, now: Time, guid: Guid, lid: Lid, hosts: &[Guid]) {
        let Some(view) = &self.view else { return };
        let kind = RepathKind::NEW_LID;
        let details = RepathDetails { kind, guid, slid: lid, dlid: lid, ..RepathDetails::default() };
        let notice = own_notice(self.myself.lid, &repath(details));
        for host in hosts {
            self.subscriptions.report(&notice, Some(*host), None, view);
        }
        self.flush(now);
    }

    /// What has become of a request to move a LID.
    pub(crate) fn answer_move(&mut self, now: Time, request: &AddressedMad, answer: &VmMove) {
        self.moving.retain(|other| !is_same(other, request));
        let status = status_of(answer.result);
        *(if status == status::OK { &mut self.counts.answered } else { &mut self.counts.refused }) += 1;
        let mut mad = answer_to(&request.mad, status, 0);
        SaMad::data.set(&mut mad.0, answer.encode());
        self.outbox.push_back(AddressedMad { mad, ..*request });
        self.flush(now);
    }

    /// The writes of a plan, as a table.
    pub(crate) fn answer_writes(&mut self, now: Time, request: &AddressedMad, writes: &[VmMoveWrite]) {
        self.moving.retain(|other| !is_same(other, request));
        let mut found = Found::new::<VmMoveWrite>();
        match writes.iter().try_for_each(|write| found.add(write)) {
            Ok(()) => self.send_table(now, request, &found),
            Err(status) => self.refuse(request, status),
        }
        self.flush(now);
    }
}
