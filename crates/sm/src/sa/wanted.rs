//! Validity of a subscription, and the notices that it is about.

use weft_wire::{Details, Gid, InformInfo, Notice, sa_status};

use super::ends::End;
use super::sight::Sight;
use super::view::View;

/// Whether a subscription can mean anything, and the subscriber sees all sources that it names; what `all` brings it is
/// looked at when there is something to report (o13-14.1.1).
pub(super) fn check(info: &InformInfo, sight: &Sight<'_>, view: &View) -> Result<(), u16> {
    // A subscription is ended by who has it, also where it would not be taken any more.
    let sees = |end: &&End| info.subscribe == 0 || sight.sees(end.guid);
    if info.gid != Gid::default() {
        return view.by_gid(info.gid).filter(sees).map(|_| ()).ok_or(sa_status::REQ_INVALID_GID);
    }
    if info.lid_range_begin.0 == InformInfo::ALL {
        return Ok(());
    }
    let range = info.lid_range_begin..=info.lid_range_end;
    let named = |end: &&End| end.lid <= *range.end() && end.lid.0 + (end.lids() - 1) >= range.start().0;
    let is_range = info.lid_range_begin.is_unicast() && !range.is_empty();
    let all_seen = is_range && view.ends.iter().filter(named).all(|end| sees(&end));
    if all_seen { Ok(()) } else { Err(sa_status::REQ_INVALID) }
}

/// Whether two are the same subscription: QPN and answer time are the subscriber's, not the event's.
pub(super) fn same(a: &InformInfo, b: &InformInfo) -> bool {
    let event =
        |info: &InformInfo| InformInfo { subscribe: 0, qpn: Default::default(), resp_time_value: 0, ..*info };
    event(a) == event(b)
}

/// Whether a subscription is about a notice.
pub(super) fn wants(info: &InformInfo, notice: &Notice) -> bool {
    let from = if info.gid == Gid::default() {
        let range = info.lid_range_begin..=info.lid_range_end;
        info.lid_range_begin.0 == InformInfo::ALL || range.contains(&notice.issuer_lid)
    } else {
        info.gid == about(notice)
    };
    let trap = info.trap_number.0 == InformInfo::ALL || info.trap_number == notice.trap_number;
    let producer =
        info.producer_type == InformInfo::ALL_PRODUCERS || info.producer_type == notice.producer_type;
    from && trap
        && producer
        && (info.is_generic == 1) == notice.is_generic
        && info.wants_type(notice.notice_type)
}

/// The port that a notice is about. Traps 64 to 67 come from the manager and are about somebody else.
pub(super) fn about(notice: &Notice) -> Gid {
    match notice.details() {
        Details::Gid(_, details) => details.gid,
        _ => notice.issuer_gid,
    }
}
