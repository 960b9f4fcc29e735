//! The data lanes: buffers, credits, crossbar, rates, the host behind an HCA.
//!
//! ```text
//!            check, count        route, SL2VL                      VL arbitration       rate
//!  cable ─▶ arrive ─▶ Queue (port, lane) ─▶ head asks for (output, lane) ─▶ Output ─▶ depart ─▶ cable
//!              │           └─ HCA: Drain, the host's limit ─▶ the host, the own agents      │
//!  cable ◀─ FlowControl ◀───────────────── blocks are free again ◀──────────────────────────┘
//!  vSwitch: arrive ─▶ the bus of its host ─▶ Queue ([`bus`])
//!  host, programs, own agents ─▶ Queue of their own (port, lane) ─▶ Output, with the host's limit
//! ```
//!
//! Heads that want the same output and lane stand in line in the order in which they became heads, which is round robin
//! over the inputs. A packet is stored, then forwarded, unless it cuts through ([`cut_through`]). How many packets an input sends at once, and what lies behind the
//! crossbar, are settings ([`crossbar`], [`Crossbar`](crate::Crossbar)). Without a buffer there a packet keeps its blocks
//! until its last bit has left, and the one behind it is the head as soon as it has begun to leave. Everything that has its
//! moment is done at that moment, in order of time, however late the driver is.

mod account;
mod arbiter;
mod arrive;
mod buffer;
mod bus;
mod counting;
mod credit;
mod crossbar;
mod cut_through;
mod damage;
mod deadlines;
mod discard;
mod due;
mod host;
mod index;
mod lifetime;
mod line;
mod mark;
mod output;
mod pace;
mod shares;
#[cfg(test)]
mod tests;
mod turns;
mod virtual_queues;
mod wait;

use weft_machine::Time;
use weft_wire::{DataRate, PortNum, VirtualLane};

pub use account::{BufferAccount, DataAccount, LaneAccount};
pub(crate) use arrive::{Heading, KeyHeading, WrongKey};
pub(crate) use buffer::Body;
pub use bus::Direction as BusDirection;
pub use due::Deadline;

use crate::moment::NEVER;
use crate::port::Port;
use crate::size::{CREDIT_MAX, blocks};
use crate::{DataPathOptions, Device, DeviceOptions};
use account::LaneAccounts;
use arbiter::Arbiter;
use buffer::{Held, Pool, Queue};
use bus::Bus;
use credit::Reach;
use crossbar::{Crossing, Speed};
use cut_through::CutThrough;
use deadlines::Deadlines;
use host::{Drain, Own};
use index::{LaneIndex, PerLane, PerPort, PoolIndex, Position as _, QueueIndex, Queues};
use output::{Checks, Out, OutLane};
use pace::Pace;
use shares::Shares;
use virtual_queues::VirtualQueues;

/// Nanoseconds of fabric time in a tick of XmitWait.
const TICK: u64 = 4;

/// What a device has beside its ports' settings and counters. What every packet needs is in front, in as few lines of the
/// cache as it fits in: a fabric has far more of them than the cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct DataPath {
    /// The latest moment that anything was done at.
    pub(crate) now: Time,
    /// No head's lifetime ends before this.
    expiry: Time,
    /// When a sample or an SMP next wants attention. They are seldom there, and so are not asked every time.
    pub(crate) seldom: Time,
    /// When a trap is to be sent again.
    pub(crate) traps: Time,
    /// When each port's packet has left, then when each port's packet has reached the host; in a switch with limited
    /// inputs, when an awaited input may send again. Where packets cut through, when each port's next
    /// packet joins its queue. In a vSwitch, when a packet has crossed the host's bus.
    deadlines: Deadlines,
    outs: PerPort<Out>,
    /// By port and lane those of what comes in, then those of what the host sends, then those for one output each.
    queues: Queues<Queue>,
    out_lanes: PerLane<OutLane>,
    account: LaneAccounts,
    /// How long a packet may stay, in nanoseconds of machine time.
    switch_life: u64,
    /// Ports are this many bits apart in `queues` and `out_lanes`.
    shift: u8,
    /// Lanes that have a buffer.
    pub(crate) lanes: u8,
    /// Whether there is a host behind the ports.
    host: bool,
    /// Size of each buffer, in blocks.
    buffer: u16,
    /// By port: what determines how far ahead the peer needs credit.
    reach: PerPort<Reach>,
    pool: Pool,
    crossing: Crossing,
    /// Lanes held to their shares of a switch's links; none where a lane lends what it does not use.
    shares: Option<Box<Shares>>,
    virtual_queues: Option<VirtualQueues>,
    /// What has begun to come in; none where packets are stored and forwarded.
    cut_through: Option<Box<CutThrough>>,
    /// The bus of a vSwitch's host; none in other devices.
    bus: Option<Box<Bus>>,
    /// Nanoseconds of machine time in one of fabric time.
    dilation: u32,
    drains: PerPort<Drain>,
    /// What the hosts may send, by port; none in a switch.
    gates: PerPort<Pace>,
    /// How packets are marked with FECN; none where none is.
    marking: Option<Box<mark::Marking>>,
    /// Outputs that may have something to send.
    todo: Vec<PortNum>,
    /// A switch's own address.
    own: Own,
    options: DataPathOptions,
    /// A tick in nanoseconds of machine time.
    pub(crate) tick: u64,
    /// Where in `queues` those of the host begin.
    host_base: usize,
    /// The facts last sent to the hosts, by port.
    told: PerPort<weft_wire::PortFacts>,
    /// What a port can send at most, in megabits per second of fabric time, by port; 0 takes no time.
    rates: PerPort<DataRate>,
}

impl DataPath {
    pub(crate) fn new(is_switch: bool, ports: &[Port], options: &DeviceOptions) -> Self {
        let data = &options.data;
        let lanes = options.vl_cap.lanes();
        let shift = lanes.next_power_of_two().trailing_zeros() as u8;
        let count = ports.len();
        let largest = u16::from(blocks(ports[0].receive_size_max));
        let buffer = data.buffer_blocks(largest).min(CREDIT_MAX);
        // What lies between an adapter's host and its link is no crossbar.
        let crossbar = if is_switch { data.effective_crossbar() } else { crate::Crossbar::UNLIMITED };
        let mut crossing = Crossing::new(&crossbar, count, data.dilation.max(1));
        let virtual_queues = crossbar.output_queues.then(|| VirtualQueues::new(count << shift, count));
        let inputs = if crossing.limits_inputs() { count } else { 0 };
        let (banks, hosts) = if is_switch { (1, 0) } else { (2, count) };
        let deadlines = count * banks + inputs;
        // Where packets cut through, the switch's latency is over before they stand in line.
        let cut_through = data
            .cuts_through()
            .then(|| Box::new(CutThrough::new(count, std::mem::take(&mut crossing.latency), deadlines)));
        let mut pool = Pool::new();
        pool.keep_arrivals(cut_through.is_some(), Time::ZERO);
        let coming = if cut_through.is_some() { count } else { 0 };
        let bus = if is_switch { Bus::new(data, count, deadlines + coming) } else { None };
        let on_bus = bus.as_ref().map_or(0, |_| Bus::DEADLINES);
        let shares = if is_switch { Shares::new(data, count, shift) } else { None };
        let out = |port: &Port| Out::new(Arbiter::new(&port.vl_arbitration, 0, port.lanes));
        Self {
            now: Time::ZERO,
            host: !is_switch,
            options: data.clone(),
            dilation: data.dilation.max(1),
            tick: TICK * u64::from(data.dilation.max(1)),
            lanes,
            shift,
            host_base: count << shift,
            buffer,
            reach: PerPort::of(Reach::default(), count),
            pool,
            queues: (0..(count << shift) * banks)
                .map(|at| Queue::of(PortNum((at >> shift) as u8), is_switch))
                .collect(),
            crossing,
            shares,
            virtual_queues,
            cut_through,
            bus,
            outs: ports.iter().map(out).collect(),
            out_lanes: PerLane::of(OutLane::default(), count << shift),
            drains: PerPort::of(Drain::new(data), hosts),
            gates: PerPort::of(Pace::default(), hosts),
            deadlines: Deadlines::new(deadlines + coming + on_bus),
            expiry: NEVER,
            seldom: NEVER,
            traps: NEVER,
            switch_life: u64::MAX,
            marking: None,
            own: Own::default(),
            todo: Vec::new(),
            rates: PerPort::of(DataRate::INSTANT, count),
            account: LaneAccounts::default(),
            told: PerPort::of(Default::default(), hosts),
        }
    }

    /// Where a port's lane is in the lists. The lane is one that has a buffer.
    #[inline]
    fn index(&self, port: PortNum, lane: VirtualLane) -> LaneIndex {
        LaneIndex::new(port, lane, self.shift)
    }

    /// The queue of what the host behind a port sends on a lane.
    #[inline]
    fn own_queue(&self, port: PortNum, lane: VirtualLane) -> QueueIndex {
        QueueIndex::new(self.index(port, lane).position() + self.host_base)
    }

    /// All lanes that have a buffer.
    #[inline]
    fn each_lane(&self) -> impl Iterator<Item = VirtualLane> + use<> {
        (0..self.lanes).map(VirtualLane)
    }

    /// All ports, 0 included.
    fn each_port(&self) -> impl Iterator<Item = PortNum> + use<> {
        (0..self.outs.len()).map(|port| PortNum(port as u8))
    }

    /// All packets that are held.
    fn held(&self) -> impl Iterator<Item = &Held> {
        let waiting = self.queues.iter().flat_map(|queue| queue.places(&self.pool));
        let direct = self.crossing.behind.is_empty();
        // What cuts through is on the cable as soon as it begins to leave.
        let direct = direct && self.cut_through.is_none();
        let leaving = self.outs.iter().map(|out| out.sending).filter(move |_| direct);
        let behind = self.each_port().flat_map(|output| self.unsent_behind(output));
        let leaving = leaving.chain(behind);
        let draining = self.drains.iter().map(|drain| drain.busy);
        waiting
            .chain(leaving)
            .chain(draining)
            .chain(self.coming())
            .chain(self.on_bus())
            .filter(|&at| at != PoolIndex::NONE)
            .map(|at| self.pool.get(at))
    }
}

impl Device {
    /// Lets outputs send that may have something to send.
    #[inline]
    pub(crate) fn run(&mut self, at: Time) {
        while let Some(output) = self.data.todo.pop() {
            self.start(at, output);
        }
    }

    /// The port's link has come up: buffers are empty, and the peer gets the credit of each.
    pub(crate) fn data_link_up(&mut self, port: PortNum) {
        let at = self.data.now;
        let settings = &self.ports[usize::from(port.0)];
        let data = &mut self.data;
        let link = DataRate::of_link(&settings.info, settings.fdr10.active);
        let rate = if data.options.shaped { link } else { DataRate::INSTANT };
        let out = &mut data.outs[port];
        out.pace = Pace::new(rate);
        data.crossing.link_up(port, rate, data.dilation);
        if let Some(shares) = &mut data.shares {
            shares.link_up(port, Speed::new(rate, 100, data.dilation));
        }
        if let Some(cut_through) = &mut data.cut_through {
            cut_through.link_up(port, rate, data.dilation);
        }
        let limit = if data.host { data.options.host_limit(rate) } else { DataRate::INSTANT };
        if let Some(gate) = data.gates.get_mut(port) {
            *gate = Pace::new(limit);
        }
        data.rates[port] = rate.slower(limit);
        if data.drains.get_mut(port).is_some_and(|drain| drain.is_slow()) {
            self.set_drain(port);
        }
        self.data.reach[port] = Reach::begin(at);
        self.reach_changed(port);
        for lane in self.data.each_lane() {
            self.tell_credit(port, lane, credit::OP_INIT);
        }
    }

    /// The port's link is gone: what has come in over it and what was to leave by it is dropped.
    pub(crate) fn data_link_down(&mut self, port: PortNum) {
        let at = self.data.now;
        let out = &mut self.data.outs[port];
        (out.active, out.checks.up) = (false, false);
        self.reach_changed(port);
        // The host knows before it hears that there is room for more.
        self.tell_host(port, false);
        self.abort_output(at, port);
        self.purge_output(at, port);
        self.empty_buffers(at, port);
        for lane in self.data.each_lane() {
            let index = self.data.index(port, lane);
            self.data.out_lanes[index].reset_credit();
            self.data.queues[index].reset_credit();
        }
    }

    /// The port's state, lanes, tables or times may have changed.
    pub(crate) fn data_settings_changed(&mut self, port: PortNum) {
        let at = self.data.now;
        let dilation = u64::from(self.data.dilation);
        let settings = &self.ports[usize::from(port.0)];
        let out = &mut self.data.outs[port];
        out.arbiter = Arbiter::new(&settings.vl_arbitration, settings.info.vl_high_limit, settings.lanes);
        if let Some(shares) = &mut self.data.shares {
            shares.tables_changed(at, port, &settings.vl_arbitration, settings.lanes);
            self.data.todo.push(port);
        }
        let out = &mut self.data.outs[port];
        if let Some(switch) = &self.switch {
            out.head_life = lifetime::span(settings.info.hoq_life, dilation);
            out.stall_count = settings.info.vl_stall_count;
            self.data.switch_life = lifetime::span(switch.info.life_time_value, dilation);
            let keep = self.data.switch_life != u64::MAX
                || self.data.crossing.latency > Time::ZERO
                || self.data.cut_through.is_some();
            self.data.pool.keep_arrivals(keep, at);
            // Heads that wait already have other ends now.
            let held = self.data.queues.iter().any(|queue| queue.head != PoolIndex::NONE);
            self.data.expiry = if held && self.data.has_lifetimes() { at } else { NEVER };
        }
        let info = &settings.info;
        let out = &mut self.data.outs[port];
        out.checks = Checks {
            up: settings.state.is_up(),
            enforces_inbound: info.partition_enforcement_inbound && self.switch.is_some(),
            enforces_outbound: info.partition_enforcement_outbound && self.switch.is_some(),
            lanes: settings.lanes,
            receive_size_max: settings.receive_size_max as u16,
            packet_size_max: settings.packet_size_max as u16,
        };
        let (lid, lmc) = (info.lid, info.lmc);
        if let Some(drain) = self.data.drains.get_mut(port) {
            (drain.own.lid, drain.own.lmc) = (lid, lmc);
        } else if port == PortNum::ZERO {
            (self.data.own.lid, self.data.own.lmc) = (lid, lmc);
        }
        let active = settings.state == crate::port::LinkState::Active;
        let was_active = std::mem::replace(&mut self.data.outs[port].active, active);
        self.reach_changed(port);
        self.tell_host(port, false);
        if was_active && !active {
            self.purge_output(at, port);
        }
    }
}
