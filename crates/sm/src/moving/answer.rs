//! Requests, plans and answers in each other's terms.

use weft_machine::Time;
use weft_routing::moves::{Method, Plan, Proof, UpdateOrder};
use weft_wire::{VmMove, VmMoveMethod, VmMoveOrder, VmMoveResult, VmMoveWrite};

use crate::subnet::{FoundNode, Subnet};

/// The planner's method; `None` for a code that no method has.
pub(crate) fn method_of(code: VmMoveMethod) -> Option<Method> {
    Some(match code {
        VmMoveMethod::FtreeMinrc => Method::FtreeMinrc,
        VmMoveMethod::Skyline => Method::Skyline,
        VmMoveMethod::Itrc => Method::Itrc,
        VmMoveMethod::Full => Method::Full,
        _ => return None,
    })
}

fn code_of(method: Method) -> VmMoveMethod {
    match method {
        Method::FtreeMinrc => VmMoveMethod::FtreeMinrc,
        Method::Skyline => VmMoveMethod::Skyline,
        Method::Itrc => VmMoveMethod::Itrc,
        Method::Full => VmMoveMethod::Full,
    }
}

/// The planner's order; `None` for a code that no order has.
pub(crate) fn order_of(code: VmMoveOrder) -> Option<UpdateOrder> {
    Some(match code {
        VmMoveOrder::Ordered => UpdateOrder::Ordered,
        VmMoveOrder::OrderedLate => UpdateOrder::OrderedLate,
        VmMoveOrder::DropFirst => UpdateOrder::DropFirst,
        VmMoveOrder::Unordered => UpdateOrder::Unordered,
        _ => return None,
    })
}

fn code_of_order(order: UpdateOrder) -> VmMoveOrder {
    match order {
        UpdateOrder::Ordered => VmMoveOrder::Ordered,
        UpdateOrder::OrderedLate => VmMoveOrder::OrderedLate,
        UpdateOrder::DropFirst => VmMoveOrder::DropFirst,
        UpdateOrder::Unordered => VmMoveOrder::Unordered,
    }
}

/// A request that came to nothing, and why.
pub(crate) fn not_at(ask: &VmMove, result: VmMoveResult, why: &str) -> VmMove {
    VmMove { result, ..*ask }.with_reason(why)
}

/// A request that came to a plan. Of several that it carries out together, its counts are for all.
pub(crate) fn planned(ask: &VmMove, (plan, proof): (&Plan, &Proof), result: VmMoveResult) -> VmMove {
    VmMove {
        result,
        made_by: code_of(plan.method),
        made_in: code_of_order(plan.order),
        fallbacks: plan.fallbacks.len().min(usize::from(u8::MAX)) as u8,
        rounds: plan.rounds.len().min(usize::from(u16::MAX)) as u16,
        together: plan.moves.len().min(usize::from(u16::MAX)) as u16,
        physical: plan.physical,
        vswitches: plan.vswitches,
        physical_smps: plan.smps.physical,
        vswitch_smps: plan.smps.vswitches,
        hypervisor_smps: plan.smps.hypervisors,
        unproved_lanes: proof.unproved_lanes,
        late: plan.late_switches().len().min(usize::from(u16::MAX)) as u16,
        ..*ask
    }
    .with_reason(&plan.fallbacks.last().map_or_else(String::new, |fallback| fallback.reason.to_string()))
}

/// A plan that was carried out in this time.
pub(crate) fn done(ask: &VmMove, proven: (&Plan, &Proof), took: Time) -> VmMove {
    let took_us = u32::try_from(took.as_nanos() / 1000).unwrap_or(u32::MAX);
    VmMove { took_us, ..planned(ask, proven, VmMoveResult::Done) }
}

/// The writes of a plan, one record each, in order.
pub(crate) fn writes(plan: &Plan, subnet: &Subnet, is_vswitch: impl Fn(u32) -> bool) -> Vec<VmMoveWrite> {
    let mut records = Vec::new();
    for (number, round) in (1..).zip(&plan.rounds) {
        records.extend(round.writes.iter().map(|write| VmMoveWrite {
            switch: subnet.node(write.switch.0).map_or(weft_wire::Guid(0), FoundNode::guid),
            round: number,
            block: write.block,
            is_active: u8::from(write.is_active),
            is_vswitch: u8::from(is_vswitch(write.switch.0)),
            after_drain: u8::from(round.after_drain),
            ..VmMoveWrite::default()
        }));
    }
    records
}
