//! A fabric that is nothing but tables and counters, and answers MADs in virtual time.
#![allow(clippy::unwrap_used, dead_code)]

mod counters;

use std::collections::BTreeMap;

use weft_machine::{Machine, Time};
use weft_mgmt::rmpp::{Outbox, OutboxLimits, Timing};
use weft_pm::{Event, Input, Options, Output, PerformanceManager};
use weft_wire::{
    AddressedMad, AttributeId, ClassPortInfo, Details, Gid, Guid, InformInfo, InformInfoRecord, Lid,
    LinkRecord, Mad, Method, MgmtClass, NodeDescription, NodeInfo, NodeRecord, NodeType, Notice, PERF_DATA,
    PortInfo, PortInfoRecord, PortNum, PortState, ReceivedData, RepathDetails, RmppHeader, SaMad, SaRecord,
    ServiceLevel, SmKey, Smp, TrapNumber, sa_attribute, status,
};

/// One counter: what it has, and by how much it rises in a second of machine time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) base: u64,
    pub(crate) rate: u64,
    pub(crate) since: Time,
}

impl Count {
    pub(crate) fn at(&self, now: Time) -> u64 {
        let rise = u128::from(self.rate) * u128::from((now - self.since).as_nanos()) / 1_000_000_000;
        self.base.wrapping_add(rise as u64)
    }

    pub(crate) fn set_rate(&mut self, now: Time, rate: u64) {
        *self = Self { base: self.at(now), rate, since: now };
    }

    pub(crate) fn set(&mut self, now: Time, base: u64) {
        *self = Self { base, since: now, ..*self };
    }
}

/// A port's counters.
#[derive(Clone, Default)]
pub(crate) struct Port {
    pub(crate) wait: Count,
    pub(crate) xmit: Count,
    pub(crate) rcv: Count,
    pub(crate) symbol_errors: u64,
    pub(crate) lane_waits: [Count; 16],
    pub(crate) dlid_mapping_errors: u64,
}

/// A node.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) guid: u64,
    pub(crate) kind: NodeType,
    pub(crate) name: String,
    pub(crate) ports: BTreeMap<u8, Port>,
    pub(crate) dead: bool,
    /// Whether it has PortCountersExtended, and PortRcvErrorDetails.
    pub(crate) extended: bool,
    pub(crate) details: bool,
    /// What it answers with an error.
    pub(crate) refuses: Option<AttributeId>,
}

/// What the manager asked the subnet manager to tell hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) at: Time,
    pub(crate) trap: TrapNumber,
    pub(crate) details: RepathDetails,
}

pub(crate) struct Fake {
    pub(crate) now: Time,
    pub(crate) manager: PerformanceManager,
    pub(crate) nodes: BTreeMap<u16, Node>,
    pub(crate) links: BTreeMap<(u16, u8), (u16, u8)>,
    pub(crate) own: (u16, u8),
    pub(crate) sm_lid: u16,
    pub(crate) sm_is_dead: bool,
    pub(crate) notice_status: u16,
    /// Parts of reports of what hosts receive, when they came, and the status of the answer to them.
    pub(crate) parts: Vec<(Time, ReceivedData)>,
    pub(crate) part_status: u16,
    pub(crate) report_number: u32,
    /// The numbers in requests for a report's number: of a report that is repeated, or 0.
    pub(crate) repeated: Vec<u32>,
    /// The keys that notices and reports were shown with.
    pub(crate) keys: Vec<SmKey>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) events: Vec<(Time, Event)>,
    /// Everything that was sent, by attribute.
    pub(crate) sent: BTreeMap<(u8, u16, u8), u64>,
    pub(crate) service_levels: Vec<ServiceLevel>,
    /// What it sent last.
    pub(crate) last: Option<AddressedMad>,
    /// Reports are acknowledged.
    pub(crate) report_responses: u64,
    /// Whether a MAD to the fabric, or from it, is lost.
    pub(crate) lose: Box<dyn FnMut(&AddressedMad) -> bool>,
    pub(crate) round_trip: Time,
    subscriptions: Vec<TrapNumber>,
    outbox: Outbox,
    flying: BTreeMap<(Time, u64), AddressedMad>,
    next: u64,
}

impl Fake {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            now: Time::ZERO,
            manager: PerformanceManager::new(options),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            own: (0, 0),
            sm_lid: 1,
            sm_is_dead: false,
            notice_status: status::OK,
            parts: Vec::new(),
            part_status: status::OK,
            report_number: 40,
            repeated: Vec::new(),
            keys: Vec::new(),
            asked: Vec::new(),
            events: Vec::new(),
            sent: BTreeMap::new(),
            service_levels: Vec::new(),
            last: None,
            report_responses: 0,
            lose: Box::new(|_| false),
            round_trip: Time::from_micros(100),
            subscriptions: Vec::new(),
            outbox: Outbox::new(OutboxLimits::default()),
            flying: BTreeMap::new(),
            next: 0,
        }
    }

    pub(crate) fn add(&mut self, lid: u16, kind: NodeType, name: &str) {
        let (guid, ports) = (u64::from(lid) << 16, BTreeMap::new());
        let (name, dead, extended, details, refuses) = (name.to_owned(), false, true, true, None);
        let node = Node { guid, kind, name, ports, dead, extended, details, refuses };
        self.nodes.insert(lid, node);
    }

    pub(crate) fn cable(&mut self, from: (u16, u8), to: (u16, u8)) {
        for (a, b) in [(from, to), (to, from)] {
            self.links.insert(a, b);
            self.nodes.get_mut(&a.0).unwrap().ports.insert(a.1, Port::default());
        }
    }

    pub(crate) fn port(&mut self, lid: u16, port: u8) -> &mut Port {
        self.nodes.get_mut(&lid).unwrap().ports.get_mut(&port).unwrap()
    }

    /// Sets what a port does per second of machine time: ticks that it waits, words that it sends.
    pub(crate) fn traffic(&mut self, lid: u16, port: u8, wait: u64, words: u64) {
        let now = self.now;
        let port = self.port(lid, port);
        port.wait.set_rate(now, wait);
        port.xmit.set_rate(now, words);
    }

    /// The PGFT of experiments I and II: root 1, leaves 2 to 4, hosts 11 to 16; leaf port 1 and 2 up.
    pub(crate) fn experiment_i(options: Options) -> Self {
        let mut fake = Self::new(options);
        for (lid, name) in [(1, "R"), (2, "A"), (3, "B"), (4, "C")] {
            fake.add(lid, NodeType::Switch, name);
        }
        for host in 1..=6 {
            fake.add(10 + host, NodeType::Hca, &format!("host {host}"));
        }
        for leaf in 0..3u8 {
            let lid = 2 + u16::from(leaf);
            for up in 1..=2 {
                fake.cable((lid, up), (1, leaf * 2 + up));
                fake.cable((lid, 2 + up), (10 + u16::from(leaf * 2 + up), 1));
            }
        }
        (fake.own, fake.sm_lid) = ((14, 1), 11);
        fake
    }

    pub(crate) fn attach(&mut self) {
        let guid = self.nodes[&self.own.0].guid;
        let (node_guid, port_guid, port) = (Guid(guid), Guid(guid + 1), PortNum(self.own.1));
        self.input(Input::Attached { node_guid, port_guid, port });
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.manager.handle_input(self.now, input);
        self.drain();
    }

    /// Lets time pass until then.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let wake = self.manager.poll_timeout();
            let sender = self.outbox.next_timer().map(|timer| timer.at);
            let next = [arrival, wake, sender].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let (_, mad) = self.flying.pop_first().unwrap();
                if !(self.lose)(&mad) {
                    self.manager.handle_input(self.now, Input::Receive(mad));
                }
            } else if sender == Some(at) {
                self.outbox.handle_timeout(self.now);
            } else {
                self.manager.handle_timeout(self.now);
                let again = self.manager.poll_timeout();
                let drained = self.drain();
                assert!(again.is_none_or(|again| again > self.now) || drained, "it wakes for nothing");
            }
            self.drain();
        }
        self.now = end;
    }

    pub(crate) fn run_for(&mut self, time: Time) {
        self.run_until(self.now + time);
    }

    fn drain(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.manager.poll_output() {
            any = true;
            match output {
                Output::Event(event) => self.events.push((self.now, event)),
                Output::Send(mad) => self.take(&mad),
            }
        }
        while let Some(mad) = self.outbox.poll_transmit(self.now) {
            self.fly(mad);
        }
        while self.outbox.poll_finished().is_some() {}
        any
    }

    fn fly(&mut self, mad: AddressedMad) {
        self.next += 1;
        self.flying.insert((self.now + self.round_trip, self.next), mad);
    }

    fn take(&mut self, sent: &AddressedMad) {
        self.last = Some(*sent);
        let header = sent.mad.header();
        let key = (header.mgmt_class.code(), header.attribute_id.code(), header.method.code());
        *self.sent.entry(key).or_default() += 1;
        if !sent.mad.is_smp() && !self.service_levels.contains(&sent.service_level) {
            self.service_levels.push(sent.service_level);
        }
        if header.method == Method::ReportResp {
            self.report_responses += 1;
            return;
        }
        if (self.lose)(sent) {
            return;
        }
        let answer = match header.mgmt_class {
            MgmtClass::SubnDirected => self.own_port(&sent.mad),
            MgmtClass::SubnAdm if sent.lid.0 == self.sm_lid && !self.sm_is_dead => self.administer(sent),
            MgmtClass::Perf => self.performance(sent),
            _ => None,
        };
        if let Some(mad) = answer {
            self.fly(AddressedMad { mad, ..*sent });
        }
    }

    fn own_port(&self, request: &Mad) -> Option<Mad> {
        let mut answer = *request;
        Smp::method.set(&mut answer.0, Method::GetResp);
        let info = PortInfo {
            lid: Lid(self.own.0),
            master_sm_lid: Lid(self.sm_lid),
            master_sm_sl: ServiceLevel(7),
            port_state: PortState::Active,
            ..PortInfo::default()
        };
        answer.set_smp_data(&info.encode());
        Some(answer)
    }

    fn administer(&mut self, sent: &AddressedMad) -> Option<Mad> {
        let mut answer = sent.mad;
        let data = SaMad::data.get(&sent.mad.0);
        let mut body = Vec::new();
        if matches!(sent.mad.attribute_id(), AttributeId::Notice | sa_attribute::RECEIVED_DATA) {
            self.keys.push(SaMad::sm_key.get(&sent.mad.0));
        }
        match (sent.mad.method(), sent.mad.attribute_id()) {
            _ if sent.mad.is_rmpp_active() => {
                self.outbox.handle(self.now, sent);
                return None;
            }
            (Method::Set, AttributeId::InformInfo) => {
                let info = InformInfo::decode(data.first_chunk().unwrap());
                self.subscriptions.push(info.trap_number);
                SaMad::method.set(&mut answer.0, Method::GetResp);
                return Some(answer);
            }
            (Method::Set, AttributeId::Notice) => {
                let notice = Notice::decode(data.first_chunk().unwrap());
                let Details::Repath(trap, details) = notice.details() else { panic!("no repath") };
                self.asked.push(Asked { at: self.now, trap, details });
                SaMad::method.set(&mut answer.0, Method::GetResp);
                SaMad::status.set(&mut answer.0, self.notice_status);
                return Some(answer);
            }
            (Method::Get, sa_attribute::RECEIVED_DATA) => {
                self.report_number += 1;
                self.repeated.push(ReceivedData::decode(&data).report);
                let begun = ReceivedData { report: self.report_number, ..ReceivedData::default() };
                SaMad::data.set(&mut answer.0, begun.encode());
                SaMad::method.set(&mut answer.0, Method::GetResp);
                return Some(answer);
            }
            (Method::Set, sa_attribute::RECEIVED_DATA) => {
                self.parts.push((self.now, ReceivedData::decode(&data)));
                SaMad::method.set(&mut answer.0, Method::GetResp);
                SaMad::status.set(&mut answer.0, self.part_status);
                return Some(answer);
            }
            (_, sa_attribute::INFORM_INFO_RECORD) => self.inform_records(&mut body),
            (_, sa_attribute::NODE_RECORD) => self.node_records(&mut body),
            (_, sa_attribute::PORT_INFO_RECORD) => self.port_records(&mut body),
            (_, sa_attribute::LINK_RECORD) => self.link_records(&mut body),
            other => panic!("{other:?} was asked of subnet administration"),
        };
        let offset = match sent.mad.attribute_id() {
            sa_attribute::INFORM_INFO_RECORD => InformInfoRecord::OFFSET,
            sa_attribute::NODE_RECORD => NodeRecord::OFFSET,
            sa_attribute::PORT_INFO_RECORD => PortInfoRecord::OFFSET,
            _ => LinkRecord::OFFSET,
        };
        SaMad::method.set(&mut answer.0, Method::GetTableResp);
        SaMad::attribute_offset.set(&mut answer.0, offset);
        answer.set_rmpp(&RmppHeader::default());
        let message = [&answer.0[..56], &body].concat();
        let to = AddressedMad { mad: answer, ..*sent };
        // The repetition of a request that is being answered is refused here.
        let _ = self.outbox.offer(self.now, &to, message, &Timing::default());
        None
    }

    /// The manager's own subscriptions.
    fn inform_records(&self, body: &mut Vec<u8>) {
        let guid = Guid(self.nodes[&self.own.0].guid + 1);
        for trap_number in &self.subscriptions {
            let inform_info = InformInfo { trap_number: *trap_number, ..InformInfo::default() };
            let subscriber_gid = Gid { guid, ..Gid::default() };
            let record = InformInfoRecord { subscriber_gid, inform_info, ..InformInfoRecord::default() };
            append(body, &record);
        }
    }

    /// The subnet manager begins again: no one has subscribed.
    pub(crate) fn restart_sm(&mut self) {
        self.subscriptions.clear();
    }

    fn node_records(&self, body: &mut Vec<u8>) {
        for (lid, node) in &self.nodes {
            let record = NodeRecord {
                lid: Lid(*lid),
                node_info: NodeInfo {
                    node_type: node.kind,
                    node_guid: Guid(node.guid),
                    port_guid: Guid(node.guid + 1),
                    ..NodeInfo::default()
                },
                node_description: NodeDescription::new(&node.name),
                ..NodeRecord::default()
            };
            append(body, &record);
        }
    }

    fn port_records(&self, body: &mut Vec<u8>) {
        for (lid, node) in &self.nodes {
            for port in node.ports.keys() {
                let port_info = PortInfo {
                    port_state: PortState::Active,
                    link_width_active: 2,
                    link_speed_active: 2,
                    ..PortInfo::default()
                };
                let port_num = PortNum(*port);
                append(body, &PortInfoRecord { lid: Lid(*lid), port_num, port_info, options: 0 });
            }
        }
    }

    fn link_records(&self, body: &mut Vec<u8>) {
        for (from, to) in &self.links {
            let (from_lid, from_port) = (Lid(from.0), PortNum(from.1));
            append(body, &LinkRecord { from_lid, from_port, to_port: PortNum(to.1), to_lid: Lid(to.0) });
        }
    }

    fn performance(&mut self, sent: &AddressedMad) -> Option<Mad> {
        let now = self.now;
        let node = self.nodes.get_mut(&sent.lid.0).filter(|node| !node.dead)?;
        let mut answer = sent.mad;
        Smp::method.set(&mut answer.0, Method::GetResp);
        let set = sent.mad.method() == Method::Set;
        let data = &mut answer.0[PERF_DATA];
        let attribute = sent.mad.attribute_id();
        if attribute == AttributeId::ClassPortInfo {
            data[..ClassPortInfo::SIZE].copy_from_slice(&ClassPortInfo::default().encode());
            return Some(answer);
        }
        if node.refuses == Some(attribute) {
            Smp::status.set(&mut answer.0, status::BAD_VALUE);
            return Some(answer);
        }
        if attribute == AttributeId::PortCountersExtended && !node.extended
            || attribute == AttributeId::PORT_RCV_ERROR_DETAILS && !node.details
        {
            Smp::status.set(&mut answer.0, status::BAD_METHOD_ATTRIBUTE);
            return Some(answer);
        }
        let port_select = PortNum(data[1]);
        let port = node.ports.get_mut(&port_select.0).expect("a port that there is");
        port.answer(now, attribute, set, data);
        Some(answer)
    }

    /// Subnet administration reports that somebody has come or gone.
    pub(crate) fn report(&mut self, trap: TrapNumber, host: u16) {
        let details = weft_wire::GidDetails {
            gid: weft_wire::Gid { guid: Guid(self.nodes[&host].guid + 1), ..Default::default() },
            ..Default::default()
        };
        let notice = Notice::generic(NodeType::from_code(4), Lid(self.sm_lid), &Details::Gid(trap, details));
        let mut mad = Mad::default();
        SaMad::base_version.set(&mut mad.0, 1);
        SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        SaMad::class_version.set(&mut mad.0, 2);
        SaMad::method.set(&mut mad.0, Method::Report);
        SaMad::attribute_id.set(&mut mad.0, AttributeId::Notice);
        let mut data = [0; 200];
        data[..Notice::SIZE].copy_from_slice(&notice.encode());
        SaMad::data.set(&mut mad.0, data);
        self.input(Input::Receive(AddressedMad::gmp(Lid(self.sm_lid), ServiceLevel(7), mad)));
    }

    pub(crate) fn subscriptions(&self) -> &[TrapNumber] {
        &self.subscriptions
    }

    /// The notices asked for with this trap, as (hot spot, target), in order.
    pub(crate) fn notices(&self, trap: TrapNumber) -> Vec<(u16, u16)> {
        let of_trap = self.asked.iter().filter(|asked| asked.trap == trap);
        of_trap.map(|asked| (asked.details.dlid.0, asked.details.target.0)).collect()
    }
}

fn append(body: &mut Vec<u8>, record: &impl SaRecord) {
    record.append_to(body);
    body.resize(body.len().next_multiple_of(8), 0);
}
