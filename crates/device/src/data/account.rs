//! The account of a device's data lanes: what came in is what went out, is held, or was dropped.

use std::ops::{Index, IndexMut};

use serde::Serialize;
use weft_wire::{PortNum, VirtualLane};

use crate::{Device, DropReason};

/// Packets on data lanes since the device was switched on, and what its buffers hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DataAccount {
    /// By lane. The last one, 15, has what was given to the device for a service level without a lane.
    pub lanes: Vec<LaneAccount>,
    /// By port and lane, every lane that has a buffer.
    pub buffers: Vec<BufferAccount>,
}

/// Packets on one data lane, counted in one line of the cache. A packet that a switch moves to another lane is counted on
/// the one that it is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[repr(C, align(64))]
pub struct LaneAccount {
    /// Came in over a cable.
    pub received: u64,
    /// Came from the host, from an attached program or from the device itself.
    pub injected: u64,
    /// Came from another lane of this device.
    pub moved_in: u64,
    /// Went to another lane of this device.
    pub moved_out: u64,
    /// Went out into a cable.
    pub transmitted: u64,
    /// Given to the host.
    pub to_host: u64,
    /// Given to the device's own agents and to attached programs, whatever these then did with it.
    pub to_own: u64,
    /// Held now.
    pub held: u64,
    /// Dropped, by the place of the reason in [`DropReason::ALL`]; empty while there was none.
    pub dropped: Vec<u64>,
}

/// One lane of one port: its buffer as a receiver, and its credit as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BufferAccount {
    /// Which port.
    pub port: PortNum,
    /// Which lane.
    pub lane: VirtualLane,
    /// Size of the buffer, in blocks of 64 bytes.
    pub size: u16,
    /// Blocks in use.
    pub occupied: u16,
    /// Packets that wait in it.
    pub packets: u32,
    /// Blocks that the peer may still send.
    pub promised: u16,
    /// Blocks that may still be sent to the peer.
    pub credit: u16,
    /// Blocks that have been sent to it since the link began, modulo 4096.
    pub sent: u16,
    /// Bytes that wait, in any buffer of the device, to leave by this port and lane.
    pub waiting_bytes: u64,
    /// Packets of the host and of this device that wait to leave by this port and lane.
    pub own_packets: u32,
}

/// The accounts of all lanes.
#[derive(Debug, Default)]
pub(super) struct LaneAccounts(Box<[LaneAccount; 16]>);

impl Index<VirtualLane> for LaneAccounts {
    type Output = LaneAccount;

    #[inline]
    fn index(&self, lane: VirtualLane) -> &LaneAccount {
        &self.0[usize::from(lane.0 & 0xf)]
    }
}

impl IndexMut<VirtualLane> for LaneAccounts {
    #[inline]
    fn index_mut(&mut self, lane: VirtualLane) -> &mut LaneAccount {
        &mut self.0[usize::from(lane.0 & 0xf)]
    }
}

impl LaneAccount {
    /// How many were dropped, for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// How many were dropped for `reason`.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Whether what came in is what went out, is held, or was dropped.
    pub fn is_balanced(&self) -> bool {
        let gone = self.moved_out + self.transmitted + self.to_host + self.to_own + self.dropped_total();
        self.received + self.injected + self.moved_in == gone + self.held
    }

    fn add(&mut self, lane: &Self) {
        self.received += lane.received;
        self.injected += lane.injected;
        self.moved_in += lane.moved_in;
        self.moved_out += lane.moved_out;
        self.transmitted += lane.transmitted;
        self.to_host += lane.to_host;
        self.to_own += lane.to_own;
        self.held += lane.held;
        self.dropped.resize(self.dropped.len().max(lane.dropped.len()), 0);
        self.dropped.iter_mut().zip(&lane.dropped).for_each(|(sum, dropped)| *sum += dropped);
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.dropped.resize(DropReason::ALL.len(), 0);
        self.dropped[reason as usize] += 1;
    }
}

impl DataAccount {
    /// Whether every lane is balanced, no buffer is over its size, and no more is promised than is free.
    pub fn is_sound(&self) -> bool {
        let fits = |b: &BufferAccount| b.occupied + b.promised <= b.size;
        self.lanes.iter().all(LaneAccount::is_balanced) && self.buffers.iter().all(fits)
    }

    /// All lanes together.
    pub fn total(&self) -> LaneAccount {
        self.lanes.iter().fold(LaneAccount::default(), |mut sum, lane| {
            sum.add(lane);
            sum
        })
    }

    /// Takes over the lanes of a device that was switched off: what it held went with its link.
    pub fn bury(&mut self, gone: &Self) {
        self.lanes.resize(self.lanes.len().max(gone.lanes.len()), LaneAccount::default());
        for (sum, lane) in self.lanes.iter_mut().zip(&gone.lanes) {
            sum.add(&LaneAccount { held: 0, ..lane.clone() });
            (0..lane.held).for_each(|_| sum.drop(DropReason::LinkDown));
        }
    }
}

impl Device {
    /// The account of the data lanes. What is held is found by looking, not by counting.
    pub fn data_account(&self) -> DataAccount {
        let data = &self.data;
        let mut lanes = data.account.0.to_vec();
        let mut counted = vec![0; lanes.len()];
        for held in data.held() {
            counted[usize::from(held.lane().0 & 0xf)] += 1;
        }
        for (lane, counted) in lanes.iter_mut().zip(counted) {
            debug_assert_eq!(lane.held, counted, "packets come and go one by one");
            lane.held = counted;
        }
        let ports = data.each_port().skip(usize::from(!self.is_switch()));
        let buffers =
            ports.flat_map(|port| data.each_lane().map(move |lane| data.buffer_account(port, lane)));
        DataAccount { lanes, buffers: buffers.collect() }
    }

    /// One lane of one port, as [`Device::data_account`] has it; `None` when there is none.
    pub fn buffer_account(&self, port: PortNum, lane: VirtualLane) -> Option<BufferAccount> {
        let there = self.has_port(port) && lane.0 < self.data.lanes;
        there.then(|| self.data.buffer_account(port, lane))
    }
}

impl super::DataPath {
    fn buffer_account(&self, port: PortNum, lane: VirtualLane) -> BufferAccount {
        let at = self.index(port, lane);
        let (queue, out) = (&self.queues[at], &self.out_lanes[at]);
        let host = self.host.then(|| &self.queues[self.own_queue(port, lane)]);
        let is_own = port == PortNum::ZERO;
        let own = if is_own { Some(queue) } else { host };
        BufferAccount {
            port,
            lane,
            size: if is_own { 0 } else { self.buffer },
            occupied: queue.occupied,
            packets: if is_own { 0 } else { self.queues_of(at).map(|at| self.queues[at].len).sum() },
            promised: queue.told.since(queue.received),
            credit: out.credit(),
            sent: out.really_sent().get(),
            waiting_bytes: out.waiting.into(),
            own_packets: own.map_or(0, |queue| queue.len),
        }
    }
}
