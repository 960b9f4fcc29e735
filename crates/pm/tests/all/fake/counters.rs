//! The counters of a port, as its performance agent tells them.

use weft_machine::Time;
use weft_wire::{
    AttributeId, PortCounters, PortCountersExtended, PortNum, PortRcvErrorDetails, PortVlXmitWaitCounters,
};

use super::Port;

impl Port {
    /// Answers a Get or a Set in `data`, which has the question.
    pub(super) fn answer(&mut self, now: Time, attribute: AttributeId, set: bool, data: &mut [u8]) {
        let port_select = PortNum(data[1]);
        match attribute {
            AttributeId::PORT_COUNTERS => self.basic(now, port_select, set, data),
            AttributeId::PortCountersExtended => self.extended(now, port_select, set, data),
            AttributeId::PORT_VL_XMIT_WAIT_COUNTERS => self.lanes(now, port_select, set, data),
            AttributeId::PORT_RCV_ERROR_DETAILS => self.errors(port_select, set, data),
            other => panic!("{other} was asked of a port"),
        }
    }

    fn basic(&mut self, now: Time, port_select: PortNum, set: bool, data: &mut [u8]) {
        let asked = PortCounters::decode(data.first_chunk().unwrap());
        if set && asked.counter_select2 & 1 != 0 {
            self.wait.set(now, u64::from(asked.port_xmit_wait));
        }
        if set && asked.counter_select & 1 != 0 {
            self.symbol_errors = u64::from(asked.symbol_error_counter);
        }
        if set && asked.counter_select & 1 << 12 != 0 {
            self.xmit.set(now, u64::from(asked.port_xmit_data));
        }
        let cut = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let counters = PortCounters {
            port_select,
            port_xmit_wait: cut(self.wait.at(now)),
            port_xmit_data: cut(self.xmit.at(now)),
            port_rcv_data: cut(self.rcv.at(now)),
            symbol_error_counter: self.symbol_errors.min(0xffff) as u16,
            ..PortCounters::default()
        };
        data[..PortCounters::SIZE].copy_from_slice(&counters.encode());
    }

    fn extended(&mut self, now: Time, port_select: PortNum, set: bool, data: &mut [u8]) {
        let asked = PortCountersExtended::decode(data.first_chunk().unwrap());
        if set && asked.counter_select & 1 != 0 {
            self.xmit.set(now, asked.port_xmit_data);
        }
        let counters = PortCountersExtended {
            port_select,
            port_xmit_data: self.xmit.at(now),
            port_rcv_data: self.rcv.at(now),
            ..PortCountersExtended::default()
        };
        data[..PortCountersExtended::SIZE].copy_from_slice(&counters.encode());
    }

    fn lanes(&mut self, now: Time, port_select: PortNum, set: bool, data: &mut [u8]) {
        let asked = PortVlXmitWaitCounters::decode(data.first_chunk().unwrap());
        for lane in (0..16).filter(|lane| set && asked.counter_select >> lane & 1 != 0) {
            self.lane_waits[lane].set(now, 0);
        }
        let port_vl_xmit_wait = self.lane_waits.map(|count| count.at(now).min(0xffff) as u16);
        let counters =
            PortVlXmitWaitCounters { port_select, port_vl_xmit_wait, ..PortVlXmitWaitCounters::default() };
        data[..PortVlXmitWaitCounters::SIZE].copy_from_slice(&counters.encode());
    }

    fn errors(&mut self, port_select: PortNum, set: bool, data: &mut [u8]) {
        let asked = PortRcvErrorDetails::decode(data.first_chunk().unwrap());
        if set && asked.counter_select & 1 << 3 != 0 {
            self.dlid_mapping_errors = 0;
        }
        let counters = PortRcvErrorDetails {
            port_select,
            port_dlid_mapping_errors: self.dlid_mapping_errors.min(0xffff) as u16,
            ..PortRcvErrorDetails::default()
        };
        data[..PortRcvErrorDetails::SIZE].copy_from_slice(&counters.encode());
    }
}
