//! Requests and answers of subnet administration in the manager's terms.

use weft_machine::Time;
use weft_mgmt::records;
use weft_vocabulary::vm::{MoveCounts, PlanWrite, Silent, UpdateOrder};
use weft_wire::{AddressedMad, Guid, Lid, SaMad, VmMove, VmMoveKind, VmMoveResult, VmMoveWrite, sa_status};

use crate::places::Places;
use crate::sm::{MovePlan, PLAN_WRITES_MAX, SmAnswer, SmRequest, SmWish};

/// The bits of a status that every class has (IBA 13.4.7): busy, redirection, and what is invalid.
const OF_ALL_CLASSES: u16 = 0x00ff;

/// A question as the attribute; `None` for one that is about no address, or a place that is not known.
pub(super) fn vm_move(request: &SmRequest, places: &Places) -> Option<VmMove> {
    let (machine, partner) = (request.moves.first()?, request.moves.get(1));
    let (from, to) = (places.cabled(&machine.from.slot)?, places.cabled(&machine.to.slot)?);
    let kind = match request.wish {
        SmWish::Hold => VmMoveKind::Hold,
        SmWish::Release => VmMoveKind::Release,
        SmWish::Address => VmMoveKind::Address,
        SmWish::Plan | SmWish::Move | SmWish::Silent if partner.is_some() => VmMoveKind::Swap,
        SmWish::Plan | SmWish::Move | SmWish::Silent => VmMoveKind::Copy,
    };
    Some(VmMove {
        kind,
        method: request.route.method.into(),
        order: request.route.order.into(),
        policy: request.route.late.into(),
        from_switch: from.vswitch,
        from_port: from.port,
        to_switch: to.vswitch,
        to_port: to.port,
        guid: machine.port_guid,
        lid: machine.lid,
        partner: partner.map_or(Guid(0), |partner| partner.port_guid),
        partner_lid: partner.map_or(Lid(0), |partner| partner.lid),
        partner_is_idle: u8::from(partner.is_some_and(|partner| !partner.is_live)),
        epoch: request.epoch,
        ..VmMove::default()
    })
}

/// The attribute of an answer.
pub(super) fn attribute(mad: &AddressedMad) -> VmMove {
    VmMove::decode(&SaMad::data.get(&mad.mad.0))
}

/// Whether a subnet manager that answers so to a question without a key knows the attribute.
pub(super) fn knows(mad: &AddressedMad) -> bool {
    mad.mad.status() == sa_status::REQ_DENIED || attribute(mad).result == VmMoveResult::Denied
}

/// What an answer says; `None`: it is no one's that knows moves.
pub(super) fn read(mad: &AddressedMad) -> Option<SmAnswer> {
    let answer = attribute(mad);
    Some(match answer.result {
        VmMoveResult::Done => SmAnswer::Done(counts(&answer)),
        VmMoveResult::Planned => {
            SmAnswer::Plan(Box::new(MovePlan { counts: counts(&answer), ..MovePlan::default() }))
        }
        VmMoveResult::OldEpoch => SmAnswer::OldEpoch(answer.epoch),
        VmMoveResult::Later => SmAnswer::Later(Time::from_micros(answer.took_us.into())),
        VmMoveResult::None => return refused(mad),
        _ => SmAnswer::Refused(answer.reason_text()),
    })
}

/// An answer with a status and nothing else. `None`: the status is not of subnet administration (IBA 15.2.3), but says that there is
/// none, or not this attribute.
pub(super) fn refused(mad: &AddressedMad) -> Option<SmAnswer> {
    match mad.mad.status() {
        sa_status::REQ_DENIED => {
            Some(SmAnswer::Refused("it takes another SA key than this VM manager's".to_owned()))
        }
        other if other & OF_ALL_CLASSES != 0 => None,
        other => Some(SmAnswer::Refused(format!("it answers with status {other:#06x}"))),
    }
}

fn counts(answer: &VmMove) -> MoveCounts {
    let reason = Some(answer.reason_text()).filter(|reason| !reason.is_empty());
    MoveCounts {
        physical_smps: answer.physical_smps,
        vswitch_smps: answer.vswitch_smps,
        hypervisor_smps: answer.hypervisor_smps,
        switches: answer.physical,
        rounds: answer.rounds.into(),
        method: answer.made_by.to_string().to_ascii_lowercase(),
        update: UpdateOrder::of_code(answer.made_in).map_or("unknown", UpdateOrder::name).to_owned(),
        late: answer.late.into(),
        detours: answer.detours.into(),
        late_physical_smps: answer.late_physical_smps.into(),
        late_vswitch_smps: answer.late_vswitch_smps.into(),
        silent: answer.silent.into(),
        silence: Time::from_micros(answer.silent_us.into()),
        late_after: Time::from_micros(answer.late_us.into()),
        held: Time::from_micros(answer.held_us.into()),
        unproved_lanes: answer.unproved_lanes,
        fallbacks: reason.into_iter().filter(|_| answer.fallbacks > 0).collect(),
    }
}

/// A plan with the writes of a table.
pub(super) fn with_writes(plan: MovePlan, table: &[u8]) -> SmAnswer {
    let rows = records::<VmMoveWrite>(table).take(PLAN_WRITES_MAX);
    let (silent, writes): (Vec<VmMoveWrite>, Vec<_>) = rows.partition(|record| record.is_silent == 1);
    let writes = writes.into_iter().map(|write| PlanWrite {
        round: write.round,
        switch: write.switch,
        block: write.block,
        vswitch: write.is_vswitch == 1,
        active: write.is_active == 1,
        after_drain: write.after_drain == 1,
        late: write.is_late == 1,
        detour: write.is_detour == 1,
        // What people call the switch its driver knows.
        ..PlanWrite::default()
    });
    let silent = silent.into_iter().map(|record| Silent {
        switch: record.switch,
        silence: Time::from_millis(record.silent_ms.into()),
        ..Silent::default()
    });
    SmAnswer::Plan(Box::new(MovePlan { writes: writes.collect(), silent: silent.collect(), ..plan }))
}
