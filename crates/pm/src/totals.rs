//! 64-bit totals from counters that stop, wrap, or are set back by anybody.
//!
//! | a reading is | then |
//! |---|---|
//! | the first | the total begins with it, so that it says what other tools read |
//! | no less than the last | the difference is added |
//! | less, of a counter that stops | somebody reset it, or the device restarted: the reading itself is added, the least that was counted |
//! | less, of a 64-bit counter near its end | it wrapped |
//! | the highest value | it may have stopped: what is added is the least that was counted, and the counter is to be reset |
//!
//! The least that was counted is not exact: a rate made of it proves that a port is congested, never that
//! it is not.

mod errors;

use weft_vocabulary::pm::Totals;
use weft_wire::{PERF_DATA, PerfMad, PortCounters, PortCountersExtended, PortVlXmitWaitCounters};

pub(crate) use errors::ErrorCounters;
pub use errors::ErrorTotals;

/// One counter: what it last showed, and the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    total: u64,
    last: u64,
    /// What the last reading added.
    rise: Rise,
}

/// By how much a counter rose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rise {
    pub(crate) count: u64,
    /// Whether that is all of it, rather than the least.
    pub(crate) exact: bool,
}

/// How a counter ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It stays at this value.
    Stops(u64),
    /// It begins again at 0 after 64 bits; some devices' stop there all the same.
    Wraps,
}

/// Of a 64-bit counter: near its end, from where it may have wrapped to near its beginning.
const NEAR_END: u64 = u64::MAX / 4 * 3;
const NEAR_BEGIN: u64 = u64::MAX / 4;

impl Counter {
    /// Takes a reading. `first` is the first of all.
    fn read(&mut self, value: u64, end: End, first: bool) -> Rise {
        let last = std::mem::replace(&mut self.last, value);
        if first {
            self.total = value;
            return Rise::default();
        }
        let stopped = match end {
            End::Stops(max) => value >= max,
            End::Wraps => value == u64::MAX,
        };
        let rise = match value.checked_sub(last) {
            Some(count) => Rise { count, exact: !stopped },
            None if end == End::Wraps && last > NEAR_END && value < NEAR_BEGIN => {
                Rise { count: value.wrapping_sub(last), exact: true }
            }
            None => Rise { count: value, exact: false },
        };
        self.total = self.total.saturating_add(rise.count);
        rise
    }
}

/// What became of a port's readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Counters that are to be reset, by their bits.
    pub(crate) reset: u32,
    /// Counters found at their highest value.
    pub(crate) stopped: u32,
    /// Counters found below their last value.
    pub(crate) fallen: u32,
    /// PortXmitWait.
    pub(crate) wait: Rise,
    /// PortXmitData.
    pub(crate) xmit: Rise,
    /// PortRcvData.
    pub(crate) rcv: Rise,
}

/// Lists the counters: name, bit in CounterSelect (from 16 on in CounterSelect2), highest value; then those of
/// PortCountersExtended. The four that both have come first in both.
macro_rules! totals {
    (
        data { $( $data:ident = $data_bit:literal, )* }
        basic { $( $basic:ident = $basic_bit:literal, $max:expr; )* }
        extended { $( $extended:ident = $extended_bit:literal, )* }
    ) => {
        /// The counters of a port.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Counters {
            $( $data: Counter, )*
            $( $basic: Counter, )*
            $( $extended: Counter, )*
        }

        impl Counters {
            /// The totals by name.
            pub(crate) fn totals(&self) -> Totals {
                Totals {
                    $( $data: self.$data.total, )*
                    $( $basic: self.$basic.total, )*
                    $( $extended: self.$extended.total, )*
                }
            }

            /// Takes an answer with PortCounters. `data`: whether it is the first that tells of data too, as a device's
            /// does that has no PortCountersExtended.
            pub(crate) fn read_basic(&mut self, mad: &[u8; 256], first: bool, data: Option<bool>) -> Reading {
                let mut reading = Reading::default();
                let Some(values) = mad[PERF_DATA].first_chunk() else { return reading };
                $(
                    let value = u64::from(PortCounters::$basic.get(values));
                    reading.note(&mut self.$basic, value, End::Stops($max), first, 1 << $basic_bit);
                )*
                if let Some(first) = data {
                    $(
                        let end = End::Stops(u64::from(u32::MAX));
                        let value = u64::from(PortCounters::$data.get(values));
                        // The same counters as in PortCountersExtended, twelve bits further.
                        reading.note(&mut self.$data, value, end, first, 1 << ($data_bit + 12));
                    )*
                    (reading.xmit, reading.rcv) = (self.port_xmit_data.rise, self.port_rcv_data.rise);
                }
                reading.wait = self.port_xmit_wait.rise;
                reading
            }

            /// Takes an answer with PortCountersExtended.
            pub(crate) fn read_extended(&mut self, mad: &[u8; 256], first: bool) -> Reading {
                let mut reading = Reading::default();
                let Some(values) = mad[PERF_DATA].first_chunk() else { return reading };
                $(
                    let value = PortCountersExtended::$data.get(values);
                    reading.note(&mut self.$data, value, End::Wraps, first, 1 << $data_bit);
                )*
                $(
                    let value = PortCountersExtended::$extended.get(values);
                    reading.note(&mut self.$extended, value, End::Wraps, first, 1 << $extended_bit);
                )*
                (reading.xmit, reading.rcv) = (self.port_xmit_data.rise, self.port_rcv_data.rise);
                reading
            }

            /// These counters of PortCounters have been set to zero.
            pub(crate) fn basic_was_reset(&mut self, bits: u32, with_data: bool) {
                $( if bits & 1 << $basic_bit != 0 { self.$basic.last = 0; } )*
                $( if with_data && bits & 1 << ($data_bit + 12) != 0 { self.$data.last = 0; } )*
            }

            /// These counters of PortCountersExtended have been set to zero.
            pub(crate) fn extended_was_reset(&mut self, bits: u32) {
                $( if bits & 1 << $data_bit != 0 { self.$data.last = 0; } )*
                $( if bits & 1 << $extended_bit != 0 { self.$extended.last = 0; } )*
            }
        }
    };
}

totals! {
    data { port_xmit_data = 0, port_rcv_data = 1, port_xmit_pkts = 2, port_rcv_pkts = 3, }
    basic {
        symbol_error_counter = 0, U16; link_error_recovery_counter = 1, U8; link_downed_counter = 2, U8;
        port_rcv_errors = 3, U16; port_rcv_remote_physical_errors = 4, U16;
        port_rcv_switch_relay_errors = 5, U16; port_xmit_discards = 6, U16;
        port_xmit_constraint_errors = 7, U8; port_rcv_constraint_errors = 8, U8;
        local_link_integrity_errors = 9, 15; excessive_buffer_overrun_errors = 10, 15;
        vl15_dropped = 11, U16; port_xmit_wait = 16, u32::MAX as u64; qp1_dropped = 17, U16;
    }
    extended {
        port_unicast_xmit_pkts = 4, port_unicast_rcv_pkts = 5, port_multicast_xmit_pkts = 6,
        port_multicast_rcv_pkts = 7,
    }
}

const U8: u64 = u8::MAX as u64;
const U16: u64 = u16::MAX as u64;

impl Reading {
    fn note(&mut self, counter: &mut Counter, value: u64, end: End, first: bool, bit: u32) {
        self.fallen += u32::from(!first && value < counter.last && counter.last <= NEAR_END);
        let past = match end {
            End::Stops(max) => {
                self.stopped += u32::from(value >= max);
                value > max / 2
            }
            End::Wraps => {
                self.stopped += u32::from(value == u64::MAX);
                value == u64::MAX
            }
        };
        if past {
            self.reset |= bit;
        }
        counter.rise = counter.read(value, end, first);
    }
}

/// The ticks that each lane waited. Their counters have 16 bits, 0.26 ms of fabric time, so that they are read and
/// reset; a lane that stopped is counted and shows the least that it waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneWaits {
    lanes: [Counter; 16],
}

impl LaneWaits {
    pub(crate) fn totals(&self) -> [u64; 16] {
        self.lanes.map(|lane| lane.total)
    }

    /// By how much a lane's counter rose at the last reading.
    pub(crate) fn rise(&self, lane: u8) -> Rise {
        self.lanes[usize::from(lane & 15)].rise
    }

    /// Takes an answer with PortVLXmitWaitCounters.
    pub(crate) fn read(&mut self, mad: &[u8; 256], first: bool) -> Reading {
        let mut reading = Reading::default();
        let data = PerfMad::data.get(mad);
        let Some(values) = data.first_chunk().map(PortVlXmitWaitCounters::decode) else { return reading };
        for (lane, value) in self.lanes.iter_mut().zip(values.port_vl_xmit_wait) {
            reading.note(lane, u64::from(value), End::Stops(U16), first, 0);
        }
        for (lane, value) in values.port_vl_xmit_wait.into_iter().enumerate() {
            reading.reset |= u32::from(value != 0) << lane;
        }
        reading
    }

    /// These lanes' counters have been set to zero.
    pub(crate) fn were_reset(&mut self, lanes: u16) {
        for (lane, counter) in self.lanes.iter_mut().enumerate() {
            if lanes >> lane & 1 != 0 {
                counter.last = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPS: End = End::Stops(u32::MAX as u64);

    fn run(end: End, values: &[u64]) -> (Counter, Vec<(u64, bool)>) {
        let mut counter = Counter::default();
        let rises = values.iter().enumerate().map(|(at, value)| {
            let rise = counter.read(*value, end, at == 0);
            (rise.count, rise.exact)
        });
        let rises = rises.collect();
        (counter, rises)
    }

    #[test]
    fn totals_begin_with_the_first_reading_and_grow_by_differences() {
        let (counter, rises) = run(STOPS, &[100, 100, 175]);
        assert_eq!(rises[1..], [(0, true), (75, true)]);
        assert_eq!(counter.total, 175);
    }

    #[test]
    fn a_counter_that_was_set_back_counts_from_zero() {
        let (counter, rises) = run(STOPS, &[100, 150, 30, 40]);
        assert_eq!(rises[1..], [(50, true), (30, false), (10, true)]);
        assert_eq!(counter.total, 190);
    }

    #[test]
    fn a_counter_at_its_end_says_the_least() {
        let max = u64::from(u32::MAX);
        let (counter, rises) = run(STOPS, &[max - 10, max, max]);
        assert_eq!(rises[1..], [(10, false), (0, false)]);
        assert_eq!(counter.total, max);
    }

    #[test]
    fn sixty_four_bits_wrap_near_their_end_and_are_reset_elsewhere() {
        let (counter, rises) = run(End::Wraps, &[u64::MAX - 4, 5, 3]);
        assert_eq!(rises[1..], [(10, true), (3, false)]);
        assert_eq!(counter.total, u64::MAX, "a total does not wrap");
        let (_, rises) = run(End::Wraps, &[1 << 40, 7]);
        assert_eq!(rises[1..], [(7, false)]);
    }

    fn answer(values: &PortCounters) -> [u8; 256] {
        let mut mad = [0; 256];
        mad[PERF_DATA][..PortCounters::SIZE].copy_from_slice(&values.encode());
        mad
    }

    #[test]
    fn counters_past_half_of_their_range_are_to_be_reset() {
        let mut counters = Counters::default();
        let half = PortCounters {
            symbol_error_counter: 0x7fff,
            link_downed_counter: 0x80,
            local_link_integrity_errors: 8,
            port_xmit_wait: 1 << 31,
            port_xmit_data: u32::MAX,
            ..PortCounters::default()
        };
        let reading = counters.read_basic(&answer(&half), true, None);
        assert_eq!((reading.reset, reading.stopped), (1 << 2 | 1 << 9 | 1 << 16, 0));
        let with_data = Counters::default().read_basic(&answer(&half), true, Some(true));
        assert_eq!((with_data.reset, with_data.stopped), (reading.reset | 1 << 12, 1));
        counters.basic_was_reset(reading.reset, false);
        let again = PortCounters { symbol_error_counter: 0x8000, port_xmit_wait: 5, ..Default::default() };
        let reading = counters.read_basic(&answer(&again), false, None);
        assert_eq!(reading.wait, Rise { count: 5, exact: true });
        assert_eq!((reading.reset, reading.fallen), (1, 0));
        let totals = counters.totals();
        assert_eq!((totals.port_xmit_wait, totals.link_downed_counter), ((1 << 31) + 5, 0x80));
        assert_eq!((totals.symbol_error_counter, totals.port_xmit_data), (0x8000, 0));
    }

    #[test]
    fn lanes_are_reset_when_they_waited() {
        let mut lanes = LaneWaits::default();
        let mut values = PortVlXmitWaitCounters::default();
        (values.port_vl_xmit_wait[0], values.port_vl_xmit_wait[3]) = (7, u16::MAX);
        let mut mad = [0; 256];
        mad[PERF_DATA][..PortVlXmitWaitCounters::SIZE].copy_from_slice(&values.encode());
        let reading = lanes.read(&mad, true);
        assert_eq!((reading.reset, reading.stopped), (0b1001, 1));
        lanes.were_reset(0b1001);
        lanes.read(&mad, false);
        assert_eq!(lanes.totals()[..4], [14, 0, 0, 131_070]);
    }
}
