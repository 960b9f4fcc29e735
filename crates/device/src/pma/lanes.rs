//! PMA attributes by lane and by opcode (IBA 16.1.4.3, 16.1.4.5 to 16.1.4.8).
//!
//! A request names the opcode that it asks about. The tools of the field leave it zero, so zero stands for every
//! opcode together.

use weft_wire::{
    PortOpRcvCounters, PortVlOpData, PortVlOpPackets, PortVlXmitFlowCtlUpdateErrors, PortVlXmitWaitCounters,
};

use super::attribute;
use crate::lane_counters::OpCounters;
use crate::port::Port;

/// What is asked about one opcode, or about all of them.
fn counted(port: &Port, op_code: u8) -> impl Iterator<Item = &OpCounters> {
    port.by_lane.by_op_code.iter().filter(move |counters| op_code == 0 || counters.op_code == op_code)
}

/// The same, to write. An opcode of which there was no packet has nothing to be cleared.
fn counted_mut(port: &mut Port, op_code: u8) -> impl Iterator<Item = &mut OpCounters> {
    port.by_lane.by_op_code.iter_mut().filter(move |counters| op_code == 0 || counters.op_code == op_code)
}

/// The sum over ports of what fits the attribute's counter, which stops at its highest value.
fn sum<const MAX: u64>(ports: &[Port], count: impl Fn(&Port) -> u64) -> u64 {
    ports.iter().fold(0, |sum, port| sum.saturating_add(count(port).min(MAX)).min(MAX))
}

const MAX_2: u64 = 3;
const MAX_16: u64 = u16::MAX as u64;
const MAX_32: u64 = u32::MAX as u64;

/// The lanes that a Set selects.
fn selected(counter_select: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |lane| counter_select >> lane & 1 != 0)
}

attribute!(PortOpRcvCounters {
    read(asked, ports) {
        let count = |of: fn(&OpCounters) -> u64| {
            sum::<MAX_32>(ports, |port| counted(port, asked.op_code).map(of).sum()) as u32
        };
        PortOpRcvCounters {
            port_op_rcv_pkts: count(|counters| counters.port.packets),
            port_op_rcv_data: count(|counters| counters.port.data),
            ..*asked
        }
    }
    write(asked, port) {
        for counters in counted_mut(port, asked.op_code) {
            if asked.counter_select & 1 != 0 {
                counters.port.packets = asked.port_op_rcv_pkts.into();
            }
            if asked.counter_select & 2 != 0 {
                counters.port.data = asked.port_op_rcv_data.into();
            }
        }
    }
});

/// Declares an attribute of packets or data by lane, of one opcode or all.
macro_rules! by_op_code {
    ($name:ident { $field:ident: $int:ty = $counter:ident to $max:ident }) => {
        attribute!($name {
            read(asked, ports) {
                let count = |lane: usize| {
                    sum::<$max>(ports, |port| counted(port, asked.op_code).map(|c| c.lanes[lane].$counter).sum())
                };
                $name { $field: std::array::from_fn(|lane| count(lane) as $int), ..*asked }
            }
            write(asked, port) {
                for counters in counted_mut(port, asked.op_code) {
                    selected(asked.counter_select)
                        .for_each(|lane| counters.lanes[lane].$counter = asked.$field[lane].into());
                }
            }
        });
    };
}
by_op_code!(PortVlOpPackets { port_vl_op_packets: u16 = packets to MAX_16 });
by_op_code!(PortVlOpData { port_vl_op_data: u32 = data to MAX_32 });

/// Declares an attribute of what is counted by lane, whatever the opcode.
macro_rules! by_lane {
    ($name:ident { $field:ident: $int:ty = $counter:ident to $max:ident }) => {
        attribute!($name {
            read(asked, ports) {
                let count = |lane: usize| sum::<$max>(ports, |port| port.by_lane.$counter[lane]) as $int;
                $name { $field: std::array::from_fn(count), ..*asked }
            }
            write(asked, port) {
                selected(asked.counter_select)
                    .for_each(|lane| port.by_lane.$counter[lane] = asked.$field[lane].into());
            }
        });
    };
}
by_lane!(PortVlXmitFlowCtlUpdateErrors {
    port_vl_xmit_flow_ctl_update_errors: u8 = flow_ctl_update_errors to MAX_2
});
by_lane!(PortVlXmitWaitCounters { port_vl_xmit_wait: u16 = xmit_wait to MAX_16 });
