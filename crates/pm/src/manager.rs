//! The manager: gives MADs and time to those whose they are, and lets detection follow each sweep.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Machine, Time, Timer};
use weft_vocabulary::HexGuid;
use weft_vocabulary::pm::{self, End, Event, HotSpot, Statistics};
use weft_wire::{
    AddressedMad, AttributeId, Details, Guid, Lid, Method, MgmtClass, Notice, PortNum, SaMad, sa_attribute,
};

use crate::detect::{self, Detector, Facing, Finding, Source};
use crate::fabric::{Fabric, Port, Rate};
use crate::learn::{self, Learn, Outcome, OwnPort};
use crate::moves::{HostPort, Moves};
use crate::report::Reports;
use crate::snapshot::{PortSnapshot, Snapshot};
use crate::sweep::{Sweep, utilisation_ppm};
use crate::{DetectorKind, Input, Options, Output, PmTimer, request};

/// The performance manager.
#[derive(Debug)]
pub struct PerformanceManager {
    options: Options,
    attached: bool,
    /// Whether the fabric has been learned since the port came up: before, no one can be reached.
    ready: bool,
    own: OwnPort,
    fabric: Fabric,
    /// A fabric that waits for the sweep to end.
    learned: Option<Fabric>,
    learn: Learn,
    sweep: Sweep,
    detector: Detector,
    moves: Moves,
    reports: Reports,
    withdrawn: bool,
    counts: Statistics,
    /// Bounded by the windows and by what one sweep can find, because the driver drains it after each input.
    outputs: VecDeque<Output>,
}

impl PerformanceManager {
    /// A manager that is not attached yet.
    pub fn new(options: Options) -> Self {
        let options = options.sound();
        let limits = detect::Limits {
            threshold: options.threshold,
            further: options.further_threshold.max(options.threshold),
            utilisation_ppm: options.utilisation_limit_ppm(),
            hysteresis: options.hysteresis,
            is_printed: options.detector == DetectorKind::Printed,
        };
        Self {
            attached: false,
            ready: false,
            own: OwnPort::default(),
            fabric: Fabric::default(),
            learned: None,
            learn: Learn::new(&options),
            sweep: Sweep::new(&options),
            detector: Detector::new(limits),
            moves: Moves::new(&options),
            reports: Reports::new(&options),
            withdrawn: false,
            counts: Statistics::default(),
            outputs: VecDeque::new(),
            options,
        }
    }

    /// What the operator has chosen, as the manager uses it.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether the fabric is known and swept.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    fn attach(&mut self, now: Time, port: PortNum, guid: Guid) {
        self.detach(now);
        self.attached = true;
        self.learn.attach(now, port, guid);
    }

    fn detach(&mut self, now: Time) {
        self.attached = false;
        self.unready(now);
        self.learn.stop();
    }

    /// No one can be reached any more.
    fn unready(&mut self, now: Time) {
        self.ready = false;
        self.sweep.abandon(now);
        self.moves.abandon(now);
        self.reports.abandon(now);
    }

    fn port_changed(&mut self, now: Time, up: bool) {
        if !self.attached {
            return;
        }
        if !up {
            self.unready(now);
        }
        self.learn.begin_anew(now);
    }

    fn receive(&mut self, now: Time, mad: &AddressedMad) {
        if !self.attached {
            self.counts.ignored += 1;
        } else if Sweep::is_answer(mad) {
            self.sweep.receive(now, mad, &mut self.fabric);
        } else if request::is_answer_about(AttributeId::Notice, mad) {
            let event = self.moves.receive(now, mad);
            self.outputs.extend(event.map(Output::Event));
        } else if request::is_answer_about(sa_attribute::RECEIVED_DATA, mad) {
            let event = self.reports.receive(now, mad);
            self.outputs.extend(event.map(Output::Event));
        } else if mad.mad.class() == MgmtClass::SubnAdm && mad.mad.method() == Method::Report {
            self.hear(now, mad);
        } else if mad.mad.method().is_response() {
            let outputs = &mut self.outputs;
            let outcome = self.learn.receive(now, mad, &mut |mad| outputs.push_back(Output::Send(mad)));
            self.learning_ended(now, outcome);
        } else {
            self.counts.ignored += 1;
        }
    }

    /// A Report: somebody has come or gone, or a port has changed.
    fn hear(&mut self, now: Time, report: &AddressedMad) {
        if report.mad.attribute_id() != AttributeId::Notice {
            self.counts.ignored += 1;
            return;
        }
        self.counts.reports += 1;
        self.outputs.push_back(Output::Send(request::report_response(report)));
        let data = SaMad::data.get(&report.mad.0);
        let Some(notice) = data.first_chunk().map(Notice::decode) else { return };
        match notice.details() {
            Details::Gid(_, details) => {
                self.moves.is_new(details.gid.guid);
                self.learn.wish(now, learn::SETTLE);
            }
            Details::Switch(..) => self.learn.wish(now, learn::SETTLE_LINKS),
            _ => {}
        }
    }

    fn learning_ended(&mut self, now: Time, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Learned(own, fabric)) => {
                self.counts.learned += 1;
                if self.own.sm_lid != own.sm_lid && self.own.sm_lid != Lid(0) {
                    self.forgotten();
                }
                self.own = own;
                self.sweep.service_level = own.service_level;
                self.moves.own = own;
                self.reports.own = own;
                self.learned = Some(fabric);
                self.ready = true;
                if self.sweep.running.is_none() {
                    self.take_fabric();
                }
                self.moves.ask(now);
            }
            Some(Outcome::Forgotten) => {
                self.forgotten();
                self.learn.begin_anew(now);
            }
            Some(Outcome::Failed(question, status)) => {
                self.counts.not_learned += 1;
                self.outputs.push_back(Output::Event(Event::NotLearned { question, status }));
            }
            None => {}
        }
    }

    /// Hosts forget hot spots with the subnet manager that notified them, and it what it has learned.
    fn forgotten(&mut self) {
        self.moves.are_new();
        self.reports.manager_is_new();
        self.outputs.push_back(Output::Event(Event::Forgotten));
    }

    /// From now on the fabric that was learned last is swept.
    fn take_fabric(&mut self) {
        let Some(mut fabric) = self.learned.take() else { return };
        fabric.inherit(std::mem::take(&mut self.fabric));
        self.fabric = fabric;
        self.sweep.begin_with(&self.fabric);
        let hcas = self.fabric.ports.iter().filter(|port| self.fabric.is_hca(port));
        let hosts: BTreeMap<Guid, Lid> = hcas.map(|port| (port.guid, port.lid)).collect();
        self.moves.hosts_are(&hosts);
        let (nodes, ports) = (self.fabric.nodes.len() as u64, self.fabric.ports.len() as u64);
        self.outputs.push_back(Output::Event(Event::Learned { nodes, ports }));
    }

    /// Goes on until nothing can be done before the next input or deadline.
    fn run(&mut self, now: Time) {
        if !self.attached {
            return;
        }
        let outputs = &mut self.outputs;
        self.learn.run(now, &mut |mad| outputs.push_back(Output::Send(mad)));
        while self.ready {
            let outputs = &mut self.outputs;
            let send = &mut |mad| outputs.push_back(Output::Send(mad));
            let ended = self.sweep.run(now, &mut self.fabric, send);
            self.outputs.extend(self.sweep.changes.drain(..).map(Output::Event));
            let Some(ended) = ended else { break };
            self.swept(now, ended);
        }
        while self.ready {
            let sent = self.moves.poll_transmit(now).or_else(|| self.reports.poll_transmit(now));
            let Some(mad) = sent else { break };
            self.outputs.push_back(Output::Send(mad));
        }
    }

    /// A sweep has ended: algorithm 1.
    fn swept(&mut self, now: Time, ended: Event) {
        let number = self.sweep.counts.sweeps;
        self.outputs.push_back(Output::Event(ended));
        let facing = self.facing(number);
        for finding in self.detector.judge(number, &facing) {
            let event = match finding {
                Finding::Began { host, lid, congestion } => {
                    self.counts.hot_spots_found += 1;
                    Event::HotSpot { lid, port_guid: host.into(), congestion }
                }
                Finding::Ended { host, lid } => {
                    self.moves.want_fast(now, lid);
                    Event::HotSpotEnded { lid, port_guid: host.into() }
                }
            };
            self.outputs.push_back(Output::Event(event));
        }
        if self.options.repath && !self.withdrawn {
            self.tell(now, number);
        }
        self.watch_hot_spots();
        self.moves.ask(now);
        self.reports.swept(number, &self.fabric);
        self.take_fabric();
    }

    /// Has the lanes of hot spots' ports read from the next sweep on.
    fn watch_hot_spots(&mut self) {
        let leads = |port: &Port| {
            let host = self.fabric.host_behind(port);
            host.is_some_and(|host| self.detector.hot.contains_key(&host.guid))
        };
        let hot: Vec<bool> = self.fabric.ports.iter().map(leads).collect();
        for (port, is_hot) in self.fabric.ports.iter_mut().zip(hot) {
            port.state.is_hot = is_hot;
        }
    }

    /// The switches' ports towards hosts.
    fn facing(&self, sweep: u64) -> Vec<Facing> {
        let leads = |port: &Port| {
            let host = self.fabric.host_behind(port)?;
            let Rate { value, exact, .. } = port.state.congestion;
            let congestion = (port.state.congestion.sweep == sweep).then_some((value, exact));
            let slow = port.state.slow_wait;
            let slow_wait = (slow.sweep == sweep && slow.exact).then_some(slow.value);
            Some(Facing { host: host.guid, lid: host.lid, congestion, slow_wait })
        };
        self.fabric.ports.iter().filter_map(leads).collect()
    }

    /// Asks contributors and victims to keep to the slow lane towards every hot spot.
    fn tell(&mut self, now: Time, sweep: u64) {
        if self.detector.hot.is_empty() {
            return;
        }
        let sources = self.fabric.ports.iter().filter_map(|port| self.source(port, sweep));
        let sources: Vec<Source> = sources.collect();
        self.detector.look_at(&sources);
        for source in &sources {
            let contributes = self.detector.contributes(source);
            for (hot_spot, spot) in &self.detector.hot {
                if !contributes && !self.detector.may_contribute(sweep, spot, source) {
                    continue;
                }
                let host = HostPort { lid: source.lid, guid: source.host };
                let hot = HostPort { lid: spot.lid, guid: *hot_spot };
                if *hot_spot == source.host || !self.moves.want_slow(now, hot, host) {
                    continue;
                }
                self.outputs.push_back(Output::Event(Event::Contributor {
                    hot_spot: spot.lid,
                    lid: source.lid,
                    port_guid: source.host.into(),
                    congestion: source.congestion.unwrap_or(0),
                    utilisation_ppm: source.utilisation_ppm.unwrap_or(0),
                }));
            }
        }
    }

    /// A host's own port in this sweep; `None` of a switch's.
    fn source(&self, port: &Port, sweep: u64) -> Option<Source> {
        let state = &port.state;
        let congestion = (state.congestion.sweep == sweep).then_some(state.congestion.value);
        let known = state.xmit.sweep == sweep && state.xmit.exact;
        let utilisation_ppm = known.then(|| utilisation_ppm(port));
        let source = Source { host: port.guid, lid: port.lid, congestion, utilisation_ppm };
        self.fabric.is_hca(port).then_some(source)
    }

    fn withdraw(&mut self, now: Time) {
        self.withdrawn = true;
        self.moves.withdraw(now);
        if self.ready {
            self.moves.ask(now);
        }
    }

    /// Pairs of host and hot spot that are not known to be as wanted; 0 when a manager that was
    /// asked to withdraw has done so.
    pub fn moves(&self) -> usize {
        self.moves.unsettled()
    }

    /// Everything that is known.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let mut contributors: BTreeMap<Lid, Vec<HexGuid>> = BTreeMap::new();
        let mut hosts = BTreeSet::new();
        for (hot_spot, host) in self.moves.slow() {
            contributors.entry(hot_spot).or_default().push(host.into());
            hosts.insert(host);
        }
        let hot_spots = self.detector.hot.iter().map(|(guid, spot)| HotSpot {
            lid: spot.lid,
            port_guid: HexGuid(*guid),
            since_sweep: spot.since,
            contributors: contributors.remove(&spot.lid).unwrap_or_default(),
        });
        Snapshot {
            time: now,
            ready: self.ready,
            lid: self.own.lid,
            sm_lid: self.own.sm_lid,
            slow_sl: self.options.slow_sl,
            dilation: self.options.dilation,
            hot_spots: hot_spots.collect(),
            ports: self.fabric.ports.iter().map(|port| self.port_snapshot(port, &hosts)).collect(),
            moves: self.moves.unsettled(),
            statistics: self.statistics(),
        }
    }

    fn end_snapshot(&self, port: &Port) -> End {
        let node = self.fabric.node_of(port);
        End {
            name: node.map_or_else(String::new, |node| node.name.clone()),
            kind: node.map(|node| node.kind).unwrap_or_default().into(),
            node_guid: node.map(|node| node.guid).unwrap_or_default().into(),
            port_guid: port.guid.into(),
            lid: port.lid,
            port: port.num,
        }
    }

    fn port_snapshot(&self, port: &Port, contributors: &BTreeSet<Guid>) -> PortSnapshot {
        let state = &port.state;
        let is_hot = |host: &Port| self.detector.hot.contains_key(&host.guid);
        let shown = pm::Port {
            end: self.end_snapshot(port),
            peer: self.fabric.peer(port).map(|peer| self.end_snapshot(peer)),
            rate_bits: port.rate.data_rate().bits_per_second(),
            totals: state.counters.totals(),
            lane_waits: state.lanes.totals(),
            read_at: state.basic_at,
            silent: self.fabric.node_of(port).is_some_and(|node| node.silent),
            refuses: state.refused != 0,
            congestion: state.congestion.value,
            xmit_bandwidth: state.xmit.value,
            rcv_bandwidth: state.rcv.value,
            utilisation: f64::from(utilisation_ppm(port)) / 1e6,
            hot_spot: self.fabric.host_behind(port).is_some_and(is_hot),
            contributor: contributors.contains(&port.guid) && self.fabric.is_hca(port),
        };
        PortSnapshot { shown, rate: port.rate, errors: state.errors.totals() }
    }

    /// What the manager has done.
    pub fn statistics(&self) -> Statistics {
        let (sweeps, wire) = (&self.sweep.counts, self.sweep.stats());
        let (probes, notices, moves) = (self.sweep.probe_stats(), self.moves.stats(), &self.moves.counts);
        let (parts, reports) = (self.reports.stats(), &self.reports.counts);
        Statistics {
            nodes: self.fabric.nodes.len() as u64,
            ports: self.fabric.ports.len() as u64,
            silent_nodes: self.sweep.silent as u64,
            sweeps: sweeps.sweeps,
            late_sweeps: sweeps.late,
            sweep_last: sweeps.last,
            sweep_longest: sweeps.longest,
            sweep_all: sweeps.all,
            requests: wire.sent,
            retries: wire.retries,
            timeouts: wire.timeouts,
            failures: wire.failed,
            refused: sweeps.refused,
            unmatched: wire.unmatched
                + probes.unmatched
                + notices.unmatched
                + parts.unmatched
                + self.learn.ignored,
            in_flight_max: u64::from(wire.in_flight_max),
            round_trips: wire.rtt.count,
            round_trip_all: wire.rtt.sum,
            probes: probes.sent,
            silences: sweeps.silences,
            resets: sweeps.resets,
            counters_stopped: sweeps.stopped,
            counters_fallen: sweeps.fallen,
            learn_requests: self.learn.sent,
            subscriptions_failed: self.learn.unsubscribed,
            repaths: moves.repaths,
            unpaths: moves.unpaths,
            notices_refused: moves.refused,
            notices_unanswered: moves.unanswered,
            unpaths_given_up: moves.given_up,
            moves_dropped: moves.dropped,
            received_reports: reports.taken,
            received_given_up: reports.given_up,
            received_requests: parts.sent,
            received_left_out: reports.left_out,
            ..self.counts
        }
    }
}

impl Machine for PerformanceManager {
    type Input = Input;
    type Output = Output;
    type Reason = PmTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Attached { port, port_guid, .. } => self.attach(now, port, port_guid),
            Input::Detached => self.detach(now),
            Input::Receive(mad) => self.receive(now, &mad),
            Input::PortChanged { up } => self.port_changed(now, up),
            Input::Refresh if self.attached => self.learn.begin_anew(now),
            Input::Refresh => {}
            Input::Withdraw => self.withdraw(now),
        }
        self.run(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if !self.attached {
            return;
        }
        let outputs = &mut self.outputs;
        let outcome = self.learn.expire(now, &mut |mad| outputs.push_back(Output::Send(mad)));
        self.learning_ended(now, outcome);
        if self.sweep.expire(now, &mut self.fabric) {
            self.learn.wish(now, learn::SETTLE);
        }
        while let Some(event) = self.moves.poll_failed(now) {
            self.outputs.push_back(Output::Event(event));
        }
        let event = self.reports.poll_failed(now);
        self.outputs.extend(event.map(Output::Event));
        self.run(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<PmTimer>> {
        if !self.attached {
            return None;
        }
        let sweeping =
            Timer::earliest([self.sweep.next_timer(), self.moves.next_timer(), self.reports.next_timer()]);
        Timer::earliest([self.learn.next_timer(), sweeping.filter(|_| self.ready)])
    }
}
