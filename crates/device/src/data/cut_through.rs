//! Virtual cut-through (Kermani and Kleinrock, 1979): a switch begins to send a packet while its tail is still coming in.
//!
//! ```text
//!  cable ─▶ first bit: checks, credit, route ─▶ Coming ─▶ joins its queue ─▶ as with store and forward
//!                                                  └─ header in, no underrun, switch latency
//! ```
//!
//! * A packet comes out of a device ([`Output::Transmit`](crate::Output::Transmit)) when its *first* bit leaves, and
//!   so comes in at the next one when its first bit arrives. Both ends know the link's rate, so the receiver knows when
//!   the header and the tail are in.
//! * A packet joins its queue when a switch could begin to send it: its header is in, and it can be sent without a gap, so
//!   towards a faster link the rest comes in before it must leave. The switch's latency comes on top.
//! * A sender takes the credit of the whole packet before it begins, so a packet that is blocked fits into one buffer. That
//!   makes it *virtual* cut-through and not wormhole routing.
//! * An adapter gives a packet to its host when the tail is in, and so does a switch to its own agents.
//! * What is not modelled: a packet whose link breaks between its first bit and its tail is forwarded as if whole.

use weft_machine::Time;
use weft_wire::{DataRate, PortNum, VirtualLane};

use super::DataPath;
use super::buffer::{Body, Held};
use super::crossbar::Speed;
use super::index::{PerPort, PoolIndex};
use crate::Device;
use crate::moment::NEVER;

/// What a switch must have of a packet to send it on: LRH and BTH.
const HEADER_BYTES: u16 = 20;

/// What is coming in, by port.
#[derive(Debug)]
pub(super) struct CutThrough {
    ports: PerPort<Coming>,
    /// From the header's arrival to the departure of the first bit, in nanoseconds of machine time.
    latency: Time,
    /// Where the ports' deadlines begin.
    deadlines: usize,
}

/// Packets that have begun to come in at a port and are in no queue yet, in a chain through the pool.
#[derive(Clone, Debug)]
struct Coming {
    first: PoolIndex,
    last: PoolIndex,
    /// Of the port's link.
    speed: Speed,
}

impl CutThrough {
    pub(super) fn new(ports: usize, latency: Time, deadlines: usize) -> Self {
        let nothing = Coming { first: PoolIndex::NONE, last: PoolIndex::NONE, speed: Speed::default() };
        Self { ports: PerPort::of(nothing, ports), latency, deadlines }
    }

    /// The data rate of a port's link is known.
    pub(super) fn link_up(&mut self, port: PortNum, rate: DataRate, dilation: u32) {
        self.ports[port].speed = Speed::new(rate, 100, dilation);
    }

    /// From the first bit of a packet at `input` until a switch may begin to send it by `output`.
    fn until_sendable(&self, input: PortNum, output: PortNum, size: u16) -> Time {
        let (input, output) = (self.ports[input].speed, self.ports[output].speed);
        let header = input.time(size.min(HEADER_BYTES));
        header.max(input.time(size).saturating_sub(output.time(size))) + self.latency
    }
}

impl DataPath {
    /// A packet's first bit has come in by `port`; it leaves by `held.output`, or is for this device.
    pub(super) fn comes_in(&mut self, at: Time, port: PortNum, held: Held) {
        let Some(cut) = &mut self.cut_through else { return };
        let size = held.size();
        let stays = self.host || held.output == PortNum::ZERO;
        let wait = if stays {
            cut.ports[port].speed.time(size)
        } else {
            cut.until_sendable(port, held.output, size)
        };
        self.account[held.lane()].held += 1;
        let coming = &mut cut.ports[port];
        let before = coming.last;
        // Packets on a cable follow each other, unless one of them was delayed.
        let joins = if coming.first == PoolIndex::NONE {
            at + wait
        } else {
            self.pool.arrived(before).max(at + wait)
        };
        let place = self.pool.put(held, joins);
        coming.last = place;
        if coming.first == PoolIndex::NONE {
            coming.first = place;
            self.deadlines.set(cut.deadlines + usize::from(port.0), joins);
        } else {
            self.pool.get_mut(before).next = place;
        }
    }

    /// Takes the first packet that is coming in at a port.
    pub(super) fn take_coming(&mut self, port: PortNum) -> Option<PoolIndex> {
        let cut = self.cut_through.as_mut()?;
        let coming = &mut cut.ports[port];
        let place = coming.first;
        if place == PoolIndex::NONE {
            return None;
        }
        coming.first = if place == coming.last { PoolIndex::NONE } else { self.pool.get(place).next };
        let next = if coming.first == PoolIndex::NONE { NEVER } else { self.pool.arrived(coming.first) };
        self.pool.get_mut(place).next = PoolIndex::NONE;
        self.deadlines.set(cut.deadlines + usize::from(port.0), next);
        Some(place)
    }

    /// The port whose deadline this is, if it is that of a packet that is coming in.
    pub(super) fn coming_at(&self, deadline: usize) -> Option<PortNum> {
        let cut = self.cut_through.as_ref()?;
        deadline.checked_sub(cut.deadlines).map(|port| PortNum(port as u8))
    }

    /// All packets that are coming in.
    pub(super) fn coming(&self) -> impl Iterator<Item = PoolIndex> {
        let ports = self.cut_through.iter().flat_map(|cut| cut.ports.iter());
        ports.flat_map(move |coming| {
            let mut next = coming.first;
            std::iter::from_fn(move || {
                let at = (next != PoolIndex::NONE).then_some(next)?;
                next = if at == coming.last { PoolIndex::NONE } else { self.pool.get(at).next };
                Some(at)
            })
        })
    }
}

impl Device {
    /// A packet that has been coming in joins its queue, or is there.
    pub(super) fn has_come(&mut self, at: Time, port: PortNum) {
        let Some(place) = self.data.take_coming(port) else { return };
        let (buffer, lane, output, size, blocks) = {
            let held = self.data.pool.get(place);
            (held.buffer, held.lane(), held.output, held.size(), held.blocks)
        };
        if self.data.host && self.data.is_limited(port) {
            return self.wait_for_host(at, port, buffer, place);
        }
        if self.data.bus.is_some() && output != PortNum::ZERO {
            return self.over_bus(at, port, place);
        }
        if !self.data.host && output != PortNum::ZERO {
            return self.join(at, buffer.into(), place, output, size, lane);
        }
        let body = self.data.pool.take(place);
        self.data.account[lane].held -= 1;
        self.give(at, port, lane, body);
        self.release(buffer, u16::from(blocks));
    }

    /// The first bit of a packet leaves, and the peer's blocks are taken. The packet stays until its tail has left.
    pub(super) fn announce(&mut self, at: Time, output: PortNum, lane: VirtualLane, place: PoolIndex) {
        let held = self.data.pool.get(place);
        let (blocks, body) = (held.blocks, held.body.clone());
        self.put_on_cable(at, output, lane, blocks, body);
    }

    /// The tail of a packet that was announced has left: its blocks are free.
    pub(super) fn tail_has_left(&mut self, output: PortNum, place: PoolIndex) {
        let held = self.data.pool.get(place);
        let (buffer, blocks) = (held.buffer, held.blocks);
        let body = self.data.pool.take(place);
        if let (true, Body::Data(packet)) = (self.data.host, body) {
            self.has_injected(output, packet.service_level);
        }
        self.release(buffer, u16::from(blocks));
    }
}
