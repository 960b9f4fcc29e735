//! Packets that a device holds, and the queues that they wait in.
//!
//! All packets of a device lie in one pool, whose places are used again, so that a packet costs no allocation. A queue is
//! a chain through the pool: one for each input port and lane, and in an HCA one more for each port and lane, with what
//! the host sends. Where a crossbar has queues for each output, a buffer has as many as it holds packets for: they are made
//! and given back as packets come and go (`virtual_queues`).

use weft_machine::Time;
use weft_wire::{DataPacket, FlowControl, Packet, VirtualLane};

use crate::counters::Uncounted;
use crate::size::CREDIT_MAX;

/// No place in the pool, and no queue.
pub(crate) const NIL: u32 = u32::MAX;
pub(crate) const NO_QUEUE: u16 = u16::MAX;

/// Counts of blocks are kept modulo this (IBA 7.9.4.2).
const MODULUS: u16 = 4096;

/// `a - b` of counts modulo 4096.
#[inline]
pub(crate) fn difference(a: u16, b: u16) -> u16 {
    a.wrapping_sub(b) % MODULUS
}

/// `a + b` of counts modulo 4096.
#[inline]
pub(crate) fn sum(a: u16, b: u16) -> u16 {
    a.wrapping_add(b) % MODULUS
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
    pub(crate) fn lane(&self) -> u8 {
        match self {
            Self::Data(packet) => packet.vl.0,
            Self::Whole(packet) => packet.vl().0,
            Self::None => 0,
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
    pub(super) next: u32,
    /// The queue that counts its blocks, or none any more.
    pub(crate) queue: u16,
    /// The port that it leaves by.
    pub(crate) output: u8,
    pub(crate) blocks: u8,
}

const _: () = assert!(size_of::<Held>() == 64);

impl Held {
    /// A packet that leaves by the port `output`, on the lane that it is on, and whose blocks `queue` counts.
    #[inline]
    pub(crate) fn new(body: Body, queue: u16, output: u8, blocks: u8) -> Self {
        Self { body, next: NIL, queue, output, blocks }
    }

    #[inline]
    pub(crate) fn lane(&self) -> u8 {
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
    free: u32,
    /// When the packet in each place came in, while somebody wants to know.
    arrived: Option<Vec<Time>>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: NIL, arrived: None }
    }

    /// Whether somebody wants to know when packets came in. Those that are here already count as if they came now.
    pub(super) fn keep_arrivals(&mut self, keep: bool, now: Time) {
        let known = self.arrived.take().filter(|_| keep);
        self.arrived = known.or_else(|| keep.then(|| vec![now; self.places.len()]));
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, held: Held, arrived: Time) -> u32 {
        let at = self.free;
        if let Some(place) = self.places.get_mut(at as usize) {
            self.free = place.next;
            *place = held;
            if let Some(all) = &mut self.arrived {
                all[at as usize] = arrived;
            }
            return at;
        }
        self.places.push(held);
        if let Some(all) = &mut self.arrived {
            all.push(arrived);
        }
        (self.places.len() - 1) as u32
    }

    /// Takes the packet out; what else is known of it can be read until the place is used again.
    #[inline]
    pub(crate) fn take(&mut self, at: u32) -> Body {
        let place = &mut self.places[at as usize];
        place.next = self.free;
        self.free = at;
        std::mem::take(&mut place.body)
    }

    /// When the packet there came in, while that is kept.
    #[inline]
    pub(crate) fn arrived(&self, at: u32) -> Time {
        self.arrived.as_ref().map_or(Time::ZERO, |all| all[at as usize])
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> &Held {
        &self.places[at as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Held {
        &mut self.places[at as usize]
    }
}

/// One queue, as much of the link's flow control as belongs to the receiver of it, and what has come in for it and is not
/// in the port's counters yet: all that a packet needs of it, in one line of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Queue {
    pub(crate) head: u32,
    pub(super) tail: u32,
    pub(crate) len: u32,
    /// The queue behind this one among those that want the same output and lane; of a free one, the next free one.
    pub(crate) next: u32,
    /// Blocks that are taken, those of packets on their way out included.
    pub(crate) occupied: u16,
    /// Blocks received since the link began (ABR).
    pub(crate) received: u16,
    /// The limit that the peer was told last (FCCL).
    pub(crate) told: u16,
    /// In a queue for one output: the buffer that its packets lie in.
    pub(crate) home: u16,
    /// Since when the head is the head.
    pub(crate) head_since: Time,
    /// Blocks of the head, once it stands in line.
    pub(crate) head_blocks: u8,
    /// The opcode of what has not been counted yet.
    pub(crate) op_code: u8,
    /// The port that its packets came in by; 0 for the device's own.
    pub(crate) input: u8,
    /// In a queue for one output: which one.
    pub(crate) output: u8,
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
            head: NIL,
            tail: NIL,
            len: 0,
            next: NIL,
            occupied: 0,
            received: 0,
            told: 0,
            home: NO_QUEUE,
            head_since: Time::ZERO,
            head_blocks: 0,
            op_code: 0,
            input: 0,
            output: 0,
            low: 0,
            uncounted: Uncounted::default(),
            flow_sent: 0,
        }
    }

    /// The queue of what comes in by a port; an adapter's inputs have no limits and no number.
    pub(crate) fn of(input: u8, is_switch: bool) -> Self {
        Self { input: if is_switch { input } else { 0 }, ..Self::new() }
    }

    /// Puts a packet at the end; whether it is the head now.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut Pool, at: u32) -> bool {
        self.len += 1;
        if self.head == NIL {
            (self.head, self.tail) = (at, at);
            return true;
        }
        pool.get_mut(self.tail).next = at;
        self.tail = at;
        false
    }

    /// Takes the head off; it stays in the pool.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &Pool) -> Option<u32> {
        let at = self.head;
        if at == NIL {
            return None;
        }
        self.head = if at == self.tail { NIL } else { pool.get(at).next };
        self.len -= 1;
        Some(at)
    }

    /// The places of the packets in it.
    pub(crate) fn places<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = u32> + use<'a> {
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
        let left = difference(self.told, self.received);
        if left > CREDIT_MAX { 0 } else { left }
    }

    /// What the peer is told of a buffer of `size` blocks: no more than is free, and no more than the count can say.
    pub(crate) fn tell(&mut self, size: u16, sent: u16, op: u8, lane: u8) -> FlowControl {
        let free = size.saturating_sub(self.occupied).min(CREDIT_MAX);
        self.told = sum(self.received, free);
        self.flow_sent += 1;
        FlowControl { op, fctbs: sent, vl: VirtualLane(lane), fccl: self.told }
    }
}
