//! LIDs of virtual functions: which LIDs rest, and how far the LIDs reach that they come from.
//!
//! ```text
//!   1 ─────────────── physical LIDs and machines' ─────────────── space
//!   every vSwitch sends all of them that are not its own to the uplink, from the start
//! ```
//!
//! The LIDs of machines need not follow each other (paper 001, section V-B), so they are those that no physical port has, up to
//! as many as there are slots. Nothing of that is on file: it follows from the adapters that are found.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::files::LidRange;
use weft_routing::{BLOCK_ENTRIES, VSwitch};
use weft_wire::{Guid, Lid, PortNum};

use super::arrival::Arrival;
use super::assign::{Claim, Room};
use super::quarantine::Quarantine;
use crate::knowledge::{Adapters, Held, PortAt, Subnet};
use crate::{GuidToLid, Options, VmLids};

/// What the manager knows of LIDs before a sweep gives them.
pub(crate) struct Ledger<'a> {
    /// Those on file.
    pub(crate) known: &'a mut GuidToLid,
    /// Those that rest.
    pub(crate) quarantine: &'a mut Quarantine,
    /// Those of machines that are on their way. They are given to no one else.
    pub(crate) away: BTreeSet<Lid>,
    /// Those whose machines have not been announced yet, after a change of the master.
    pub(crate) arrival: Option<&'a mut Arrival>,
}

impl Adapters {
    /// How many machines there is room for: one in each port of a vSwitch besides the uplink and the physical function's.
    fn slots(&self, subnet: &Subnet) -> usize {
        let slots = |vswitch: &VSwitch| {
            let count = subnet.node(vswitch.node.0).map_or(0, |node| node.info.num_ports);
            (1..=count).filter(|port| vswitch.is_slot(PortNum(*port))).count()
        };
        self.vswitches.iter().map(slots).sum()
    }

    /// The LIDs that some vSwitch sends to a slot, by the tables that switches hold.
    fn led(&self, held: &[Held]) -> BTreeSet<Lid> {
        let of_vswitch = |vswitch: &VSwitch| {
            let held = held.get(vswitch.node.index());
            let blocks = held.into_iter().flat_map(Held::lft_blocks);
            let rows = blocks.flat_map(|(block, ports)| {
                let first = block * BLOCK_ENTRIES as u16;
                ports.iter().zip(first..).map(|(port, lid)| (Lid(lid), *port))
            });
            let led = rows.filter(|(lid, port)| lid.is_unicast() && vswitch.is_slot(*port));
            led.map(|(lid, _)| lid).collect::<Vec<_>>()
        };
        self.vswitches.iter().flat_map(of_vswitch).collect()
    }

    /// The LIDs that some other switch has a row for.
    fn routed(&self, held: &[Held]) -> BTreeSet<Lid> {
        let is_inner =
            |node: usize| self.vswitches.binary_search_by_key(&node, |vswitch| vswitch.node.index()).is_ok();
        let outer = held.iter().enumerate().filter(|(node, _)| !is_inner(*node)).map(|(_, held)| held);
        let rows = outer.flat_map(Held::lft_blocks).flat_map(|(block, ports)| {
            ports.iter().zip(block * BLOCK_ENTRIES as u16..).filter(|(port, _)| **port != PortNum::NONE)
        });
        rows.map(|(_, lid)| Lid(lid)).filter(|lid| lid.is_unicast()).collect()
    }

    /// Finds the LIDs that rest, before others are given, and frees those whose time is over: they are on file no more. A machine
    /// that is on its way keeps its LID for as long as that is so. A manager that has just come into charge has LIDs rest that any
    /// switch has rows for, and ports wait for which one of them may be.
    pub(crate) fn rest(
        &self,
        now: Time,
        claims: &[Claim],
        held: &[Held],
        ledger: &mut Ledger<'_>,
        options: &Options,
    ) -> Room {
        let Ledger { known, quarantine, away, arrival } = ledger;
        let mut away = std::mem::take(away);
        // LIDs that stay are no machine's, so the VM manager's word does not matter.
        let arrival = arrival.as_deref().filter(|arrival| arrival.is_open(now) && !options.lids_stay());
        let mut led = self.led(held);
        if arrival.is_some() && !self.vswitches.is_empty() {
            led.extend(self.routed(held));
        }
        for claim in claims {
            let at_port = LidRange::aligned(claim.present, claim.lmc);
            for range in [known.range(claim.guid), at_port].into_iter().flatten() {
                (range.min.0..=range.max.0).for_each(|lid| {
                    led.remove(&Lid(lid));
                    away.remove(&Lid(lid));
                });
            }
        }
        led.retain(|lid| !away.contains(lid));
        let waiting = arrival.map(|arrival| waiting(claims, &led, known, arrival)).unwrap_or_default();
        let free = quarantine.update(now, &led, options.quarantine());
        let is_there = |guid: &Guid| claims.binary_search_by_key(guid, |claim: &Claim| claim.guid).is_ok();
        let over = known.iter().filter(|(guid, lids)| free.contains(&lids.min) && !is_there(guid));
        let over: Vec<_> = over.map(|(guid, _)| guid).collect();
        over.into_iter().for_each(|guid| known.remove(guid));
        Room {
            resting: quarantine.lids().chain(away.iter().copied()).collect(),
            away,
            is_firm: options.is_dynamic() || arrival.is_some(),
            waiting,
            vms_max: usize::from(options.vm_lids.vm_lids_max),
        }
    }

    /// Takes down which LIDs rest now that others are given, and how far they reach; says how many there are.
    pub(crate) fn settle(subnet: &mut Subnet, room: Room, options: &Options) -> VmLids {
        let adapters = &subnet.adapters;
        let slots = adapters.slots(subnet);
        let (mut physical, mut taken, mut top) = (0, BTreeSet::new(), 0);
        let mut counts = VmLids::default();
        for (at, port) in subnet.end_ports() {
            let is_function = adapters.is_function(at);
            let Some(lids) = port.lid else {
                counts.refused += u32::from(is_function);
                continue;
            };
            top = top.max(lids.max.0);
            taken.extend((lids.min.0..=lids.max.0).map(Lid));
            let is_physical = !is_function && has_own_lid(subnet, at);
            physical += usize::from(is_physical) << lids.lmc();
            counts.in_use += u32::from(is_function) << lids.lmc();
        }
        let resting: BTreeSet<Lid> = room.resting.into_iter().filter(|lid| !taken.contains(lid)).collect();
        counts.quarantined = resting.len() as u32;
        let (most, used) = (u32::from(options.vm_lids.vm_lids_max), counts.in_use + counts.quarantined);
        let unicast = usize::from(Lid::UNICAST_MAX.0);
        let left = unicast.saturating_sub(physical + used as usize) as u32;
        counts.free = most.saturating_sub(used).min(left);
        let space = if options.is_dynamic() && slots > 0 {
            let top = resting.last().map_or(top, |lid| top.max(lid.0));
            let wanted =
                (physical + slots.min(usize::from(options.vm_lids.vm_lids_max))).max(usize::from(top));
            // A block is written as a whole, so the rest of its rows is no further SMP.
            ((wanted + 1).next_multiple_of(BLOCK_ENTRIES) - 1).min(unicast) as u16
        } else {
            0
        };
        (subnet.adapters.resting, subnet.adapters.space) = (resting, Lid(space));
        counts
    }
}

/// The ports that wait for their LIDs, because it is not known of some LID that rests whose it is.
fn waiting(claims: &[Claim], led: &BTreeSet<Lid>, known: &GuidToLid, arrival: &Arrival) -> BTreeSet<Guid> {
    let on_file = known.iter().filter(|(guid, _)| arrival.trusts_file(*guid));
    let on_file: BTreeSet<Lid> = on_file.flat_map(|(_, lids)| lids.min.0..=lids.max.0).map(Lid).collect();
    if led.is_subset(&on_file) {
        return BTreeSet::new();
    }
    claims.iter().filter(|claim| arrival.keeps_waiting(claim, known)).map(|claim| claim.guid).collect()
}

/// Whether an end port has a LID of its own; port 0 of a vSwitch may share the physical function's.
pub(crate) fn has_own_lid(subnet: &Subnet, at: PortAt) -> bool {
    subnet.adapters.shared_with(at).is_none()
}
