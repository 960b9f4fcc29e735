//! A toy network in virtual time: lanes with delays of their own, loss, reordering, and a subnet administration.

mod tables;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use weft_machine::{Machine, Time};
use weft_mgmt::rmpp::{Outbox, OutboxLimits};
use weft_wire::{
    AddressedMad, AttributeId, CongestionEvent, DataPacket, Details, GidPrefix, Guid, InformInfo, Lid, Mad,
    Method, MgmtClass, NodeRecord, NodeType, Notice, PathRate, PathRecord, PortFacts, QpNum, RepathDetails,
    RepathKind, SA_CLASS_VERSION, SA_DATA_SIZE, SaMad, SaRecord, ServiceLevel, TrapNumber, sa_status, trap,
};

use crate::stack::{Input, Output, Stack, StackOptions};
use crate::traffic::{Command, FlowReport};

pub(super) const SM_LID: Lid = Lid(99);

/// A generator whose only purpose is that a seed gives the same run again.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub(super) fn permille(&mut self, of: u64) -> bool {
        self.below(1000) < of
    }
}

/// How bad the network is.
#[derive(Clone, Copy, Default)]
pub(super) struct Weather {
    /// Packets of 1000 that are lost.
    pub(super) loss: u64,
    /// Packets of 1000 that come late, behind others.
    pub(super) late: u64,
    /// Packets of 1000 that come twice.
    pub(super) twice: u64,
    /// Packets of 1000 that are marked.
    pub(super) fecn: u64,
}

enum What {
    Data(DataPacket),
    Mad(Box<AddressedMad>),
    Left(ServiceLevel),
    Wake,
}

impl What {
    fn is_own(&self) -> bool {
        matches!(self, Self::Left(_) | Self::Wake)
    }
}

pub(super) struct Network {
    pub(super) now: Time,
    pub(super) hosts: Vec<Stack>,
    facts: Vec<PortFacts>,
    events: BinaryHeap<Reverse<(Time, u64, usize)>>,
    what: BTreeMap<u64, What>,
    wakes: Vec<Option<Time>>,
    count: u64,
    /// Until when a host's link is busy.
    busy: Vec<Time>,
    pub(super) in_adapter: BTreeMap<(usize, u8), u16>,
    pub(super) in_adapter_max: u16,
    /// By service level: what a packet takes to get through.
    pub(super) delays: [Time; 16],
    /// By service level: when the last packet of the lane arrives at a host.
    arrivals: BTreeMap<(usize, u8), Time>,
    pub(super) weather: Weather,
    pub(super) dice: Dice,
    /// By source and destination: what path records say; 0 otherwise.
    pub(super) levels: BTreeMap<(Lid, Lid), ServiceLevel>,
    /// By destination: the rate in path records to it; the hosts' own otherwise.
    pub(super) rates: BTreeMap<Lid, PathRate>,
    /// Who has subscribed to what.
    pub(super) subscribers: BTreeMap<(Lid, u16), u32>,
    /// Whether the administration answers.
    pub(super) sm_alive: bool,
    /// The status with which it answers subscriptions, where it refuses them.
    pub(super) denies_subscriptions: Option<u16>,
    /// Ports that it does not know.
    pub(super) absent: Vec<Guid>,
    pub(super) asked: u32,
    /// The answers in bulk on their way to each host.
    tables: Vec<Outbox>,
    /// How many of the next questions in bulk are answered with BUSY, and how many with an Abort behind the first segment.
    pub(super) busy_answers: u32,
    pub(super) broken: u32,
    /// When questions in bulk have come, and from whom.
    pub(super) asked_in_bulk: Vec<(Time, usize)>,
    pub(super) refusals: Vec<String>,
    /// Events for the log of congestion control that hosts have reported to their agents.
    pub(super) congestion: Vec<(usize, CongestionEvent)>,
    /// Reports that hosts hand on to the functions of their adapters.
    pub(super) handed_on: Vec<(usize, AddressedMad)>,
    pub(super) report_responses: u32,
    pub(super) injected: u64,
    pub(super) lids_seen: BTreeMap<Lid, u64>,
    pub(super) notifications: u64,
    blocked: Vec<(usize, u8)>,
    /// Adapters refuse what is for this queue pair, at once.
    pub(super) refused_for: Option<QpNum>,
    /// Packets refused at one moment.
    refused_now: (Time, u32),
    /// How much later it is by each host's clock.
    clocks: Vec<Time>,
    /// The latest packets that have come to a host, to be repeated late.
    seen: Vec<(usize, DataPacket)>,
    /// Whether subnet administration refuses to notify the peers of hosts that have moved.
    pub(super) denies_tells: bool,
}

pub(super) fn guid(host: usize) -> Guid {
    Guid(0x100 + host as u64)
}

pub(super) fn lid(host: usize) -> Lid {
    Lid(1 + host as u16)
}

impl Network {
    /// Hosts whose ports are active.
    pub(super) fn new(hosts: usize, options: &StackOptions, seed: u64) -> Self {
        let facts = (0..hosts).map(|host| PortFacts {
            guid: guid(host),
            gid_prefix: GidPrefix::DEFAULT,
            active: true,
            lid: lid(host),
            sm_lid: SM_LID,
            mtu: 2048,
            rate: weft_wire::DataRate::from_mbps(16_000),
            link_rate: PathRate::Gb20,
            ..PortFacts::default()
        });
        let mut network = Self {
            now: Time::ZERO,
            hosts: (0..hosts).map(|_| Stack::new(options.clone())).collect(),
            facts: facts.collect(),
            events: BinaryHeap::new(),
            what: BTreeMap::new(),
            wakes: vec![None; hosts],
            count: 0,
            busy: vec![Time::ZERO; hosts],
            in_adapter: BTreeMap::new(),
            in_adapter_max: 0,
            delays: [Time::from_micros(5); 16],
            arrivals: BTreeMap::new(),
            weather: Weather::default(),
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            levels: BTreeMap::new(),
            rates: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            sm_alive: true,
            absent: Vec::new(),
            asked: 0,
            tables: (0..hosts).map(|_| Outbox::new(OutboxLimits::default())).collect(),
            busy_answers: 0,
            broken: 0,
            asked_in_bulk: Vec::new(),
            denies_subscriptions: None,
            refusals: Vec::new(),
            congestion: Vec::new(),
            handed_on: Vec::new(),
            report_responses: 0,
            injected: 0,
            lids_seen: BTreeMap::new(),
            notifications: 0,
            blocked: Vec::new(),
            refused_for: None,
            refused_now: (Time::ZERO, 0),
            clocks: vec![Time::ZERO; hosts],
            seen: Vec::new(),
            denies_tells: false,
        };
        for host in 0..hosts {
            network.tell(host, |_| {});
        }
        network
    }

    /// The adapter tells a host of its port, of which something has changed.
    pub(super) fn tell(&mut self, host: usize, change: impl FnOnce(&mut PortFacts)) {
        change(&mut self.facts[host]);
        let facts = self.facts[host].clone();
        self.facts[host].reregister = false;
        self.feed(host, Input::Port(facts));
    }

    pub(super) fn command(&mut self, host: usize, command: Command) {
        self.feed(host, Input::Command(command));
    }

    /// From now on nothing of a service level leaves a host's adapter.
    pub(super) fn block(&mut self, host: usize, level: u8) {
        self.blocked.push((host, level));
    }

    pub(super) fn feed(&mut self, host: usize, input: Input) {
        let now = self.clock(host);
        self.hosts[host].handle_input(now, input);
        self.drain(host);
    }

    /// The time by a host's clock.
    pub(super) fn clock(&self, host: usize) -> Time {
        self.now + self.clocks[host]
    }

    pub(super) fn suspend(&mut self, host: usize) {
        let now = self.clock(host);
        self.hosts[host].suspend(now);
        self.drain(host);
    }

    pub(super) fn resume(&mut self, host: usize) {
        let now = self.clock(host);
        self.hosts[host].resume(now);
        self.drain(host);
    }

    /// Another host takes a port over: another adapter, and another clock. What is under way to it arrives, or not.
    pub(super) fn replace(&mut self, host: usize, stack: Stack, clock: Time, loss: u64) {
        self.hosts[host] = stack;
        self.clocks[host] = clock;
        (self.wakes[host], self.busy[host]) = (None, self.now);
        self.in_adapter.retain(|(at, _), _| *at != host);
        let (what, dice) = (&mut self.what, &mut self.dice);
        self.events.retain(|Reverse((_, number, at))| {
            let gone = *at == host && (what[number].is_own() || dice.permille(loss));
            if gone {
                what.remove(number);
            }
            !gone
        });
    }

    /// A packet that has come comes again.
    pub(super) fn echo(&mut self) {
        if !self.seen.is_empty() {
            let which = self.dice.below(self.seen.len() as u64) as usize;
            let (host, packet) = self.seen[which];
            self.feed(host, Input::Accept(packet));
        }
    }

    fn at(&mut self, at: Time, host: usize, what: What) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, host)));
        self.what.insert(self.count, what);
    }

    fn drain(&mut self, host: usize) {
        while let Some(output) = self.hosts[host].poll_output() {
            match output {
                Output::Inject(packet) => self.carry(host, packet),
                Output::Send(mad) => self.administer(host, &mad),
                Output::HandOn(report) => self.handed_on.push((host, report)),
                Output::Congestion(event) => self.congestion.push((host, event)),
                Output::Obeyed(outcome) => {
                    self.refusals.extend(outcome.err().map(|error| error.to_string()));
                }
            }
        }
        let wanted = self.hosts[host].poll_timeout();
        let wanted = wanted.map(|at| (at - self.clocks[host]).max(self.now));
        if let Some(at) = wanted.filter(|at| self.wakes[host].is_none_or(|known| *at < known)) {
            self.wakes[host] = wanted;
            self.at(at, host, What::Wake);
        }
    }

    /// The adapter sends one packet after the other; lanes differ in how long they take.
    fn carry(&mut self, host: usize, packet: DataPacket) {
        assert_eq!(packet.slid, self.facts[host].lid);
        self.injected += 1;
        *self.lids_seen.entry(packet.dlid).or_default() += 1;
        let level = packet.service_level;
        let count = self.in_adapter.entry((host, level.0)).or_default();
        *count += 1;
        self.in_adapter_max = self.in_adapter_max.max(*count);
        if self.blocked.contains(&(host, level.0)) {
            return;
        }
        if self.refused_for == Some(packet.dest_qp) {
            self.refuse(host, &packet);
            return;
        }
        let takes = Time::from_nanos(packet.size() as u64 * 8_000 / 16_000);
        let left = self.busy[host].max(self.now) + takes;
        self.busy[host] = left;
        self.at(left, host, What::Left(level));
        let Some(to) = self.facts.iter().position(|facts| facts.lid == packet.dlid) else { return };
        if self.dice.permille(self.weather.loss) {
            return;
        }
        let mut arrives = left + self.delays[usize::from(level.0)];
        if self.dice.permille(self.weather.late) {
            arrives += Time::from_nanos(self.dice.below(40_000));
        } else {
            // A lane keeps its order.
            let last = self.arrivals.entry((to, level.0)).or_default();
            arrives = arrives.max(*last);
            *last = arrives;
        }
        let marked = packet.payload > 0 && self.dice.permille(self.weather.fecn);
        let packet = DataPacket { fecn: marked, ..packet };
        self.notifications += u64::from(packet.becn);
        self.at(arrives, to, What::Data(packet));
        if self.dice.permille(self.weather.twice) {
            self.at(arrives + Time::from_micros(3), to, What::Data(packet));
        }
    }

    /// An adapter does not take a packet, and has room for the next one at the same moment.
    fn refuse(&mut self, host: usize, packet: &DataPacket) {
        let (at, count) = self.refused_now;
        self.refused_now = (self.now, if at == self.now { count + 1 } else { 1 });
        assert!(self.refused_now.1 <= 100, "time does not pass any more");
        let now = self.clock(host);
        self.hosts[host].handle_input(now, Input::Refused { dest_qp: packet.dest_qp });
        self.at(self.now, host, What::Left(packet.service_level));
    }

    /// What subnet administration answers.
    fn administer(&mut self, host: usize, mad: &AddressedMad) {
        if mad.mad.method() == Method::ReportResp {
            self.report_responses += 1;
            return;
        }
        assert_eq!(mad.lid, self.facts[host].sm_lid);
        if mad.mad.attribute_id() == AttributeId::Notice {
            return self.tell_on(host, mad);
        }
        if mad.mad.is_rmpp_active() {
            self.tables[host].handle(self.now, mad);
            return self.send_segments(host);
        }
        self.asked += 1;
        if !self.sm_alive {
            return;
        }
        if mad.mad.method() == Method::GetTable {
            return self.answer_in_bulk(host, mad);
        }
        let mut answer = *mad;
        SaMad::method.set(&mut answer.mad.0, Method::GetResp);
        let data: [u8; SA_DATA_SIZE] = SaMad::data.get(&mad.mad.0);
        if mad.mad.attribute_id() == AttributeId::InformInfo {
            let info = InformInfo::decode(data.first_chunk().unwrap());
            match self.denies_subscriptions {
                Some(status) => SaMad::status.set(&mut answer.mad.0, status),
                None => {
                    *self.subscribers.entry((self.facts[host].lid, info.trap_number.0)).or_default() += 1;
                }
            }
        } else {
            let is_path = mad.mad.attribute_id() == PathRecord::ATTRIBUTE;
            let asked = PathRecord::from_bytes(&data);
            let mut node = NodeRecord::from_bytes(&data);
            let to = if is_path { asked.dgid.guid } else { node.node_info.port_guid };
            let known = self.facts.iter().find(|facts| facts.guid == to && !self.absent.contains(&to));
            let mut data = [0; SA_DATA_SIZE];
            match known.map(|facts| facts.lid) {
                None => SaMad::status.set(&mut answer.mad.0, sa_status::NO_RECORDS),
                Some(dlid) if is_path => {
                    let slid = self.facts[host].lid;
                    let sl = self.levels.get(&(slid, dlid)).copied().unwrap_or_default();
                    let rate = self.rates.get(&dlid).copied().unwrap_or(PathRate::Gb20);
                    data[..64].copy_from_slice(&PathRecord { slid, dlid, sl, rate, ..asked }.encode());
                }
                Some(lid) => {
                    node.lid = lid;
                    data[..NodeRecord::SIZE].copy_from_slice(&node.encode());
                }
            }
            SaMad::data.set(&mut answer.mad.0, data);
        }
        self.at(self.now + Time::from_micros(20), host, What::Mad(Box::new(answer)));
    }

    /// A host has others notified that its port has moved.
    fn tell_on(&mut self, host: usize, mad: &AddressedMad) {
        let mut answer = *mad;
        SaMad::method.set(&mut answer.mad.0, Method::GetResp);
        let data: [u8; SA_DATA_SIZE] = SaMad::data.get(&mad.mad.0);
        let notice = Notice::decode(data.first_chunk().unwrap());
        let Details::Repath(trap::REPATH, details) = notice.details() else { panic!("{notice:?}") };
        assert_eq!((details.kind, details.guid), (RepathKind::NEW_LID, self.facts[host].guid));
        assert_eq!(details.dlid, self.facts[host].lid);
        match self.facts.iter().position(|facts| facts.lid == details.target) {
            _ if self.denies_tells => SaMad::status.set(&mut answer.mad.0, sa_status::REQ_DENIED),
            None => SaMad::status.set(&mut answer.mad.0, sa_status::REQ_INVALID),
            Some(target) => {
                self.repath(target, trap::REPATH, RepathDetails { target: Lid(0), ..details });
            }
        }
        self.at(self.now + Time::from_micros(20), host, What::Mad(Box::new(answer)));
    }

    /// Reports a trap to a host.
    pub(super) fn report(&mut self, host: usize, details: &Details) {
        let mut mad = Mad::default();
        SaMad::base_version.set(&mut mad.0, 1);
        SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
        SaMad::method.set(&mut mad.0, Method::Report);
        SaMad::attribute_id.set(&mut mad.0, AttributeId::Notice);
        let mut data = [0; SA_DATA_SIZE];
        data[..Notice::SIZE]
            .copy_from_slice(&Notice::generic(NodeType::from_code(4), SM_LID, details).encode());
        SaMad::data.set(&mut mad.0, data);
        self.feed(host, Input::Receive(AddressedMad::gmp(SM_LID, ServiceLevel(0), mad)));
    }

    pub(super) fn repath(&mut self, host: usize, number: TrapNumber, details: RepathDetails) {
        self.report(host, &Details::Repath(number, details));
    }

    pub(super) fn hot_spot(&mut self, host: usize, dlid: Lid, slow: u8, begins: bool) {
        let number = if begins { trap::REPATH } else { trap::UNPATH };
        let (kind, service_level) = (RepathKind::HOT_SPOT, ServiceLevel(slow));
        self.repath(host, number, RepathDetails { kind, service_level, dlid, ..RepathDetails::default() });
    }

    /// Lets so much time pass.
    pub(super) fn run(&mut self, span: Time) {
        let end = self.now + span;
        while let Some(Reverse((at, number, host))) = self.events.pop() {
            if at > end {
                self.events.push(Reverse((at, number, host)));
                break;
            }
            self.now = at;
            let wake = self.wakes[host] == Some(at);
            let at = self.clock(host);
            match self.what.remove(&number).unwrap() {
                What::Data(packet) => {
                    self.seen.push((host, packet));
                    let excess = self.seen.len().saturating_sub(200);
                    self.seen.drain(..excess);
                    self.hosts[host].handle_input(at, Input::Accept(packet));
                }
                What::Mad(mad) => self.hosts[host].handle_input(at, Input::Receive(*mad)),
                What::Left(service_level) => {
                    *self.in_adapter.get_mut(&(host, service_level.0)).unwrap() -= 1;
                    self.hosts[host].handle_input(at, Input::Injected { service_level, packets: 1 });
                }
                What::Wake => {
                    if wake {
                        self.wakes[host] = None;
                    }
                    self.hosts[host].handle_timeout(at);
                }
            }
            self.drain(host);
        }
        self.now = end;
    }

    /// Runs until the condition holds, at most so long.
    pub(super) fn run_until(&mut self, most: Time, mut holds: impl FnMut(&Self) -> bool) {
        let end = self.now + most;
        while !holds(self) {
            assert!(self.now < end, "it does not come to be: {:#?}", self.reports());
            self.run(Time::from_micros(50));
        }
    }

    pub(super) fn reports(&self) -> Vec<FlowReport> {
        self.hosts.iter().flat_map(Stack::reports).collect()
    }

    pub(super) fn sent(&self, host: usize, flow: u32) -> FlowReport {
        let reports = self.hosts[host].reports();
        reports.into_iter().find(|report| report.sender && report.flow.0 == flow).unwrap()
    }

    pub(super) fn received(&self, host: usize, flow: u32) -> FlowReport {
        let reports = self.hosts[host].reports();
        reports.into_iter().find(|report| !report.sender && report.flow.0 == flow).unwrap()
    }
}
