//! Repath and unpath (traps 69 and 68): requests that subscribers use paths differently.
//!
//! ```text
//!  SubnAdmSet(Notice), RepathDetails ──▶ does it make sense? ──▶ SubnAdmGetResp(Notice), status
//!                                              └──▶ Report to all subscribers, or to those at `target`
//! ```
//!
//! The architecture knows no way for one port to have a notice forwarded to others, so this one is weft's own; the
//! layout of the details is [`RepathDetails`]. **Who may:** every port of the subnet that shows no key, unless
//! [`Options::repath_needs_key`](crate::Options) asks for the manager's SM_Key; a wrong key is always refused. The
//! request may be repeated: what a Report says holds however often it is said. That a port has a new LID only that port may say, as
//! its peers would send to that LID from then on, or who shows the key; and the LID must be that port's.
//!
//! | status | when |
//! |---|---|
//! | 0 | the Reports are on their way; no one need have subscribed where all are meant |
//! | REQ_INVALID | not trap 68 or 69, not generic, a kind that there is not, a LID that no one has, or a new LID that is another's |
//! | REQ_DENIED | a key is needed and not shown, or a wrong one; or a new LID of another port without a key |
//! | NO_RECORDS | no one at `target` has subscribed: perhaps not yet again, after the manager restarted |
//! | NO_RESOURCES | too many Reports are waiting; some have been dropped |

use weft_wire::{
    AddressedMad, Details, Guid, Lid, NodeType, Notice, RepathDetails, RepathKind, SaMad, TrapNumber,
    sa_status, trap,
};

use super::inform::Subscriptions;
use super::query::Query;
use super::view::View;
use crate::Event;

/// A request that makes sense.
#[derive(Clone, Copy, Debug)]
struct Wish {
    number: TrapNumber,
    details: RepathDetails,
    /// What kind of node sends it, for subscribers that look at that.
    producer_type: u32,
    /// The port that is to be notified; `None` is all.
    only: Option<Guid>,
}

/// Carries out a request: what to answer, and what to say about it.
pub(super) fn request(
    subscriptions: &mut Subscriptions,
    request: &AddressedMad,
    query: &Query<'_>,
    needs_key: bool,
    view: &View,
) -> Result<(Notice, Event), u16> {
    if needs_key && !query.trusted {
        return Err(sa_status::REQ_DENIED);
    }
    let data = SaMad::data.get(&request.mad.0);
    let asked = Notice::decode(data.first_chunk().ok_or(sa_status::REQ_INVALID)?);
    let wish = Wish::read(request.lid, query.trusted, &asked, view)?;
    let cause = Some(view.host_at(request.lid));
    let told = subscriptions.report(&wish.notice(request.lid), wish.only, cause, view);
    let status = match (told.dropped, told.ports.is_empty(), wish.only) {
        (1.., ..) => Err(sa_status::NO_RESOURCES),
        (0, true, Some(_)) => Err(sa_status::NO_RECORDS),
        _ => Ok(()),
    };
    status.map(|()| {
        let RepathDetails { kind, service_level, dlid, slid, target, .. } = wish.details;
        let (number, from, told) = (wish.number, request.lid, told.ports.len() as u32);
        (asked, Event::Repath { number, from, kind: kind.into(), service_level, slid, dlid, target, told })
    })
}

impl Wish {
    fn read(from: Lid, is_trusted: bool, notice: &Notice, view: &View) -> Result<Self, u16> {
        let known = |lid: Lid| view.by_lid(lid).ok_or(sa_status::REQ_INVALID);
        let asker = view.requester(from)?.guid;
        let Details::Repath(number, details) = notice.details() else { return Err(sa_status::REQ_INVALID) };
        if !notice.is_generic {
            return Err(sa_status::REQ_INVALID);
        }
        match details.kind {
            RepathKind::WILDCARD => {}
            RepathKind::PATH => {
                known(details.slid)?;
                known(details.dlid)?;
            }
            RepathKind::HOT_SPOT => {
                known(details.dlid)?;
            }
            // No one need have the old LID any more.
            RepathKind::NEW_LID if details.slid.is_unicast() => {
                if known(details.dlid)?.guid != details.guid {
                    return Err(sa_status::REQ_INVALID);
                }
                if !is_trusted && asker != details.guid {
                    return Err(sa_status::REQ_DENIED);
                }
            }
            _ => return Err(sa_status::REQ_INVALID),
        }
        let only = match details.target {
            Lid(0) => None,
            target => Some(known(target)?.guid),
        };
        Ok(Self { number, details, producer_type: notice.producer_type, only })
    }

    /// The notice for subscribers: it comes from whoever asked, and names no receiver.
    fn notice(&self, from: Lid) -> Notice {
        let details = RepathDetails { target: Lid(0), ..self.details };
        let notice = Notice::generic(NodeType::Hca, from, &Details::Repath(self.number, details));
        Notice { producer_type: self.producer_type, ..notice }
    }
}

/// The details as a trap of the manager's own.
pub(super) fn repath(details: RepathDetails) -> Details {
    Details::Repath(trap::REPATH, details)
}
