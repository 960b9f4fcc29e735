//! Requests, plans and answers in each other's terms.

use weft_machine::Time;
use weft_routing::moves::{Counterexample, LatePolicy, Method, Plan, Proof, UpdateOrder, Write};
use weft_topology::NodeIndex;
use weft_wire::{VmMove, VmMoveResult, VmMoveWrite};

use crate::knowledge::Subnet;

/// How a request wants to be planned.
///
/// # Errors
///
/// Says which of its codes is none.
pub(crate) fn how_of(ask: &VmMove) -> Result<(Method, UpdateOrder, LatePolicy), String> {
    let how = Method::of_code(ask.method).zip(UpdateOrder::of_code(ask.order));
    let (method, order) =
        how.ok_or_else(|| format!("there is no method {} with order {}", ask.method, ask.order))?;
    let policy =
        LatePolicy::of_code(ask.policy).ok_or_else(|| format!("there is no policy {}", ask.policy))?;
    Ok((method, order, policy))
}

/// A request that came to nothing, and why.
pub(crate) fn not_at(ask: &VmMove, result: VmMoveResult, why: &str) -> VmMove {
    VmMove { result, ..*ask }.with_reason(why)
}

/// A machine may be frozen whose plan keeps hosts silent for a time: its address may move while its memory is copied.
pub(crate) fn held_for(ask: &VmMove, silence: Time) -> VmMove {
    VmMove { result: VmMoveResult::Done, silent_us: micros(silence), ..*ask }
}

/// Microseconds, rounded up, as answers count them.
pub(crate) fn micros(time: Time) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1000)).unwrap_or(u32::MAX)
}

/// The times that a plan takes besides its SMPs'.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// How long hosts at silent switches hear nothing of the machine.
    pub(crate) silence: Time,
    /// After how long late rows are written.
    pub(crate) late: Time,
    /// How long queue pairs are held before the first write, once all who hold some have confirmed it.
    pub(crate) held: Time,
}

/// A request that came to a plan. Of several that it carries out together, its counts are for all.
pub(crate) fn planned(
    ask: &VmMove,
    plan: &Plan,
    proof: &Proof,
    waits: Waits,
    result: VmMoveResult,
) -> VmMove {
    let fell = || plan.fallbacks.last().map_or_else(String::new, |fallback| fallback.reason.to_string());
    let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    VmMove {
        result,
        made_by: plan.method.into(),
        made_in: plan.order.into(),
        fallbacks: plan.fallbacks.len().min(usize::from(u8::MAX)) as u8,
        rounds: short(plan.rounds.len()),
        together: short(plan.moves.len()),
        physical: plan.physical,
        vswitches: plan.vswitches,
        physical_smps: plan.smps.physical,
        vswitch_smps: plan.smps.vswitches,
        hypervisor_smps: plan.smps.hypervisors,
        unproved_lanes: proof.unproved_lanes,
        late: short(plan.late_switches().len()),
        silent_us: micros(waits.silence),
        late_us: micros(waits.late),
        held_us: micros(waits.held),
        late_physical_smps: short(plan.late_smps.physical as usize),
        late_vswitch_smps: short(plan.late_smps.vswitches as usize),
        silent: short(plan.silent.len()),
        detours: short(plan.detours.len()),
        ..*ask
    }
    .with_reason(&plan.held.as_ref().and_then(Counterexample::circle).unwrap_or_else(fell))
}

/// A plan that was carried out in this time.
pub(crate) fn done(ask: &VmMove, plan: &Plan, proof: &Proof, waits: Waits, took: Time) -> VmMove {
    let took_us = u32::try_from(took.as_nanos() / 1000).unwrap_or(u32::MAX);
    VmMove { took_us, ..planned(ask, plan, proof, waits, VmMoveResult::Done) }
}

/// The writes of a plan, one record each, in order; then the switches with hosts that are silent for a time.
pub(crate) fn writes(
    plan: &Plan,
    subnet: &Subnet,
    silence: Time,
    is_vswitch: impl Fn(u32) -> bool,
) -> Vec<VmMoveWrite> {
    let is_detour = |write: &Write| {
        let lids = plan.detours.iter().filter(|(switch, _)| *switch == write.switch);
        lids.map(|(_, lid)| lid).any(|lid| lid.block() == write.block)
    };
    let mut records = Vec::new();
    for (number, round) in (1..).zip(&plan.rounds) {
        let is_late = usize::from(number) > plan.prompt();
        records.extend(round.writes.iter().map(|write| VmMoveWrite {
            switch: subnet.guid(write.switch.0),
            round: number,
            block: write.block,
            is_active: u8::from(write.is_active),
            is_vswitch: u8::from(is_vswitch(write.switch.0)),
            after_drain: u8::from(round.after_drain),
            is_late: u8::from(is_late),
            is_detour: u8::from(is_detour(write)),
            ..VmMoveWrite::default()
        }));
    }
    records.extend(silent(&plan.silent, subnet, silence, is_vswitch));
    records
}

/// One record for each switch with hosts that hear nothing of the machine for as long as `silence`.
pub(crate) fn silent(
    switches: &[NodeIndex],
    subnet: &Subnet,
    silence: Time,
    is_vswitch: impl Fn(u32) -> bool,
) -> Vec<VmMoveWrite> {
    let silent_ms = u32::try_from(silence.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX).min(0xff_ffff);
    let record = |switch: &NodeIndex| VmMoveWrite {
        switch: subnet.guid(switch.0),
        is_vswitch: u8::from(is_vswitch(switch.0)),
        is_silent: 1,
        silent_ms,
        ..VmMoveWrite::default()
    };
    switches.iter().map(record).collect()
}
