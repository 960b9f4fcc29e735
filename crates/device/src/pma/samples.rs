//! Sampling: counters that count from a stated moment for a stated time (IBA 16.1.3.2 to 16.1.3.4, 16.1.4.12).
//!
//! ```text
//!   Done ──Set──▶ Started ──SampleStart──▶ Running ──SampleInterval──▶ Done
//! ```
//!
//! There is one mechanism for the whole device. A Set that finds it busy changes nothing: the answer shows the tag
//! of the sample that is under way. Both times are fabric time, in ticks of 4 ns, which is also the unit of
//! PortXmitWait. A packet that comes at the very moment of the start is counted, one at that of the end is not.

use weft_machine::Time;
use weft_wire::{
    Method, PortNum, PortSamplesControl, PortSamplesResult, PortSamplesResultExtended, SampleSelect,
    SampleStatus, sample_option, status,
};

use super::{Counted, put};
use crate::moment::NEVER;
use crate::port::Port;

/// The counters of one sample.
const COUNTERS: usize = 15;

/// Counters of 32 bits: 16 and 4 times this.
const COUNTER_WIDTH: u8 = 4;

/// Each counter can count the quantities that every agent counts: 1, in three bits each.
const MASK: u8 = 1;
const MASKS_1_TO_9: u32 = 0o111_111_111;
const MASKS_10_TO_14: u16 = 0o11111;

/// The one sampling mechanism of a device.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// As it was last set.
    control: PortSamplesControl,
    phase: Phase,
    /// What the last sample that is done has counted.
    counted: [u64; COUNTERS],
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Done,
    Started {
        start: Time,
        end: Time,
    },
    Running {
        end: Time,
        before: [u64; COUNTERS],
    },
}

impl Sampler {
    fn status(&self) -> SampleStatus {
        match self.phase {
            Phase::Done => SampleStatus::Done,
            Phase::Started { .. } => SampleStatus::Started,
            Phase::Running { .. } => SampleStatus::Running,
        }
    }

    /// When the next step is due; at the end of time when none is.
    #[inline]
    pub(super) fn due(&self) -> Time {
        match self.phase {
            Phase::Done => NEVER,
            Phase::Started { start, .. } => start,
            Phase::Running { end, .. } => end,
        }
    }

    /// The counters of `ports` at this moment.
    fn count(&self, ports: &[Port]) -> [u64; COUNTERS] {
        self.control.counter_select.map(|select| {
            let count = |port: &Port| match select {
                SampleSelect::PortXmitData => port.counters.port_xmit_data,
                SampleSelect::PortRcvData => port.counters.port_rcv_data,
                SampleSelect::PortXmitPkts => port.counters.port_xmit_pkts,
                SampleSelect::PortRcvPkts => port.counters.port_rcv_pkts,
                SampleSelect::PortXmitWait => port.counters.port_xmit_wait,
                _ => 0,
            };
            ports.iter().fold(0, |sum: u64, port| sum.wrapping_add(count(port)))
        })
    }
}

impl Sampler {
    /// Takes the steps of a sample that are due by `now`.
    pub(super) fn step(&mut self, now: Time, counted: &mut Counted<'_>) {
        while self.due() <= now {
            let ports = counted.selected_ports(self.control.port_select).unwrap_or_default();
            counted.settle(ports.clone());
            let counters = self.count(&counted.ports[ports]);
            self.phase = match self.phase {
                Phase::Started { end, .. } => Phase::Running { end, before: counters },
                Phase::Running { before, .. } => {
                    // A counter that was reset meanwhile counts from there on.
                    self.counted =
                        std::array::from_fn(|i| counters[i].checked_sub(before[i]).unwrap_or(counters[i]));
                    Phase::Done
                }
                Phase::Done => break,
            };
        }
    }

    pub(super) fn control(
        &mut self,
        now: Time,
        counted: &mut Counted<'_>,
        method: Method,
        data: &mut [u8],
    ) -> Result<(), u16> {
        let asked = PortSamplesControl::decode(data.first_chunk().ok_or(status::BAD_VALUE)?);
        counted.selected_ports(asked.port_select)?;
        if method == Method::Set && self.status() == SampleStatus::Done {
            if asked.counter_select.iter().any(|&select| select > SampleSelect::PortXmitWait) {
                return Err(status::BAD_VALUE);
            }
            let ticks = |count: u32| Time::from_nanos(counted.data.tick.saturating_mul(u64::from(count)));
            let (start, interval) = (now + ticks(asked.sample_start), ticks(asked.sample_interval));
            self.control = asked;
            self.phase = Phase::Started { start, end: start + interval };
            self.step(now, counted);
        }
        let set = &self.control;
        let never_set = set.port_select == PortNum::ZERO && self.control == Default::default();
        let answer = PortSamplesControl {
            op_code: set.op_code,
            port_select: if never_set { asked.port_select } else { set.port_select },
            counter_width: COUNTER_WIDTH,
            counter_mask0: MASK,
            counter_masks1to9: MASKS_1_TO_9,
            counter_masks10to14: MASKS_10_TO_14,
            sample_status: self.status(),
            option_mask: OPTIONS,
            sample_start: set.sample_start,
            sample_interval: set.sample_interval,
            tag: set.tag,
            counter_select: set.counter_select,
            ..PortSamplesControl::default()
        };
        put(data, &answer.encode());
        Ok(())
    }

    pub(super) fn result(&self, data: &mut [u8]) {
        let answer = PortSamplesResult {
            tag: self.control.tag,
            sample_status: self.status(),
            counter: self.sampled().map(|counter| u32::try_from(counter).unwrap_or(u32::MAX)),
            ..PortSamplesResult::default()
        };
        put(data, &answer.encode());
    }

    pub(super) fn result_extended(&self, data: &mut [u8]) {
        /// Counters of 64 bits.
        const WIDTH: u8 = 2;
        let answer = PortSamplesResultExtended {
            tag: self.control.tag,
            sample_status: self.status(),
            extended_width: WIDTH,
            counter: self.sampled(),
            ..PortSamplesResultExtended::default()
        };
        put(data, &answer.encode());
    }

    /// What was counted, once it is; nothing before.
    fn sampled(&self) -> [u64; COUNTERS] {
        if self.status() == SampleStatus::Done { self.counted } else { [0; COUNTERS] }
    }
}

/// The optional counters that there are.
const OPTIONS: u64 = sample_option::PORT_RCV_ERROR_DETAILS
    | sample_option::PORT_XMIT_DISCARD_DETAILS
    | sample_option::PORT_OP_RCV_COUNTERS
    | sample_option::PORT_FLOW_CTL_COUNTERS
    | sample_option::PORT_VL_OP_PACKETS
    | sample_option::PORT_VL_OP_DATA
    | sample_option::PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS
    | sample_option::PORT_VL_XMIT_WAIT_COUNTERS;
