//! The parts of received errors: six counters of 16 bits that stop at their end.

use serde::{Deserialize, Serialize};
use weft_wire::{PerfMad, PortRcvErrorDetails};

use super::{Counter, End, Reading, U16};

/// Lists the counters with their bits in CounterSelect.
macro_rules! errors {
    ($( $name:ident = $bit:literal, )*) => {
        /// What PortRcvErrors and PortRcvSwitchRelayErrors of a port are made of (IBA 16.1.4.1).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct ErrorTotals {
            $( #[doc = concat!("See `PortRcvErrorDetails::", stringify!($name), "`.")] pub $name: u64, )*
        }

        /// The counters of a port.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct ErrorCounters {
            $( $name: Counter, )*
        }

        impl ErrorCounters {
            pub(crate) fn totals(&self) -> ErrorTotals {
                ErrorTotals { $( $name: self.$name.total, )* }
            }

            /// Takes an answer with PortRcvErrorDetails.
            pub(crate) fn read(&mut self, mad: &[u8; 256], first: bool) -> Reading {
                let mut reading = Reading::default();
                let data = PerfMad::data.get(mad);
                let Some(values) = data.first_chunk().map(PortRcvErrorDetails::decode) else { return reading };
                $( reading.note(&mut self.$name, u64::from(values.$name), End::Stops(U16), first, 1 << $bit); )*
                reading
            }

            /// These counters have been set to zero.
            pub(crate) fn were_reset(&mut self, bits: u16) {
                $( if bits & 1 << $bit != 0 { self.$name.last = 0; } )*
            }
        }
    };
}

errors! {
    port_local_physical_errors = 0, port_malformed_pkt_errors = 1, port_buffer_overrun_errors = 2,
    port_dlid_mapping_errors = 3, port_vl_mapping_errors = 4, port_looping_errors = 5,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_on_and_reset_past_its_half() {
        let answer = |values: &PortRcvErrorDetails| {
            let mut mad = [0; 256];
            mad[weft_wire::PERF_DATA][..PortRcvErrorDetails::SIZE].copy_from_slice(&values.encode());
            mad
        };
        let mut errors = ErrorCounters::default();
        let first = PortRcvErrorDetails { port_dlid_mapping_errors: 0x8000, ..Default::default() };
        assert_eq!(errors.read(&answer(&first), true).reset, 1 << 3);
        errors.were_reset(1 << 3);
        let then = PortRcvErrorDetails {
            port_dlid_mapping_errors: 4,
            port_looping_errors: 9,
            port_local_physical_errors: u16::MAX,
            ..Default::default()
        };
        let reading = errors.read(&answer(&then), false);
        assert_eq!((reading.reset, reading.stopped, reading.fallen), (1, 1, 0));
        let expected = ErrorTotals {
            port_dlid_mapping_errors: 0x8004,
            port_looping_errors: 9,
            port_local_physical_errors: 0xffff,
            ..ErrorTotals::default()
        };
        assert_eq!(errors.totals(), expected);
    }
}
