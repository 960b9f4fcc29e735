//! SLtoVLMappingTable and VLArbitrationTable: how service levels share the lanes.

use std::ops::RangeInclusive;

use weft_wire::{PortNum, SlToVlTable, VirtualLane, VlArbitrationTable, status};

use super::node::padded;
use super::tables::first;
use super::{Answer, Effect, Request, Work};
use crate::port::Port;

/// Modifier bits of a Set that stand for every port (IBA 14.2.5.8).
const ALL_OUTPUTS: u32 = 1 << 16;
const ALL_INPUTS: u32 = 1 << 17;

/// Entries of half an arbitration table.
const HALF: usize = 32;

impl Work<'_> {
    pub(super) fn sl_to_vl_table(&self, request: Request<'_>) -> Answer {
        let (inputs, outputs) = self.sl_to_vl_place(request, false)?;
        let table = self.tables.sl_to_vl.table(PortNum(*inputs.start()), PortNum(*outputs.start()));
        Ok(padded(&table.ok_or(status::BAD_VALUE)?.encode()))
    }

    pub(super) fn set_sl_to_vl_table(&mut self, request: Request<'_>) -> Answer {
        let (inputs, outputs) = self.sl_to_vl_place(request, true)?;
        let wanted = SlToVlTable::decode(first(request.data));
        self.tables.sl_to_vl.set(inputs, &outputs, wanted);
        Ok(padded(&wanted.encode()))
    }

    /// The ports of arrival and departure that the modifier names: on an HCA always its own; on a switch one of
    /// each, or in an optimised Set all of them.
    fn sl_to_vl_place(
        &self,
        request: Request<'_>,
        wildcards: bool,
    ) -> Result<(RangeInclusive<u8>, RangeInclusive<u8>), u16> {
        let Some(switch) = &self.tables.switch else {
            let own = request.port.0..=request.port.0;
            return Ok((own.clone(), own));
        };
        let modifier = request.modifier;
        let any = modifier & (ALL_INPUTS | ALL_OUTPUTS) != 0;
        if any && !(wildcards && switch.info.optimized_sl_to_vl_mapping == 1) {
            return Err(status::BAD_VALUE);
        }
        let last = self.tables.ports.last();
        let place = |all: u32, number: u8| {
            if modifier & all != 0 {
                Ok(0..=last)
            } else if number <= last {
                Ok(number..=number)
            } else {
                Err(status::BAD_VALUE)
            }
        };
        Ok((place(ALL_INPUTS, (modifier >> 8) as u8)?, place(ALL_OUTPUTS, modifier as u8)?))
    }

    pub(super) fn vl_arbitration_table(&self, request: Request<'_>) -> Answer {
        let (port, part, _) = self.vl_arbitration_place(request)?;
        Ok(port.vl_arbitration[part].encode())
    }

    /// Entries beyond the port's capability do not exist, and are not kept.
    pub(super) fn set_vl_arbitration_table(&mut self, request: Request<'_>) -> Answer {
        let (port, part, entries) = self.vl_arbitration_place(request)?;
        let at = usize::from(port.number.0);
        let mut wanted = VlArbitrationTable::decode(request.data);
        if wanted.entries[..entries].iter().any(|entry| entry.vl == VirtualLane::MANAGEMENT) {
            return Err(status::BAD_VALUE);
        }
        wanted.entries[entries..].fill(Default::default());
        wanted.entries.iter_mut().for_each(|entry| entry.reserved = 0);
        self.tables.ports[at].vl_arbitration[part] = wanted;
        self.follow(Effect::SettingsChanged(PortNum(at as u8)));
        self.vl_arbitration_table(request)
    }

    /// The port, the quarter of its tables that the modifier's upper half names, and the entries that it has.
    fn vl_arbitration_place(&self, request: Request<'_>) -> Result<(&Port, usize, usize), u16> {
        let number = PortNum((request.modifier & 0xff) as u8);
        let port = if self.tables.ports.is_switch() {
            self.tables.ports.get(usize::from(number.0))
        } else {
            let own = number == PortNum::ZERO || number == request.port;
            self.tables.ports.get(usize::from(request.port.0)).filter(|_| own)
        };
        let port = port.ok_or(status::BAD_VALUE)?;
        let base_port0 =
            self.tables.switch.as_ref().is_some_and(|s| number == PortNum::ZERO && !s.info.enhanced_port0);
        let (low, high) = (port.info.vl_arbitration_low_cap, port.info.vl_arbitration_high_cap);
        let (low, high) = (usize::from(low), usize::from(high));
        let (part, entries) = match request.modifier >> 16 {
            1 => (0, low.min(HALF)),
            2 => (1, low.saturating_sub(HALF)),
            3 => (2, high.min(HALF)),
            4 => (3, high.saturating_sub(HALF)),
            _ => return Err(status::BAD_VALUE),
        };
        if base_port0 || entries == 0 { Err(status::BAD_VALUE) } else { Ok((port, part, entries)) }
    }
}
