//! Packets that a device holds, and the queues that they wait in.
//!
//! All packets of a device lie in one pool, whose places are used again, so that a packet costs no allocation. A queue is
//! a chain through the pool: one for each input port and lane, and in an HCA one more for each port and lane, with what
//! the host sends. Where a crossbar has queues for each output, a buffer has as many as it holds packets for: they are made
//! and given back as packets come and go (`virtual_queues`).

use weft_machine::Time;
use weft_wire::{DataPacket, FlowControl, Packet, PortNum, VirtualLane};

use super::index::{LaneIndex, PoolIndex, QueueIndex};
use crate::counters::Uncounted;
use crate::size::CREDIT_MAX;

/// Counts of blocks are kept modulo this (IBA 7.9.4.2).
const MODULUS: u16 = 4096;

/// Blocks since a link began, modulo 4096.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCount(u16);

impl BlockCount {
    /// What a flow control packet says.
    #[inline]
    pub(crate) fn new(count: u16) -> Self {
        Self(count % MODULUS)
    }

    #[inline]
    pub(crate) fn get(self) -> u16 {
        self.0
    }

    /// Blocks from an earlier count to this one.
    #[inline]
    pub(crate) fn since(self, earlier: Self) -> u16 {
        self.0.wrapping_sub(earlier.0) % MODULUS
    }

    /// The count this number of blocks later.
    #[inline]
    pub(crate) fn plus(self, blocks: u16) -> Self {
        Self(self.0.wrapping_add(blocks) % MODULUS)
    }

    /// The count this number of blocks earlier.
    #[inline]
    pub(crate) fn minus(self, blocks: u16) -> Self {
        Self(self.0.wrapping_sub(blocks) % MODULUS)
    }
}

/// A packet on a data lane.
#[derive(Clone, Debug, Default)]
pub(crate) enum Body {
    /// None: the place is free.
    #[default]
    None,
    /// One whose body travels as its length.
    Data(DataPacket),
    /// One with all its bytes.
    Whole(Packet),
}

impl Body {
    /// Bytes from LRH to VCRC.
    #[inline]
    pub(crate) fn size(&self) -> u16 {
        match self {
            Self::Data(packet) => packet.size() as u16,
            Self::Whole(packet) => packet.bytes().len() as u16,
            Self::None => 0,
        }
    }

    /// The lane that it is on.
    #[inline]
    pub(crate) fn lane(&self) -> VirtualLane {
        match self {
            Self::Data(packet) => packet.vl,
            Self::Whole(packet) => packet.vl(),
            Self::None => VirtualLane::default(),
        }
    }
}

/// A packet that is held, or a place for one: a line of the processor's cache, of which a fabric has far more than the
/// cache has.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Held {
    /// The packet, which has the lane that it leaves by.
    pub(crate) body: Body,
    /// The one behind it.
    pub(super) next: PoolIndex,
    /// The buffer that its blocks lie in; none for the device's own, and when its link is gone.
    pub(crate) buffer: LaneIndex,
    /// The port that it leaves by.
    pub(crate) output: PortNum,
    pub(crate) blocks: u8,
}

const _: () = assert!(size_of::<Held>() == 64);

impl Held {
    /// A packet that leaves by the port `output`, on the lane that it is on, and whose blocks lie in `buffer`.
    #[inline]
    pub(crate) fn new(body: Body, buffer: LaneIndex, output: PortNum, blocks: u8) -> Self {
        Self { body, next: PoolIndex::NONE, buffer, output, blocks }
    }

    #[inline]
    pub(crate) fn lane(&self) -> VirtualLane {
        self.body.lane()
    }

    #[inline]
    pub(crate) fn size(&self) -> u16 {
        self.body.size()
    }
}

/// Places for packets.
#[derive(Debug)]
pub(crate) struct Pool {
    places: Vec<Held>,
    /// The first free place.
    free: PoolIndex,
    /// When the packet in each place came in, while somebody wants to know.
    arrived: Option<Vec<Time>>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: PoolIndex::NONE, arrived: None }
    }

    /// Whether somebody wants to know when packets came in. Those that are here already count as if they came now.
    pub(super) fn keep_arrivals(&mut self, keep: bool, now: Time) {
        let known = self.arrived.take().filter(|_| keep);
        self.arrived = known.or_else(|| keep.then(|| vec![now; self.places.len()]));
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, held: Held, arrived: Time) -> PoolIndex {
        let at = self.free;
        if let Some(place) = self.places.get_mut(at.position()) {
            self.free = place.next;
            *place = held;
            if let Some(all) = &mut self.arrived {
                all[at.position()] = arrived;
            }
            return at;
        }
        self.places.push(held);
        if let Some(all) = &mut self.arrived {
            all.push(arrived);
        }
        PoolIndex::new(self.places.len() - 1)
    }

    /// Takes the packet out; what else is known of it can be read until the place is used again.
    #[inline]
    pub(crate) fn take(&mut self, at: PoolIndex) -> Body {
        let place = &mut self.places[at.position()];
        place.next = self.free;
        self.free = at;
        std::mem::take(&mut place.body)
    }

    /// When the packet there came in, while that is kept.
    #[inline]
    pub(crate) fn arrived(&self, at: PoolIndex) -> Time {
        self.arrived.as_ref().map_or(Time::ZERO, |all| all[at.position()])
    }

    #[inline]
    pub(crate) fn get(&self, at: PoolIndex) -> &Held {
        &self.places[at.position()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: PoolIndex) -> &mut Held {
        &mut self.places[at.position()]
    }
}

/// One queue, as much of the link's flow control as belongs to the receiver of it, and what has come in for it and is not
/// in the port's counters yet: all that a packet needs of it, in one line of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Queue {
    pub(crate) head: PoolIndex,
    pub(super) tail: PoolIndex,
    pub(crate) len: u32,
    /// The queue behind this one among those that want the same output and lane; of a free one, the next free one.
    pub(crate) next: QueueIndex,
    /// Blocks that are taken, those of packets on their way out included.
    pub(crate) occupied: u16,
    /// Blocks received since the link began (ABR).
    pub(crate) received: BlockCount,
    /// The limit that was last sent to the peer (FCCL).
    pub(crate) told: BlockCount,
    /// In a queue for one output: the buffer that its packets lie in.
    pub(crate) home: LaneIndex,
    /// Since when the head is the head.
    pub(crate) head_since: Time,
    /// Blocks of the head, once it stands in line.
    pub(crate) head_blocks: u8,
    /// The opcode of what has not been counted yet.
    pub(crate) op_code: u8,
    /// The port that its packets came in by; 0 for the device's own.
    pub(crate) input: PortNum,
    /// In a queue for one output: which one.
    pub(crate) output: PortNum,
    /// A peer that may send fewer blocks than this hears of all room; 0 while there is no peer.
    pub(crate) low: u16,
    pub(crate) uncounted: Uncounted,
    /// Flow control packets sent that have not been counted yet.
    pub(crate) flow_sent: u64,
}

const _: () = assert!(size_of::<Queue>() == 64);

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            head: PoolIndex::NONE,
            tail: PoolIndex::NONE,
            len: 0,
            next: QueueIndex::NONE,
            occupied: 0,
            received: BlockCount::default(),
            told: BlockCount::default(),
            home: LaneIndex::NONE,
            head_since: Time::ZERO,
            head_blocks: 0,
            op_code: 0,
            input: PortNum::ZERO,
            output: PortNum::ZERO,
            low: 0,
            uncounted: Uncounted::default(),
            flow_sent: 0,
        }
    }

    /// The queue of what comes in by a port; an adapter's inputs have no limits and no number.
    pub(crate) fn of(input: PortNum, is_switch: bool) -> Self {
        Self { input: if is_switch { input } else { PortNum::ZERO }, ..Self::new() }
    }

    /// Puts a packet at the end; whether it is the head now.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut Pool, at: PoolIndex) -> bool {
        self.len += 1;
        if self.head == PoolIndex::NONE {
            (self.head, self.tail) = (at, at);
            return true;
        }
        pool.get_mut(self.tail).next = at;
        self.tail = at;
        false
    }

    /// Takes the head off; it stays in the pool.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &Pool) -> Option<PoolIndex> {
        let at = self.head;
        if at == PoolIndex::NONE {
            return None;
        }
        self.head = if at == self.tail { PoolIndex::NONE } else { pool.get(at).next };
        self.len -= 1;
        Some(at)
    }

    /// The places of the packets in it.
    pub(crate) fn places<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = PoolIndex> + use<'a> {
        let (mut next, mut left) = (self.head, self.len);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let at = next;
            next = pool.get(at).next;
            Some(at)
        })
    }

    /// How many blocks the peer may still send: none when it says that it has sent more than it might.
    #[inline]
    pub(crate) fn remaining(&self) -> u16 {
        let left = self.told.since(self.received);
        if left > CREDIT_MAX { 0 } else { left }
    }

    /// The limit for the peer of a buffer of `size` blocks: what is free, as far as FCCL can say.
    pub(crate) fn tell(&mut self, size: u16, sent: BlockCount, op: u8, lane: VirtualLane) -> FlowControl {
        let free = size.saturating_sub(self.occupied).min(CREDIT_MAX);
        self.told = self.received.plus(free);
        self.flow_sent += 1;
        FlowControl { op, fctbs: sent.get(), vl: lane, fccl: self.told.get() }
    }
}
