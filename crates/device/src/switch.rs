//! A switch's own part: forwarding tables, and forwarding by them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use weft_wire::{
    Lid, LinearForwardingTable, Packet, PortNum, ServiceLevel, SlToVlTable, SwitchInfo, VirtualLane,
};

use crate::rounds::Rounds;
use crate::{Device, DropReason};

/// Entries of one block of the linear forwarding table.
const BLOCK: usize = 64;

/// A switch's tables. What every packet asks for is in front, in one line of the cache.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Switch {
    /// By LID, up to the highest block written.
    pub(crate) linear: Vec<PortNum>,
    pub(crate) info: SwitchInfo,
    /// By block of 32 LIDs and position of 16 ports.
    pub(crate) multicast: BTreeMap<(u16, u8), [u16; 32]>,
    pub(crate) rounds: Rounds,
}

impl Switch {
    pub(crate) fn new(info: SwitchInfo) -> Self {
        Self { info, linear: Vec::new(), multicast: BTreeMap::new(), rounds: Rounds::default() }
    }

    /// The port to leave by (IBA 18.2.4.3.2). LIDs above LinearFDBTop are not looked up.
    #[inline]
    pub(crate) fn lookup(&self, lid: Lid) -> Option<PortNum> {
        if lid.0 > self.info.linear_fdb_top {
            return None;
        }
        self.linear.get(usize::from(lid.0)).copied().filter(|&port| port != PortNum::NONE)
    }

    /// One block, as the attribute has it; what was never written is without route.
    pub(crate) fn linear_block(&self, block: u16) -> LinearForwardingTable {
        let start = usize::from(block) * BLOCK;
        let ports = std::array::from_fn(|i| self.linear.get(start + i).copied().unwrap_or(PortNum::NONE));
        LinearForwardingTable { ports }
    }

    /// Writes one block. The caller has checked it against LinearFDBCap.
    pub(crate) fn write_linear_block(&mut self, block: u16, table: &LinearForwardingTable) {
        let start = usize::from(block) * BLOCK;
        if self.linear.len() < start + BLOCK {
            self.linear.resize(start + BLOCK, PortNum::NONE);
        }
        self.linear[start..start + BLOCK].copy_from_slice(&table.ports);
    }
}

/// Service levels to lanes, by port of arrival and port of departure (IBA 14.2.5.8). Most of the tables are alike, so each
/// that there is is kept once.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SlToVl {
    /// The table of whatever comes in by one cable and leaves by another, if all of that has the same.
    everywhere: Option<SlToVlTable>,
    ports: usize,
    /// By port of arrival and port of departure, which of the tables.
    which: Vec<u16>,
    tables: Vec<SlToVlTable>,
}

impl SlToVl {
    /// For ports 0 to `ports`; every service level on lane 0 at first.
    pub(crate) fn new(ports: usize) -> Self {
        let which = vec![0; (ports + 1) * (ports + 1)];
        let tables = vec![SlToVlTable::default()];
        Self { everywhere: Some(tables[0]), ports: ports + 1, which, tables }
    }

    /// The table from `input` to `output`, both of them ports of the device.
    #[inline]
    pub(crate) fn table(&self, input: PortNum, output: PortNum) -> Option<&SlToVlTable> {
        self.tables.get(usize::from(*self.which.get(self.index(input, output))?))
    }

    /// Sets the tables from each of `inputs` to each of `outputs`, all of them ports of the device.
    pub(crate) fn set(
        &mut self,
        inputs: RangeInclusive<u8>,
        outputs: &RangeInclusive<u8>,
        table: SlToVlTable,
    ) {
        if self.tables.len() > self.which.len() {
            self.forget_unused();
        }
        let known = self.tables.iter().position(|known| *known == table);
        let number = known.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        });
        for input in inputs {
            for output in outputs.clone() {
                let index = self.index(PortNum(input), PortNum(output));
                if let Some(which) = self.which.get_mut(index) {
                    *which = number as u16;
                }
            }
        }
        self.everywhere = self.shared().and_then(|which| self.tables.get(usize::from(which)).copied());
    }

    /// The number that stands between all cables, if there is only one.
    fn shared(&self) -> Option<u16> {
        let between = |input: usize| {
            let row = &self.which[input * self.ports..][..self.ports];
            row.iter()
                .enumerate()
                .skip(1)
                .filter(move |(output, _)| *output != input)
                .map(|(_, which)| *which)
        };
        let all = || (1..self.ports).flat_map(between);
        // Tables are written from the first port to the last: until they all are, these two differ.
        let (first, last) = (all().next()?, (1..self.ports).rev().flat_map(between).next()?);
        (first == last && all().all(|which| which == first)).then_some(first)
    }

    /// Keeps only the tables that are in use: no more than places, which are fewer than numbers.
    fn forget_unused(&mut self) {
        let mut numbers = vec![None; self.tables.len()];
        let mut used = Vec::new();
        for which in &mut self.which {
            let old = usize::from(*which);
            *which = *numbers[old].get_or_insert_with(|| {
                used.push(self.tables[old]);
                (used.len() - 1) as u16
            });
        }
        self.tables = used;
    }

    #[inline]
    pub(crate) fn lane(&self, input: PortNum, output: PortNum, sl: ServiceLevel) -> VirtualLane {
        let of_cables = input != output && input != PortNum::ZERO && output != PortNum::ZERO;
        let table = self.everywhere.as_ref().filter(|_| of_cables).or_else(|| self.table(input, output));
        table.map_or(VirtualLane::MANAGEMENT, |table| table.lanes[usize::from(sl.0 & 0xf)])
    }

    #[inline]
    fn index(&self, input: PortNum, output: PortNum) -> usize {
        usize::from(input.0) * self.ports + usize::from(output.0)
    }
}

impl Device {
    /// Whether a packet for this LID is for the end port `end` of the node. A vSwitch may share the LID of its physical function
    /// (paper 001, section V-A), and its table sends such packets on: a switch delivers by its table (IBA 18.2.4.3).
    #[inline]
    pub(crate) fn is_for(&self, end: PortNum, dlid: Lid) -> bool {
        self.ports[usize::from(end.0)].has_lid(dlid) && !self.sends_on(dlid)
    }

    /// Whether this is a switch whose table has a port with a cable for the LID.
    pub(crate) fn sends_on(&self, dlid: Lid) -> bool {
        let row = self.switch.as_ref().and_then(|switch| switch.lookup(dlid));
        row.is_some_and(|port| port != PortNum::ZERO && self.has_port(port))
    }

    /// Sends a packet of lane 15 on by the table. `input` is the port of arrival, 0 for what comes from within.
    pub(crate) fn forward(&mut self, input: PortNum, packet: Packet) {
        let now = self.data.now;
        let Some(switch) = &mut self.switch else { return self.discard(input, DropReason::BadAddress) };
        let output = switch.lookup(packet.dlid());
        let goes_round = input != PortNum::ZERO && switch.rounds.goes_round(now, &packet);
        let Some(output) = output.filter(|&port| port != PortNum::ZERO && self.has_port(port)) else {
            self.relay_error(input, DropReason::NoRoute);
            return;
        };
        if output == input || goes_round {
            self.relay_error(input, DropReason::Loop);
            return;
        }
        if self.transmit(output, packet) && input != PortNum::ZERO {
            self.statistics.forwarded += 1;
        }
    }

    /// The packet cannot be forwarded: no route, no lane, or back to where it came from (IBA 16.1.3.5).
    pub(crate) fn relay_error(&mut self, input: PortNum, reason: DropReason) -> DropReason {
        if let Some(port) = self.ports.get_mut(usize::from(input.0)) {
            port.counters.port_rcv_switch_relay_errors += 1;
            match reason {
                DropReason::Loop => port.counters.port_looping_errors += 1,
                DropReason::NoLane => port.counters.port_vl_mapping_errors += 1,
                _ => port.counters.port_dlid_mapping_errors += 1,
            }
        }
        self.discard(input, reason);
        reason
    }
}

#[cfg(test)]
mod tests;
