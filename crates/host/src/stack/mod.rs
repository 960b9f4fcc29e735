//! A host's InfiniBand software behind one adapter port: path cache, subscriptions, queue pairs, flows.
//!
//! ```text
//!   Command ─────▶ flows ──▶ queue pairs ──▶ Inject ──▶ the adapter
//!                    │             ▲  └──────◀ Accept, Injected
//!                    ▼             │ repath, unpath
//!   path cache ◀─▶ SA client ─▶ Send ──────▶ the adapter
//! ```
//!
//! A flow's queue pair has the number 0x100 plus the flow's at both of its ends, and begins with a PSN that follows
//! from it: what a connection manager would exchange is known beforehand.
//!
//! **Invariant:** the adapter never holds more than [`StackOptions::adapter_packets`] packets of a service level, and
//! no service level waits for another one. **Invariant:** nothing is kept of a packet that has been sent, and nothing
//! is allocated for one.

mod accept;
mod bulk;
mod clock;
mod commands;
mod congestion;
mod desk;
mod flow;
mod holds;
mod image;
mod lanes;
mod mix;
mod names;
mod numbers;
mod partitions;
mod paths;
mod pingpong;
mod port;
mod receiver;
mod relocation;
mod report;
mod sa;
mod sender;
mod static_rate;
mod subscriptions;
mod suspend;
mod timers;
mod times;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_machine::{self as machine, Machine, Time};
use weft_wire::{
    AddressedMad, CongestionEvent, DataPacket, Method, MgmtClass, PortFacts, QpNum, Registration,
    SA_CLASS_VERSION, ServiceLevel,
};

use crate::traffic::{Command, FlowReport};
pub use bulk::BulkCounts;
use desk::Desk;
pub use desk::{HandlerTimes, Reconfiguration};
use flow::Flows;
pub use image::{IMAGE_BYTES_MAX, Identity, Image, ImageError, Place};
use lanes::Lane;
use names::Offer;
pub use names::{Guids, SERVICE_OF_NAMES};
pub use paths::PathCache;
use paths::Paths;
pub use relocation::MovedLid;
use relocation::{HoldBacks, Tells};
use sa::SaClient;
use sender::{Phase, Rules};
pub use subscriptions::Notices;
use subscriptions::Subscriptions;
use suspend::Suspension;
pub use suspend::SuspensionCounts;
pub use timers::StackTimer;
use timers::{Timer, Timers};

/// No time-out is shorter: it would keep the host busy with itself.
const TIMEOUT_LEAST: Time = Time::from_micros(1);

/// What a host is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StackOptions {
    /// Packets of one service level that the adapter holds at most.
    pub adapter_packets: u16,
    /// Unacknowledged packets of a queue pair at most, up to 2^22.
    pub window_packets: u32,
    /// How long a queue pair waits for an acknowledgement.
    pub ack_timeout: Time,
    /// How often it sends again before it gives up.
    pub retries: u32,
    /// How long to wait for subnet administration's answer, and how often to ask again.
    pub sa_timeout: Time,
    /// How often to ask again. What was refused, or not answered even so, is asked for again after 5 such times.
    pub sa_retries: u32,
    /// Whether path records are kept.
    pub path_cache: PathCache,
    /// Notices that it subscribes to.
    pub notices: Notices,
    /// Whether a virtual machine keeps its GUID when it moves.
    pub guids: Guids,
    /// Whether its port is a virtual function's, to which the physical function may hand on what it hears. A node says so of its slots.
    pub is_function: bool,
    /// Whether a stack that resumes has its peers notified, so that they repeat before a timeout.
    pub wakes_peers: bool,
    /// Nanoseconds of machine time in one of fabric time; congestion control's timers are of fabric time.
    pub dilation: u32,
    /// What a message costs the host at each of its ends, in nanoseconds of fabric time: software, bus and adapter. A flow
    /// begins at most one message in this time, and a ping-pong's latency has it twice.
    pub message_overhead_ns: u32,
    /// What its software takes to heed notices, in machine time.
    pub handler_times: HandlerTimes,
    /// The service level of management datagrams; none is the one that the manager has given the port.
    pub management_sl: Option<ServiceLevel>,
    /// Whether the clocks of all hosts are one, so that a receiver can tell how long a packet was on its way.
    pub common_clock: bool,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            adapter_packets: 2,
            window_packets: 128,
            ack_timeout: Time::from_secs(4),
            retries: 7,
            sa_timeout: Time::from_secs(1),
            sa_retries: 5,
            path_cache: PathCache::default(),
            notices: Notices::default(),
            guids: Guids::default(),
            is_function: false,
            wakes_peers: true,
            dilation: 1,
            message_overhead_ns: 0,
            handler_times: HandlerTimes::default(),
            management_sl: None,
            common_clock: false,
        }
    }
}

/// What happens to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Input {
    /// What the adapter says of its port.
    Port(PortFacts),
    /// A MAD for the host.
    Receive(AddressedMad),
    /// A data packet for the host.
    Accept(DataPacket),
    /// Packets have left the adapter.
    Injected {
        /// The service level that they were given with.
        service_level: ServiceLevel,
        /// How many.
        packets: u16,
    },
    /// The adapter has not taken a packet, and would not take the next one like it either.
    Refused {
        /// The queue pair that the packet was for.
        dest_qp: QpNum,
    },
    /// Something to do.
    Command(Command),
    /// A port has moved to another place of the fabric, with a virtual machine.
    Moved(MovedLid),
    /// A Report that the physical function of its adapter has answered, and hands on.
    HandedOn(AddressedMad),
}

/// Why a host does not carry out a command, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(String);

/// What a host wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Output {
    /// Send a MAD through the port, as an attached program does.
    Send(AddressedMad),
    /// Hand on a Report to the virtual functions of the adapter (paper 004, algorithm 2, lines 2637–2646).
    HandOn(AddressedMad),
    /// Give the adapter a data packet.
    Inject(DataPacket),
    /// Tell the port's agent, which keeps the log of congestion control.
    Congestion(CongestionEvent),
    /// The answer to [`Input::Command`], one for each: it is carried out or under way, or why it cannot be.
    Obeyed(Result<(), CommandError>),
}

/// What a host has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackCounts {
    /// Data packets for queue pairs that are not there, or not of that kind.
    pub stray_packets: u64,
    /// Congestion notifications and answers to datagrams that were not sent because too many were waiting.
    pub replies_dropped: u64,
    /// Reports answered.
    pub reports: u64,
    /// Repath and unpath notices heeded.
    pub repaths: u64,
    /// Repath and unpath notices not heeded, or not understood.
    pub repaths_ignored: u64,
    /// Hot spots not remembered because there were too many.
    pub hot_spots_forgotten: u64,
    /// Questions to subnet administration, repetitions included.
    pub questions: u64,
    /// Questions that were refused, or that no one answered.
    pub questions_failed: u64,
    /// Subscriptions that the manager has confirmed and that stand.
    pub subscriptions: u64,
    /// Paths in the cache.
    pub paths: u64,
    /// Commands that could not be carried out.
    pub refused: u64,
    /// Packets that the adapter has not taken.
    pub packets_refused: u64,
    /// Changes of the port's P_Key table.
    pub p_key_changes: u64,
    /// Ends of connections that have ended because the port has left their partition.
    pub partition_ends: u64,
}

/// The host. What every packet needs is in front, in as few lines of the cache as it fits in: a fabric has hundreds of hosts.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Stack {
    /// Lanes that senders have joined and that were not looked at since, bit by bit.
    pump_later: u16,
    /// Whether something is to be asked for.
    asks_due: bool,
    is_suspended: bool,
    heeds_repath: bool,
    /// Whether subnet administration is asked nothing, and when that wants attention.
    sa_is_idle: bool,
    sa_due: Option<Time>,
    /// When to ask again for what was not there.
    retry_at: Option<Time>,
    timers: Timers,
    injects: VecDeque<DataPacket>,
    outputs: VecDeque<Output>,
    flows: Flows,
    rules: Rules,
    options: StackOptions,
    facts: PortFacts,
    paths: Paths,
    lanes: [Lane; 16],
    sa: SaClient,
    subscriptions: Subscriptions,
    /// What the machine offers its name by.
    offer: Offer,
    counts: StackCounts,
    suspension: Suspension,
    hold_backs: HoldBacks,
    tells: Tells,
    desk: Desk,
}

impl StackOptions {
    /// What follows for all senders.
    fn rules(&self) -> Rules {
        let window = self.window_packets.clamp(1, 1 << 22);
        Rules {
            window: window.into(),
            acknowledge_every: (window / 4).max(1),
            ack_timeout: self.ack_timeout.max(TIMEOUT_LEAST),
            retries: self.retries,
            overhead: Time::from_nanos(u64::from(self.message_overhead_ns) * u64::from(self.dilation)),
        }
    }
}

impl Stack {
    /// A host that knows nothing yet.
    pub fn new(mut options: StackOptions) -> Self {
        let rules = options.rules();
        options.sa_timeout = options.sa_timeout.max(TIMEOUT_LEAST);
        Self {
            sa: SaClient::new(&options),
            options,
            rules,
            facts: PortFacts::default(),
            heeds_repath: true,
            paths: Paths::default(),
            subscriptions: Subscriptions::default(),
            offer: Offer::default(),
            asks_due: false,
            is_suspended: false,
            suspension: Suspension::default(),
            hold_backs: HoldBacks::default(),
            tells: Tells::default(),
            desk: Desk::default(),
            sa_is_idle: true,
            sa_due: None,
            retry_at: None,
            flows: Flows::default(),
            lanes: Default::default(),
            pump_later: 0,
            timers: Timers::default(),
            counts: StackCounts::default(),
            injects: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    /// What it wants to be given unasked, when the driver attaches it to its port.
    pub fn registrations() -> Vec<Registration> {
        vec![Registration::new(MgmtClass::SubnAdm, SA_CLASS_VERSION, [Method::Report])]
    }

    /// What became of all flows, in order of their numbers; those that it sends come before those that it receives.
    pub fn reports(&self) -> Vec<FlowReport> {
        let flows = || self.flows.in_order();
        let sent = flows().filter_map(|flow| report::of_sender(flow, &self.facts, &self.paths));
        let mut reports: Vec<_> = sent.chain(flows().filter_map(report::of_receiver)).collect();
        if self.is_suspended {
            reports.iter_mut().for_each(report::suspend);
        }
        reports
    }

    /// What it is like.
    pub fn options(&self) -> &StackOptions {
        &self.options
    }

    /// Whether it has no flows.
    pub fn is_idle(&self) -> bool {
        self.flows.len() == 0
    }

    /// What has been counted.
    pub fn counts(&self) -> StackCounts {
        StackCounts {
            hot_spots_forgotten: self.paths.forgotten,
            // What was asked before an import is in the counts that came with it.
            questions: self.counts.questions + self.sa.stats().sent + self.sa.bulk.counts.asked,
            subscriptions: self.subscriptions.held().count() as u64,
            paths: self.paths.len() as u64,
            ..self.counts
        }
    }

    /// What has been counted of questions in bulk, since it began at this place.
    pub fn bulk_counts(&self) -> BulkCounts {
        self.sa.bulk.counts
    }

    /// How much is held of what is bounded: flows, timers, and what stands in rings and queues.
    #[cfg(test)]
    fn held(&self) -> [usize; 3] {
        [self.flows.len(), self.timers.len(), self.lanes.iter().map(Lane::held).sum()]
    }

    fn command(&mut self, now: Time, command: Command) {
        let outcome = self.obey(now, command);
        self.counts.refused += u64::from(outcome.is_err());
        self.outputs.push_back(Output::Obeyed(outcome.map_err(CommandError)));
    }

    /// Subnet administration may have been asked, or have answered.
    fn sa_changed(&mut self) {
        (self.sa_is_idle, self.sa_due) = (self.sa.is_idle(), self.sa.next_timer().map(|timer| timer.at));
    }

    /// A timer has come to its time.
    fn fire(&mut self, now: Time, at: Time, timer: Timer) {
        match timer {
            Timer::Wake(place) => {
                let Some(sender) = self.flows.sender(place).filter(|sender| sender.wake_at == Some(at))
                else {
                    return;
                };
                sender.wake_at = None;
                self.wake(now, place);
            }
            Timer::Expiry(place) => {
                let sender = self.flows.sender(place).filter(|sender| sender.expiry_at == Some(at));
                let Some(sender) = sender else { return };
                sender.expiry_at = None;
                if sender.deadline.is_some_and(|deadline| deadline <= now) {
                    self.expire(now, place);
                }
                if let Some(sender) = self.flows.sender(place) {
                    lanes::arm_expiry(sender, place, &mut self.timers);
                }
            }
            Timer::Lane(level) => self.wake_lane(now, level),
        }
    }

    /// A sender's packets were not acknowledged in time.
    fn expire(&mut self, now: Time, place: u32) {
        let (rules, active) = (self.rules, self.facts.active);
        let Some(sender) = self.flows.sender(place) else { return };
        if !active || sender.phase == Phase::Held {
            // Nothing can be acknowledged; that is not the other end's fault.
            sender.deadline = Some(now + rules.ack_timeout);
            return;
        }
        if !sender.is_reliable() {
            sender.lose_datagram();
            self.wake(now, place);
            return;
        }
        sender.expire(now, &rules);
        sender.force_lane_change(now);
        if let sender::Target::One(path) = sender.target {
            self.asks_due |= self.paths.look_up_again(path);
        }
        self.dequeue(place);
        self.wake(now, place);
    }
}

impl Machine for Stack {
    type Input = Input;
    type Output = Output;
    type Reason = StackTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        if self.is_suspended {
            return self.hear_suspended(input);
        }
        let is_traffic = matches!(input, Input::Accept(_) | Input::Injected { .. } | Input::Refused { .. });
        match input {
            Input::Accept(packet) => self.accept(now, &packet),
            Input::Injected { service_level, packets } => self.make_room(now, service_level, packets),
            Input::Refused { dest_qp } => self.hold_back(now, dest_qp),
            Input::Port(facts) => self.learn_port(now, facts),
            Input::Receive(mad) => self.receive(now, &mad),
            Input::Command(command) => self.command(now, command),
            Input::Moved(moved) => self.port_relocated(now, &moved),
            Input::HandedOn(report) => self.heed_report(now, &report),
        }
        self.settle(now);
        if self.asks_due {
            self.ask(now);
        } else if is_traffic {
            return;
        }
        self.sa_changed();
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.is_suspended {
            return;
        }
        while let Some((at, timer)) = self.timers.pop_due(now) {
            self.fire(now, at, timer);
            self.settle(now);
        }
        self.pass_time(now);
        self.settle(now);
        if self.timers.len() > 64 + 8 * self.flows.len() {
            self.tidy_timers();
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        if let Some(packet) = self.injects.pop_front() {
            return Some(Output::Inject(packet));
        }
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<machine::Timer<StackTimer>> {
        if self.is_suspended {
            return None;
        }
        let administration = self.sa.next_timer().map(|timer| timer.map(StackTimer::Administration));
        let again = machine::Timer::new(self.retry_at, StackTimer::AskAgain);
        let hold = machine::Timer::new(self.paths.holds_end(), StackTimer::Hold);
        let heeded = machine::Timer::new(self.desk.due(), StackTimer::Heed);
        machine::Timer::earliest([self.timers.first(), administration, again, hold, heeded])
    }

    fn poll_timeout(&self) -> Option<Time> {
        debug_assert_eq!(self.sa_due, self.sa.next_timer().map(|timer| timer.at), "known here too");
        if self.is_suspended {
            return None;
        }
        let times = [self.timers.next(), self.sa_due, self.retry_at, self.paths.holds_end(), self.desk.due()];
        let due = times.into_iter().flatten().min();
        debug_assert_eq!(due, self.next_timer().map(|timer| timer.at), "one moment, told in two ways");
        due
    }
}
