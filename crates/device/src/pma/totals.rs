//! PortCounters and PortCountersExtended: the same counters twice, cut short and in full (IBA 16.1.3.5, 16.1.4.11).

use weft_wire::{PortCounters, PortCountersExtended};

use super::attribute;
use crate::port::Port;

/// Lists the counters of both attributes with the bits that select them: `field = bit in CounterSelect (from 16 on
/// in its CounterSelect2)`, with its highest value where that is less than the type's, then the same for
/// PortCountersExtended.
macro_rules! counters {
    ($with:ident) => {
        $with! {
            basic {
                symbol_error_counter: u16 = 0, link_error_recovery_counter: u8 = 1, link_downed_counter: u8 = 2,
                port_rcv_errors: u16 = 3, port_rcv_remote_physical_errors: u16 = 4,
                port_rcv_switch_relay_errors: u16 = 5, port_xmit_discards: u16 = 6,
                port_xmit_constraint_errors: u8 = 7, port_rcv_constraint_errors: u8 = 8,
                local_link_integrity_errors: u8 = 9 to 15, excessive_buffer_overrun_errors: u8 = 10 to 15,
                vl15_dropped: u16 = 11, port_xmit_data: u32 = 12, port_rcv_data: u32 = 13,
                port_xmit_pkts: u32 = 14, port_rcv_pkts: u32 = 15, port_xmit_wait: u32 = 16, qp1_dropped: u16 = 17,
            }
            extended {
                port_xmit_data = 0, port_rcv_data = 1, port_xmit_pkts = 2, port_rcv_pkts = 3,
                port_unicast_xmit_pkts = 4, port_unicast_rcv_pkts = 5, port_multicast_xmit_pkts = 6,
                port_multicast_rcv_pkts = 7, symbol_error_counter = 16, link_error_recovery_counter = 17,
                link_downed_counter = 18, port_rcv_errors = 19, port_rcv_remote_physical_errors = 20,
                port_rcv_switch_relay_errors = 21, port_xmit_discards = 22, port_xmit_constraint_errors = 23,
                port_rcv_constraint_errors = 24, local_link_integrity_errors = 25,
                excessive_buffer_overrun_errors = 26, vl15_dropped = 27, port_xmit_wait = 28, qp1_dropped = 29,
            }
        }
    };
}

macro_rules! functions {
    (
        basic { $( $basic:ident: $int:ty = $basic_bit:literal $(to $max:literal)?, )* }
        extended { $( $extended:ident = $extended_bit:literal, )* }
    ) => {
        /// PortCounters of several ports together. Each counter stops at its highest value.
        fn read_basic(ports: &[Port]) -> PortCounters {
            PortCounters {
                $( $basic: ports.iter().fold(0, |sum: $int, port| {
                    let since = port.counters.$basic.wrapping_sub(port.counted_before.$basic);
                    let max = [$($max,)? <$int>::MAX][0];
                    sum.saturating_add(<$int>::try_from(since).unwrap_or(max)).min(max)
                }), )*
                ..PortCounters::default()
            }
        }

        /// Sets the counters whose bits are in `select` to the values given.
        fn write_basic(port: &mut Port, values: &PortCounters, select: u64) {
            $( if select >> $basic_bit & 1 != 0 {
                port.counted_before.$basic = port.counters.$basic.wrapping_sub(u64::from(values.$basic));
            } )*
        }

        /// PortCountersExtended of several ports together. These do not stop.
        fn read_extended(ports: &[Port]) -> PortCountersExtended {
            PortCountersExtended {
                $( $extended: ports.iter().fold(0, |sum: u64, port| sum.wrapping_add(port.counters.$extended)), )*
                ..PortCountersExtended::default()
            }
        }

        /// Sets the counters whose bits are in `select`; those of PortCounters stay as they are.
        pub(super) fn write_extended(port: &mut Port, values: &PortCountersExtended, select: u64) {
            $( if select >> $extended_bit & 1 != 0 {
                let shift = values.$extended.wrapping_sub(port.counters.$extended);
                port.counted_before.$extended = port.counted_before.$extended.wrapping_add(shift);
                port.counters.$extended = values.$extended;
            } )*
        }

    };
}

counters!(functions);

attribute!(PortCounters {
    read(asked, ports) {
        let PortCounters { port_select, counter_select, counter_select2, .. } = *asked;
        PortCounters { port_select, counter_select, counter_select2, ..read_basic(ports) }
    }
    write(asked, port) {
        let select = u64::from(asked.counter_select) | u64::from(asked.counter_select2) << 16;
        write_basic(port, asked, select);
    }
});

attribute!(PortCountersExtended {
    read(asked, ports) {
        let PortCountersExtended { port_select, counter_select, counter_select2, .. } = *asked;
        PortCountersExtended { port_select, counter_select, counter_select2, ..read_extended(ports) }
    }
    write(asked, port) {
        let select = u64::from(asked.counter_select) | u64::from(asked.counter_select2) << 16;
        write_extended(port, asked, select);
    }
});
