//! SwitchInfo, LinearForwardingTable, MulticastForwardingTable: what only a switch has.

use weft_wire::{LinearForwardingTable, MulticastForwardingTable, PortNum, SwitchInfo, status};

use super::node::padded;
use super::{Answer, Effect, Request, Work};
use crate::Event;

impl Work<'_> {
    pub(super) fn switch_info(&self) -> Answer {
        let switch = self.tables.switch.as_ref().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        Ok(padded(&switch.info.encode()))
    }

    /// The capabilities are read only; PortStateChange is cleared by writing 1.
    pub(super) fn set_switch_info(&mut self, request: Request<'_>) -> Answer {
        let switch = self.tables.switch.as_mut().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        let wanted = SwitchInfo::decode(first(request.data));
        let info = &mut switch.info;
        if wanted.linear_fdb_top != 0 && wanted.linear_fdb_top >= info.linear_fdb_cap {
            return Err(status::BAD_VALUE);
        }
        info.linear_fdb_top = wanted.linear_fdb_top;
        info.default_port = wanted.default_port;
        info.default_multicast_primary_port = wanted.default_multicast_primary_port;
        info.default_multicast_not_primary_port = wanted.default_multicast_not_primary_port;
        info.life_time_value = wanted.life_time_value;
        info.multicast_fdb_top = wanted.multicast_fdb_top;
        info.port_state_change &= !wanted.port_state_change;
        self.follow(Effect::SettingsChanged(PortNum::ZERO));
        self.switch_info()
    }

    pub(super) fn linear_forwarding_table(&self, request: Request<'_>) -> Answer {
        let block = self.linear_block(request)?;
        let switch = self.tables.switch.as_ref().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        Ok(switch.linear_block(block).encode())
    }

    pub(super) fn set_linear_forwarding_table(&mut self, request: Request<'_>) -> Answer {
        let block = self.linear_block(request)?;
        let switch = self.tables.switch.as_mut().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        switch.write_linear_block(block, &LinearForwardingTable::decode(request.data));
        self.tables.statistics.lft_writes += 1;
        self.follow(Effect::Event(Event::ForwardingTableWritten { block }));
        self.linear_forwarding_table(request)
    }

    /// The block of 64 entries that the modifier names, if the table is long enough for it.
    fn linear_block(&self, request: Request<'_>) -> Result<u16, u16> {
        let switch = self.tables.switch.as_ref().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        let block = (request.modifier & 0xffff) as u16;
        if u32::from(block) * 64 >= u32::from(switch.info.linear_fdb_cap) {
            return Err(status::BAD_VALUE);
        }
        Ok(block)
    }

    pub(super) fn multicast_forwarding_table(&self, request: Request<'_>) -> Answer {
        let place = self.multicast_place(request)?;
        let switch = self.tables.switch.as_ref().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        let port_masks = switch.multicast.get(&place).copied().unwrap_or([0; 32]);
        Ok(MulticastForwardingTable { port_masks }.encode())
    }

    pub(super) fn set_multicast_forwarding_table(&mut self, request: Request<'_>) -> Answer {
        let place = self.multicast_place(request)?;
        let switch = self.tables.switch.as_mut().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        switch.multicast.insert(place, MulticastForwardingTable::decode(request.data).port_masks);
        self.tables.statistics.mft_writes += 1;
        self.multicast_forwarding_table(request)
    }

    /// The block of 32 LIDs and the group of 16 ports that the modifier names.
    fn multicast_place(&self, request: Request<'_>) -> Result<(u16, u8), u16> {
        let switch = self.tables.switch.as_ref().ok_or(status::BAD_METHOD_ATTRIBUTE)?;
        let block = (request.modifier & 0x1ff) as u16;
        let position = (request.modifier >> 28) as u8;
        let in_table = u32::from(block) * 32 < u32::from(switch.info.multicast_fdb_cap);
        if !in_table || usize::from(position) * 16 >= self.tables.ports.len() {
            return Err(status::BAD_VALUE);
        }
        Ok((block, position))
    }
}

/// The first bytes of an SMP's data, for an attribute shorter than that.
pub(super) fn first<const N: usize>(data: &[u8; 64]) -> &[u8; N] {
    data.first_chunk().expect("no SMP attribute is longer than 64 bytes")
}
