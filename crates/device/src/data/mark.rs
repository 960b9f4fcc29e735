//! The choice of packets that leave a switch with FECN (IBA A10.2.1).
//!
//! A lane of a port is congested when more bytes wait for it than its threshold says. It is the root of that congestion
//! when there was credit all the time since; then packets are marked. Where credit was missing the congestion comes from
//! further on, and only ports in Victim_Mask mark: those towards hosts, which have no ports to mark at.
//!
//! Marking_Rate is the mean number of packets that go by between two that are marked. How many go by is left to chance, from
//! none to twice as many: packets of several flows take turns, and a fixed number would mark some of the flows alone.

use std::collections::VecDeque;

use weft_machine::{Random, Time};
use weft_wire::{Lid, PortNum, ServiceLevel, SwitchCongestionLog, SwitchCongestionLogEntry, VirtualLane};

use super::DataPath;
use super::buffer::Body;
use super::index::{PerLane, PerPort, PoolIndex};
use crate::Device;
use crate::marking::MarkingSettings;

/// Entries of a switch's log.
const LOG_MAX: usize = 15;

/// The unit of time stamps in nanoseconds of fabric time.
const TIME_UNIT_NS: u64 = 1024;

/// How a switch marks, while it does.
#[derive(Debug)]
pub(super) struct Marking {
    ports: PerPort<PortMarking>,
    /// By port and lane: packets that go by until the next one is marked.
    left: PerLane<u32>,
    random: Random,
    marked: u64,
    /// Since the log was last sent; stays at its highest value.
    unsent: u16,
    port_map: [u8; 32],
    newest: VecDeque<SwitchCongestionLogEntry>,
}

/// How a port marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortMarking {
    /// Congested when more bytes than this wait.
    above: u64,
    /// Whether it marks without credit too.
    victim: bool,
    /// Smaller packets are not marked.
    size_min: u16,
    rate: u16,
}

impl DataPath {
    /// The switch's settings are others. When it begins to mark, `seed` decides what is left to chance.
    pub(crate) fn marking_changed(&mut self, settings: &MarkingSettings, seed: u64) {
        let ports: PerPort<PortMarking> =
            self.each_port().map(|port| self.port_marking(settings, port)).collect();
        if ports.iter().all(|port| port.above == u64::MAX) {
            self.marking = None;
        } else if let Some(marking) = &mut self.marking {
            marking.ports = ports;
            marking.left.fill(0);
        } else {
            self.marking = Some(Box::new(Marking {
                ports,
                left: PerLane::of(0, self.out_lanes.len()),
                random: Random::new(seed),
                marked: 0,
                unsent: 0,
                port_map: [0; 32],
                newest: VecDeque::new(),
            }));
        }
    }

    /// A threshold of 1 is a lane's buffer but a sixteenth, one of 15 a sixteenth of it.
    fn port_marking(&self, settings: &MarkingSettings, port: PortNum) -> PortMarking {
        let switch = &settings.switch;
        let number = usize::from(port.0);
        let own = settings.ports.get(number).filter(|own| own.valid && !own.credit_starvation);
        let (threshold, packet_size, rate) = match own {
            Some(own) => (own.threshold, own.packet_size, own.marking_rate),
            None => (switch.threshold, switch.packet_size, switch.marking_rate),
        };
        let sixteenth = u64::from(self.buffer) * 64 / 16;
        let above = if threshold == 0 { u64::MAX } else { sixteenth * u64::from(16 - threshold.min(15)) };
        let victim = switch.victim_mask[31 - number / 8 % 32] >> (number % 8) & 1 != 0;
        PortMarking { above, victim, size_min: u16::from(packet_size) * 64, rate }
    }

    /// A packet begins to leave: here it is marked. `waiting` still counts the packet itself.
    #[inline]
    pub(super) fn mark(&mut self, at: Time, output: PortNum, lane: VirtualLane, place: PoolIndex) {
        if self.marking.is_some() {
            self.mark_if_congested(at, output, lane, place);
        }
    }

    fn mark_if_congested(&mut self, at: Time, output: PortNum, lane: VirtualLane, place: PoolIndex) {
        let index = self.index(output, lane);
        let time_stamp = self.time_stamp(at);
        let Some(marking) = &mut self.marking else { return };
        let port = marking.ports[output];
        let out_lane = &self.out_lanes[index];
        let held = self.pool.get_mut(place);
        // Of a small buffer a sixteenth is less than a packet; one that no one waits behind is no congestion.
        if u64::from(out_lane.waiting) <= port.above.max(held.size().into()) {
            self.outs[output].starved.remove(lane);
            return;
        }
        let starved = self.outs[output].starved.contains(lane);
        if starved && !port.victim || held.size() < port.size_min {
            return;
        }
        let Body::Data(packet) = &mut held.body else { return };
        if marking.left[index] > 0 {
            marking.left[index] -= 1;
            return;
        }
        marking.left[index] = marking.random.below(2 * u32::from(port.rate) + 1);
        packet.fecn = true;
        marking.note(output, packet.slid, packet.dlid, packet.service_level, time_stamp);
    }

    /// The time in the unit of logs, modulo 2^32.
    pub(crate) fn time_stamp(&self, at: Time) -> u32 {
        (at.as_nanos() / (TIME_UNIT_NS * u64::from(self.dilation))) as u32
    }

    /// What a switch has marked lately, as it is sent: the packets are counted again from now on.
    pub(crate) fn congestion_log(&mut self, current_time_stamp: u32) -> SwitchCongestionLog {
        let mut log = SwitchCongestionLog { log_type: 1, current_time_stamp, ..Default::default() };
        if let Some(marking) = &mut self.marking {
            log.log_events_counter = std::mem::take(&mut marking.unsent);
            log.port_map = marking.port_map;
            for (bytes, entry) in log.entries.chunks_mut(12).zip(marking.newest.iter().rev()) {
                bytes.copy_from_slice(&entry.encode());
            }
        }
        log
    }
}

impl Device {
    /// Packets that this switch has marked with FECN since marking was enabled.
    pub fn packets_marked(&self) -> u64 {
        self.data.marking.as_ref().map_or(0, |marking| marking.marked)
    }
}

impl Marking {
    fn note(&mut self, port: PortNum, slid: Lid, dlid: Lid, service_level: ServiceLevel, time_stamp: u32) {
        self.marked += 1;
        self.unsent = self.unsent.saturating_add(1);
        self.port_map[usize::from(31 - port.0 / 8)] |= 1 << (port.0 % 8);
        if self.newest.len() == LOG_MAX {
            self.newest.pop_front();
        }
        let entry = SwitchCongestionLogEntry { slid, dlid, service_level, time_stamp, ..Default::default() };
        self.newest.push_back(entry);
    }
}
