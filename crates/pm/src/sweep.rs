//! Sweeps the counters of every port through one window.
//!
//! ```text
//!  ports, the first of every node first ──▶ PortCountersExtended, PortCounters (, lanes, errors) ──▶ window ──▶ the fabric
//!       resets of what is past its half ──▶ after the answers they follow from
//!       devices that do not answer ──▶ left out, asked from time to time whether they are there
//! ```
//!
//! A sweep begins an interval after the last one did, or when the last one has ended where that took longer. Rates are
//! of the time between two readings of the very same counter, each taken half a round trip before its answer came.

use std::collections::VecDeque;

use weft_machine::{Time, Timer};
use weft_mgmt::{Completed, Limits, Stats, Transactions};
use weft_wire::{AddressedMad, AttributeId, MgmtClass, PERF_DATA, PortNum, ServiceLevel, status};

use crate::fabric::{Fabric, Port, Rate, State};
use crate::rates;
use crate::request::{self, What};
use crate::totals::{Reading, Rise};
use crate::{Event, Options, PmTimer};

/// From one question to a silent device whether it is there to the next.
const PROBE_PAUSE: Time = Time::from_secs(2);

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    port: u32,
    what: What,
}

/// What sweeps have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Sweeps that have ended.
    pub(crate) sweeps: u64,
    /// Of those, the ones that took longer than the interval.
    pub(crate) late: u64,
    /// How long the last one, the longest, and all of them took.
    pub(crate) last: Time,
    pub(crate) longest: Time,
    pub(crate) all: Time,
    /// Counters found at their highest value.
    pub(crate) stopped: u64,
    /// Counters found below their last value.
    pub(crate) fallen: u64,
    /// Sets that reset counters.
    pub(crate) resets: u64,
    /// Answers with a status other than 0, or not about what was asked.
    pub(crate) refused: u64,
    /// Times that a device fell silent.
    pub(crate) silences: u64,
}

/// The sweep that is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    started: Time,
    /// The place in the order of ports, and how many requests for that port have been made.
    at: usize,
    step: u8,
    unanswered: u32,
}

/// Sweeping.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    interval: Time,
    dilation: u32,
    lanes: bool,
    /// Of hot spots' ports its wait is read in any case. Its number is its service level's.
    slow_lane: u8,
    errors: bool,
    reset: bool,
    pub(crate) service_level: ServiceLevel,
    transactions: Transactions<Key>,
    pub(crate) running: Option<Running>,
    due: Time,
    /// Resets that follow from answers; at most four for each port of a sweep.
    resets: VecDeque<Key>,
    /// Asks silent devices whether they are there.
    probes: Transactions<u32>,
    probe_due: Time,
    /// How many there are.
    pub(crate) silent: usize,
    pub(crate) counts: Counts,
    /// Devices that have begun or ceased to answer.
    pub(crate) changes: VecDeque<Event>,
}

impl Sweep {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = options.limits();
        Self {
            interval: options.interval,
            dilation: options.dilation,
            lanes: options.lanes,
            slow_lane: options.slow_sl.0,
            errors: options.errors,
            reset: options.reset,
            transactions: Transactions::new(limits),
            probes: Transactions::new(Limits { retries: 0, ..limits }),
            ..Self::default()
        }
    }

    pub(crate) fn stats(&self) -> &Stats {
        self.transactions.stats()
    }

    pub(crate) fn probe_stats(&self) -> &Stats {
        self.probes.stats()
    }

    /// The number of the sweep that is on, or of the next one.
    fn number(&self) -> u64 {
        self.counts.sweeps + 1
    }

    /// Forgets what is under way. Ids begin at another number, because answers may still come.
    pub(crate) fn abandon(&mut self, now: Time) {
        self.transactions.abandon();
        self.transactions.begin_ids_at(now.as_nanos());
        self.resets.clear();
        self.running = None;
        self.probes.abandon();
        self.probes.begin_ids_at(now.as_nanos());
    }

    /// Another fabric is swept from now on: nodes have other places.
    pub(crate) fn begin_with(&mut self, fabric: &Fabric) {
        self.probes.abandon();
        self.silent = fabric.nodes.iter().filter(|node| node.silent).count();
    }

    /// Goes on as far as it can. `Some` when a sweep has ended.
    pub(crate) fn run(
        &mut self,
        now: Time,
        fabric: &mut Fabric,
        out: &mut dyn FnMut(AddressedMad),
    ) -> Option<Event> {
        self.probe(now, fabric, out);
        if self.running.is_none() && self.due <= now {
            self.running = Some(Running { started: now, at: 0, step: 0, unanswered: 0 });
        }
        self.running?;
        loop {
            while let Some(mad) = self.transactions.poll_transmit(now) {
                out(mad);
            }
            if !self.transactions.has_room(now) {
                return None;
            }
            let Some(key) = self.next(fabric) else { break };
            let Some(port) = fabric.ports.get(key.port as usize) else { continue };
            let mad = request::counters(port.lid, self.service_level, port.num, key.what);
            // There is room for it, so the queue is empty.
            let _ = self.transactions.offer(key, mad);
        }
        self.transactions.is_idle().then(|| self.finish(now))
    }

    /// The next request of this sweep.
    fn next(&mut self, fabric: &Fabric) -> Option<Key> {
        if let Some(key) = self.resets.pop_front() {
            return Some(key);
        }
        let running = self.running.as_mut()?;
        while let Some(&port) = fabric.order.get(running.at) {
            let known = fabric.ports.get(port as usize);
            let is_hot = known.is_some_and(|port| port.state.is_hot);
            let node = known.and_then(|port| fabric.node_of(port));
            let Some(node) = node.filter(|node| !node.silent) else {
                running.unanswered += 1;
                (running.at, running.step) = (running.at + 1, 0);
                continue;
            };
            running.step += 1;
            let what = match running.step {
                1 if !node.no_extended => What::Extended,
                2 => What::Basic,
                3 if (self.lanes || is_hot) && !node.no_lanes => What::Lanes,
                4 if self.errors && !node.no_errors => What::Errors,
                1..=4 => continue,
                _ => {
                    (running.at, running.step) = (running.at + 1, 0);
                    continue;
                }
            };
            return Some(Key { port, what });
        }
        None
    }

    fn finish(&mut self, now: Time) -> Event {
        let running = self.running.take();
        let started = running.map_or(now, |running| running.started);
        let took = now.saturating_sub(started);
        let late = took > self.interval;
        let counts = &mut self.counts;
        counts.sweeps += 1;
        counts.late += u64::from(late);
        (counts.last, counts.longest) = (took, counts.longest.max(took));
        counts.all += took;
        self.due = (started + self.interval).max(now);
        let unanswered = running.map_or(0, |running| running.unanswered);
        Event::Swept { number: counts.sweeps, took_ns: took.as_nanos(), late, unanswered }
    }

    /// Asks silent devices whether they are there, when it is time.
    fn probe(&mut self, now: Time, fabric: &Fabric, out: &mut dyn FnMut(AddressedMad)) {
        if self.silent > 0 && self.probe_due <= now && self.probes.is_idle() {
            for (place, node) in (0..).zip(&fabric.nodes).filter(|(_, node)| node.silent) {
                // Beyond the queue's bound it is their turn next time.
                let _ = self.probes.offer(place, request::probe(node.lid, self.service_level));
            }
            self.probe_due = now + PROBE_PAUSE;
        }
        while let Some(mad) = self.probes.poll_transmit(now) {
            out(mad);
        }
    }

    /// Takes an answer of class Perf.
    pub(crate) fn receive(&mut self, now: Time, mad: &AddressedMad, fabric: &mut Fabric) {
        if mad.mad.attribute_id() == AttributeId::ClassPortInfo {
            if let Some(done) = self.probes.handle_response(now, mad)
                && let Some(node) = fabric.nodes.get_mut(done.key as usize).filter(|node| node.silent)
            {
                node.silent = false;
                self.silent = self.silent.saturating_sub(1);
                self.changes.push_back(Event::Answers { node_guid: node.guid.into() });
            }
            return;
        }
        if let Some(done) = self.transactions.handle_response(now, mad) {
            self.answered(now, &done, fabric);
        }
    }

    fn answered(&mut self, now: Time, done: &Completed<Key>, fabric: &mut Fabric) {
        let Key { port: at, what } = done.key;
        let Some(port) = fabric.ports.get_mut(at as usize) else { return };
        let bytes = &done.mad.mad.0;
        let selected = PortNum(bytes[PERF_DATA][1]);
        let status = done.mad.mad.status();
        if status != status::OK || selected != port.num {
            self.counts.refused += 1;
            self.refused(status, at, what, fabric);
            return;
        }
        port.state.refused &= !what.bit();
        let read = now.saturating_sub(Time::from_nanos(done.rtt.as_nanos() / 2));
        let no_extended = fabric.nodes.get(port.node as usize).is_some_and(|node| node.no_extended);
        let state = &mut port.state;
        let scale = Scale { sweep: self.number(), dilation: self.dilation };
        let reading = match what {
            What::Extended => {
                let before = state.extended_at.replace(read);
                let reading = state.counters.read_extended(bytes, before.is_none());
                scale.traffic(state, &reading, before, read);
                reading
            }
            What::Basic => {
                let before = state.basic_at.replace(read);
                let data_before = if no_extended { state.extended_at.replace(read) } else { None };
                let data = no_extended.then_some(data_before.is_none());
                let reading = state.counters.read_basic(bytes, before.is_none(), data);
                scale.wait(&mut state.congestion, reading.wait, before, read);
                scale.traffic(state, &reading, data_before, read);
                reading
            }
            What::Lanes => {
                let before = state.lanes_at.replace(read);
                let reading = state.lanes.read(bytes, before.is_none());
                scale.wait(&mut state.slow_wait, state.lanes.rise(self.slow_lane), before, read);
                reading
            }
            What::Errors => {
                let first = state.errors_at.replace(read).is_none();
                state.errors.read(bytes, first)
            }
            What::ResetBasic(bits) => return state.counters.basic_was_reset(bits, no_extended),
            What::ResetExtended(bits) => return state.counters.extended_was_reset(bits),
            What::ResetLanes(lanes) => return state.lanes.were_reset(lanes),
            What::ResetErrors(bits) => return state.errors.were_reset(bits),
        };
        self.follow(at, what, &reading);
    }

    /// Counts what a reading showed, and resets what it says.
    fn follow(&mut self, port: u32, read: What, reading: &Reading) {
        self.counts.stopped += u64::from(reading.stopped);
        self.counts.fallen += u64::from(reading.fallen);
        if reading.reset == 0 || !self.reset {
            return;
        }
        let what = match read {
            What::Extended => What::ResetExtended(reading.reset),
            What::Basic => What::ResetBasic(reading.reset),
            What::Errors => What::ResetErrors(reading.reset as u16),
            _ => What::ResetLanes(reading.reset as u16),
        };
        self.counts.resets += 1;
        self.resets.push_back(Key { port, what });
    }

    /// What a device has said that it does not know is not asked of it any more.
    fn refused(&mut self, status: u16, port: u32, what: What, fabric: &mut Fabric) {
        let Some(port) = fabric.ports.get_mut(port as usize) else { return };
        let Some(node) = fabric.nodes.get_mut(port.node as usize) else { return };
        let unknown = [status::BAD_METHOD_ATTRIBUTE, status::BAD_METHOD].contains(&status);
        match what {
            What::Extended if unknown => node.no_extended = true,
            What::Lanes if unknown => node.no_lanes = true,
            What::Errors if unknown => node.no_errors = true,
            _ => port.state.refused |= what.bit(),
        }
    }

    /// Lets time pass. Whether a device has fallen silent.
    pub(crate) fn expire(&mut self, now: Time, fabric: &mut Fabric) -> bool {
        let before = self.counts.silences;
        while let Some(failed) = self.transactions.poll_failed(now) {
            if let Some(running) = &mut self.running {
                running.unanswered += 1;
            }
            let node = fabric.ports.get(failed.key.port as usize).map(|port| port.node as usize);
            let Some(node) = node.and_then(|node| fabric.nodes.get_mut(node)) else { continue };
            if !std::mem::replace(&mut node.silent, true) {
                self.counts.silences += 1;
                self.silent += 1;
                self.changes.push_back(Event::Silent { node_guid: node.guid.into() });
                self.probe_due = now + PROBE_PAUSE;
            }
        }
        while self.probes.poll_failed(now).is_some() {}
        self.counts.silences > before
    }

    pub(crate) fn next_timer(&self) -> Option<Timer<PmTimer>> {
        let due = if self.running.is_some() {
            self.transactions.next_timer().map(|timer| timer.map(PmTimer::Counters))
        } else {
            Some(Timer { at: self.due, reason: PmTimer::Sweep })
        };
        let probe = (self.silent > 0 && self.probes.is_idle()).then_some(self.probe_due);
        let probed = self.probes.next_timer().map(|timer| timer.map(PmTimer::Probed));
        Timer::earliest([due, Timer::new(probe, PmTimer::Probe), probed])
    }

    /// Whether a MAD can be an answer to a request of a sweep.
    pub(crate) fn is_answer(mad: &AddressedMad) -> bool {
        mad.mad.class() == MgmtClass::Perf && mad.mad.method().is_response()
    }
}

/// What rates are made with.
#[derive(Clone, Copy)]
struct Scale {
    sweep: u64,
    dilation: u32,
}

impl Scale {
    /// Equation 1, of a port or of one of its lanes.
    fn wait(self, rate: &mut Rate, rise: Rise, before: Option<Time>, read: Time) {
        let Some(before) = before else { return };
        let congestion = rates::congestion(rise.count, read.saturating_sub(before), self.dilation);
        self.set(rate, congestion, rise);
    }

    /// Equation 2.
    fn traffic(self, state: &mut State, reading: &Reading, before: Option<Time>, read: Time) {
        let Some(before) = before else { return };
        let interval = read.saturating_sub(before);
        let bandwidth = |rise: Rise| rates::bandwidth(rise.count, interval, self.dilation);
        self.set(&mut state.xmit, bandwidth(reading.xmit), reading.xmit);
        self.set(&mut state.rcv, bandwidth(reading.rcv), reading.rcv);
    }

    fn set(self, rate: &mut Rate, value: Option<u64>, rise: Rise) {
        if let Some(value) = value {
            *rate = Rate { value, exact: rise.exact, sweep: self.sweep };
        }
    }
}

/// The bandwidth of a port that was read in this sweep; for utilisation.
pub(crate) fn utilisation_ppm(port: &Port) -> u32 {
    rates::utilisation_ppm(port.state.xmit.value, port.rate.data_rate().bits_per_second())
}
