//! The bus of a host behind a vSwitch: its functions share it, in each direction.
//!
//! ```text
//!  function ─▶ buffer ─▶ Direction::ToAdapter ─┬─▶ crossbar ─▶ uplink
//!                                             └─▶ Direction::ToHost ─▶ crossbar ─▶ function
//!  uplink ─▶ buffer ─────────────────────────────▶ Direction::ToHost ─▶ crossbar ─▶ function
//! ```
//!
//! * A packet crosses the bus before it joins its queue of the crossbar, and keeps its blocks of the buffer meanwhile. So a
//!   function whose host's bus is busy has to wait for credit, and nothing behind the bus can stop it.
//! * The bus serves *flows*, not functions: an adapter takes its queue pairs in turn, whatever function has them. Of the first
//!   packets of all ports it takes the one whose flow has had least, by start-time fair queueing (Goyal, Vin and Cheng, 1996).
//! * Lanes are of the fabric, and the bus has none.

use std::collections::{BTreeMap, VecDeque};

use weft_machine::Time;
use weft_wire::{DataRate, Lid, PortNum, QpNum};

use super::DataPath;
use super::buffer::{Body, Held};
use super::index::PoolIndex;
use super::pace::Pace;
use crate::{DataPathOptions, Device};

/// Flows of which a direction remembers how much they have had.
const FLOWS_MAX: usize = 4096;

/// One of the two directions of a bus, which do not slow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host's functions into the adapter.
    ToAdapter,
    /// From the adapter to the host's functions.
    ToHost,
}

impl Direction {
    const BOTH: [Self; 2] = [Self::ToAdapter, Self::ToHost];
}

/// Packets with these in common take turns with all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    slid: Lid,
    dlid: Lid,
    dest_qp: QpNum,
}

/// The bus of a vSwitch's host.
#[derive(Debug)]
pub(super) struct Bus {
    uplink: PortNum,
    lines: [Line; 2],
    /// Where the deadlines of the two directions begin.
    deadlines: usize,
}

/// One direction: what waits for it, and what crosses.
#[derive(Debug)]
struct Line {
    pace: Pace,
    /// By port of arrival.
    waiting: Vec<VecDeque<PoolIndex>>,
    busy: Option<Crossing>,
    /// The port whose packet crosses, or crossed last.
    last: PortNum,
    /// Bytes that each flow has had at the end of its last packet, in virtual time.
    finish: BTreeMap<Flow, u64>,
    /// The start of the packet that crosses, or crossed last.
    virtual_time: u64,
}

/// The packet that crosses, and the port that it came by.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    place: PoolIndex,
    input: PortNum,
}

impl Bus {
    /// Deadlines that it has.
    pub(super) const DEADLINES: usize = Direction::BOTH.len();

    /// The bus of a device, if it is a vSwitch whose host has one.
    pub(super) fn new(options: &DataPathOptions, ports: usize, deadlines: usize) -> Option<Box<Self>> {
        let rate = DataRate::from_mbps(options.host_bus_mbps);
        if !options.shaped || options.uplink == PortNum::ZERO || rate.is_instant() {
            return None;
        }
        let line = || Line {
            pace: Pace::new(rate),
            waiting: vec![VecDeque::new(); ports],
            busy: None,
            last: PortNum::ZERO,
            finish: BTreeMap::new(),
            virtual_time: 0,
        };
        Some(Box::new(Self { uplink: options.uplink, lines: [line(), line()], deadlines }))
    }

    /// The direction in which a packet crosses first.
    fn first(&self, input: PortNum, output: PortNum) -> Option<Direction> {
        if output == PortNum::ZERO || input == PortNum::ZERO {
            return None;
        }
        if input == self.uplink { self.second(output) } else { Some(Direction::ToAdapter) }
    }

    /// The direction in which a packet crosses after it has come into the adapter.
    fn second(&self, output: PortNum) -> Option<Direction> {
        (output != self.uplink).then_some(Direction::ToHost)
    }
}

impl Line {
    /// The port whose first packet has the earliest start, and that start: of several the one behind the last port served.
    fn next(&self, flow_of: impl Fn(PoolIndex) -> Flow) -> Option<(PortNum, Flow, u64)> {
        let heads = self.waiting.iter().enumerate().filter_map(|(port, line)| Some((port, *line.front()?)));
        let starts = heads.map(|(port, place)| {
            let flow = flow_of(place);
            let start = self.finish.get(&flow).map_or(self.virtual_time, |end| self.virtual_time.max(*end));
            (start, port <= usize::from(self.last.0), port, flow)
        });
        let (start, _, port, flow) =
            starts.min_by_key(|(start, behind, port, _)| (*start, *behind, *port))?;
        Some((PortNum(port as u8), flow, start))
    }

    /// A flow has its packet. One that has had no more than the virtual time is as one never seen.
    fn served(&mut self, flow: Flow, start: u64, size: u16) {
        self.virtual_time = start;
        if self.finish.len() >= FLOWS_MAX {
            self.finish.retain(|_, end| *end > start);
            if self.finish.len() >= FLOWS_MAX / 2 {
                self.finish.clear();
            }
        }
        self.finish.insert(flow, start + u64::from(size));
    }
}

impl Flow {
    fn of(body: &Body) -> Self {
        let (slid, dlid, dest_qp) = match body {
            Body::Data(packet) => (packet.slid, packet.dlid, packet.dest_qp),
            Body::Whole(packet) => {
                let (lrh, bth) = (packet.lrh(), packet.bth());
                (lrh.slid, lrh.dlid, bth.map(|bth| bth.dest_qp).unwrap_or_default())
            }
            Body::None => Default::default(),
        };
        Self { slid, dlid, dest_qp }
    }
}

impl DataPath {
    /// The direction of the bus whose deadline this is, if it is one.
    pub(super) fn bus_at(&self, deadline: usize) -> Option<Direction> {
        let nth = deadline.checked_sub(self.bus.as_ref()?.deadlines)?;
        Direction::BOTH.get(nth).copied()
    }

    /// All packets that wait for the bus, or cross it.
    pub(super) fn on_bus(&self) -> impl Iterator<Item = PoolIndex> {
        let lines = self.bus.iter().flat_map(|bus| &bus.lines);
        lines.flat_map(|line| {
            let busy = line.busy.iter().map(|crossing| crossing.place);
            line.waiting.iter().flatten().copied().chain(busy)
        })
    }

    /// A packet that came by `input` waits for the bus.
    pub(super) fn wait_for_bus(&mut self, at: Time, direction: Direction, input: PortNum, place: PoolIndex) {
        let Some(bus) = &mut self.bus else { return };
        let line = &mut bus.lines[direction as usize];
        line.waiting[usize::from(input.0)].push_back(place);
        if line.busy.is_none() {
            self.start_bus(at, direction);
        }
    }

    /// The next packet sets out over a bus that is free.
    fn start_bus(&mut self, at: Time, direction: Direction) {
        let Some(bus) = &mut self.bus else { return };
        let deadline = bus.deadlines + direction as usize;
        let line = &mut bus.lines[direction as usize];
        let Some((input, flow, start)) = line.next(|place| Flow::of(&self.pool.get(place).body)) else {
            return self.deadlines.clear(deadline);
        };
        let Some(place) = line.waiting[usize::from(input.0)].pop_front() else { return };
        let size = self.pool.get(place).size();
        line.served(flow, start, size);
        (line.busy, line.last) = (Some(Crossing { place, input }), input);
        self.deadlines.set(deadline, at + line.pace.take(usize::from(size), self.dilation));
    }

    /// Takes what crosses the bus, or waits for it, of what came in by a port.
    pub(super) fn leave_bus(&mut self, at: Time, input: PortNum) -> Vec<PoolIndex> {
        let mut places = Vec::new();
        for direction in Direction::BOTH {
            let Some(bus) = &mut self.bus else { return places };
            let line = &mut bus.lines[direction as usize];
            places.extend(line.waiting[usize::from(input.0)].drain(..));
            if let Some(crossing) = line.busy.take_if(|crossing| crossing.input == input) {
                places.push(crossing.place);
                self.start_bus(at, direction);
            }
        }
        places
    }
}

impl Device {
    /// A packet that has come into a vSwitch by a cable is held until it has crossed the bus.
    pub(super) fn hold_for_bus(&mut self, at: Time, held: Held) {
        let lane = held.lane();
        self.data.account[lane].held += 1;
        let (input, _) = self.data.port_and_lane(held.buffer);
        let place = self.data.pool.put(held, at);
        self.over_bus(at, input, place);
    }

    /// A packet that is held crosses the bus, if it has to, and joins its queue.
    pub(super) fn over_bus(&mut self, at: Time, input: PortNum, place: PoolIndex) {
        let output = self.data.pool.get(place).output;
        match self.data.bus.as_ref().and_then(|bus| bus.first(input, output)) {
            Some(direction) => self.data.wait_for_bus(at, direction, input, place),
            None => self.join_held(at, place),
        }
    }

    fn join_held(&mut self, at: Time, place: PoolIndex) {
        let held = self.data.pool.get(place);
        let (buffer, lane, output, size) = (held.buffer, held.lane(), held.output, held.size());
        self.join(at, buffer.into(), place, output, size, lane);
    }

    /// A packet has crossed the bus: it joins its queue, or goes on to the host's other function.
    pub(super) fn bus_crossed(&mut self, at: Time, direction: Direction) {
        let data = &mut self.data;
        let Some(bus) = &mut data.bus else { return };
        let crossing = bus.lines[direction as usize].busy.take();
        debug_assert!(crossing.is_some(), "nothing else has this moment");
        data.start_bus(at, direction);
        let Some(Crossing { place, input }) = crossing else { return };
        let output = data.pool.get(place).output;
        let second = data.bus.as_ref().and_then(|bus| bus.second(output));
        match second.filter(|_| direction == Direction::ToAdapter) {
            Some(second) => data.wait_for_bus(at, second, input, place),
            None => self.join_held(at, place),
        }
    }
}
