//! PortRcvErrorDetails, PortXmitDiscardDetails and PortFlowCtlCounters: what the totals are made of (IBA 16.1.4.1, 16.1.4.2, 16.1.4.4).
//!
//! These counters are their attribute's alone: what is written to one of them changes no total.

use weft_wire::{PortFlowCtlCounters, PortRcvErrorDetails, PortXmitDiscardDetails};

use super::attribute;

/// Each counter with the bit that selects it. It stops at its type's highest value, also when it is the sum of
/// several ports.
macro_rules! details {
    ($name:ident { $( $counter:ident: $int:ty = $bit:literal ),* $(,)? }) => {
        attribute!($name {
            read(asked, ports) {
                $name {
                    port_select: asked.port_select,
                    counter_select: asked.counter_select,
                    $( $counter: ports.iter().fold(0, |sum: $int, port| {
                        sum.saturating_add(<$int>::try_from(port.counters.$counter).unwrap_or(<$int>::MAX))
                    }), )*
                    ..$name::default()
                }
            }
            write(asked, port) {
                $( if asked.counter_select >> $bit & 1 != 0 {
                    port.counters.$counter = asked.$counter.into();
                } )*
            }
        });
    };
}

details!(PortRcvErrorDetails {
    port_local_physical_errors: u16 = 0,
    port_malformed_pkt_errors: u16 = 1,
    port_buffer_overrun_errors: u16 = 2,
    port_dlid_mapping_errors: u16 = 3,
    port_vl_mapping_errors: u16 = 4,
    port_looping_errors: u16 = 5,
});

details!(PortXmitDiscardDetails {
    port_inactive_discards: u16 = 0,
    port_neighbor_mtu_discards: u16 = 1,
    port_sw_lifetime_limit_discards: u16 = 2,
    port_sw_hoq_lifetime_limit_discards: u16 = 3,
});

details!(PortFlowCtlCounters { port_xmit_flow_pkts: u32 = 0, port_rcv_flow_pkts: u32 = 1 });
