//! A few devices with cables between them, in virtual time: no more of a simulator than the data lanes need.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;

use weft_device::{
    ClientId, DataPathOptions, Device, DeviceConfig, DeviceOptions, Event, Frame, Input, Output, PortConfig,
    PortSnapshot,
};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, DataPacket, Guid, Lid, LinearForwardingTable, LinkParameters, Mad, Method,
    MgmtClass, NodeType, PKey, PhysState, PortNum, PortState, ServiceLevel, SlToVlTable, Smp, SwitchInfo,
    VirtualLane, VlArbitrationEntry, VlArbitrationTable, opcode,
};

/// 4x at 4 Gb/s of data a lane.
pub(crate) const DDR: LinkParameters = LinkParameters { width: 2, speed: 2, speed_ext: 0 };
/// 4x at 8 Gb/s of data a lane.
pub(crate) const QDR: LinkParameters = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
/// What a host moves in each direction, in megabits per second.
pub(crate) const HOST_LIMIT: u32 = 12_900;
/// How long a packet takes over a cable, where a test does not say.
const DELAY: Time = Time::from_micros(1);
/// Packets that a flow has given its adapter and that have not left.
const WINDOW: usize = 2;
const CLIENT: ClientId = ClientId(1);

/// From one host to another, as fast as it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) service_level: u8,
}

pub(crate) struct Fabric {
    pub(crate) options: DeviceOptions,
    /// How long a packet takes over a cable.
    pub(crate) delay: Time,
    pub(crate) devices: Vec<Device>,
    /// By LID.
    hosts: BTreeMap<u16, usize>,
    cables: BTreeMap<(usize, PortNum), (usize, PortNum)>,
    tables: BTreeMap<usize, LinearForwardingTable>,
    /// By time and order.
    queue: BTreeMap<(Time, u64), (usize, Input)>,
    order: u64,
    now: Time,
    flows: Vec<Flow>,
    /// Bytes of body, by flow; 2048 where nothing is said.
    pub(crate) payloads: Vec<u16>,
    /// Bytes that have arrived, by flow.
    arrived: Vec<u64>,
    sequence: Vec<u64>,
    expected: Vec<u64>,
    accepted: u64,
    /// When a host last took a packet.
    accepted_at: Time,
}

fn set(attribute_id: AttributeId, modifier: u32, data: &[u8]) -> AddressedMad {
    let mut mad = Mad::default();
    (mad.0[0], mad.0[1], mad.0[2]) = (1, 0x81, 1);
    Smp::method.set(&mut mad.0, Method::Set);
    Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnDirected);
    Smp::attribute_id.set(&mut mad.0, attribute_id);
    Smp::attribute_modifier.set(&mut mad.0, modifier);
    weft_wire::DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    weft_wire::DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    mad.set_smp_data(data);
    AddressedMad::smp(Lid::PERMISSIVE, mad)
}

impl Fabric {
    pub(crate) fn new(data: &DataPathOptions) -> Self {
        let options = DeviceOptions { data: data.clone(), ..DeviceOptions::default() };
        Self {
            options,
            delay: DELAY,
            devices: Vec::new(),
            hosts: BTreeMap::new(),
            cables: BTreeMap::new(),
            tables: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            now: Time::ZERO,
            flows: Vec::new(),
            payloads: Vec::new(),
            arrived: Vec::new(),
            sequence: Vec::new(),
            expected: Vec::new(),
            accepted: 0,
            accepted_at: Time::ZERO,
        }
    }

    fn add(&mut self, kind: NodeType, ports: u8) -> usize {
        let node = self.devices.len();
        let guid = Guid(node as u64 + 1);
        let link = LinkParameters { width: 3, speed: 7, speed_ext: 0x1f };
        self.devices.push(Device::new(&DeviceConfig {
            kind,
            guid,
            system_image_guid: guid,
            description: format!("node {node}"),
            vendor_id: 1,
            device_id: 1,
            enhanced_port0: false,
            ports: vec![PortConfig { guid, link }; usize::from(ports)],
            options: self.options.clone(),
        }));
        let port = PortNum(u8::from(kind == NodeType::Hca));
        self.input(node, Input::Attach { client: CLIENT, port, registrations: Vec::new() });
        node
    }

    pub(crate) fn switch(&mut self, ports: u8) -> usize {
        let node = self.add(NodeType::Switch, ports);
        self.tables.insert(node, LinearForwardingTable { ports: [PortNum::NONE; 64] });
        node
    }

    pub(crate) fn host(&mut self, lid: u16) -> usize {
        let node = self.add(NodeType::Hca, 1);
        self.hosts.insert(lid, node);
        node
    }

    pub(crate) fn cable(&mut self, one: (usize, u8), other: (usize, u8), peer: LinkParameters) {
        let ends = [one, other].map(|(node, port)| (node, PortNum(port)));
        self.cables.extend([(ends[0], ends[1]), (ends[1], ends[0])]);
        for (node, port) in ends {
            self.input(node, Input::LinkUp { port, peer });
        }
    }

    pub(crate) fn route(&mut self, switch: usize, lid: u16, port: u8) {
        self.tables.get_mut(&switch).expect("a switch").ports[usize::from(lid)] = PortNum(port);
    }

    pub(crate) fn ask(&mut self, node: usize, mad: AddressedMad) {
        self.input(node, Input::Send { client: CLIENT, mad: Box::new(mad) });
    }

    /// LIDs, tables, lanes by service level, and all ports Active.
    pub(crate) fn bring_up(&mut self) {
        for (switch, table) in self.tables.clone() {
            let info = SwitchInfo { linear_fdb_top: 63, life_time_value: 20, ..SwitchInfo::default() };
            self.ask(switch, set(AttributeId::SwitchInfo, 0, &info.encode()));
            self.ask(switch, set(AttributeId::LinearForwardingTable, 0, &table.encode()));
        }
        let lanes = SlToVlTable { lanes: std::array::from_fn(|level| VirtualLane(level as u8 % 8)) };
        for (lid, node) in self.hosts.clone() {
            self.set_port(node, 1, |info| info.lid = Lid(lid));
        }
        for node in 0..self.devices.len() {
            let all = if self.tables.contains_key(&node) { 3 << 16 } else { 0 };
            self.ask(node, set(AttributeId::SlToVlTable, all, &lanes.encode()));
        }
        for (node, port) in self.cables.keys().copied().collect::<Vec<_>>() {
            for state in [PortState::Armed, PortState::Active] {
                self.set_port(node, port.0, |info| info.port_state = state);
            }
        }
    }

    pub(crate) fn set_port(&mut self, node: usize, port: u8, change: impl FnOnce(&mut weft_wire::PortInfo)) {
        let mut info = *self.devices[node].own_port_info(PortNum(port)).expect("a port");
        (info.port_state, info.port_physical_state) = (PortState::NoChange, PhysState::NoChange);
        change(&mut info);
        self.ask(node, set(AttributeId::PortInfo, port.into(), &info.encode()));
    }

    /// Writes the arbitration tables of every port of the switches: lanes with their weights, and the limit of high priority.
    pub(crate) fn arbitrate(&mut self, low: &[(u8, u8)], high: &[(u8, u8)], limit: u8) {
        let switches: Vec<usize> = self.tables.keys().copied().collect();
        let ports: Vec<(usize, PortNum)> =
            self.cables.keys().copied().filter(|(node, _)| switches.contains(node)).collect();
        for (node, port) in ports {
            for (part, entries) in [(1, low), (3, high)] {
                let mut table = VlArbitrationTable::default();
                for (to, &(vl, weight)) in table.entries.iter_mut().zip(entries) {
                    *to = VlArbitrationEntry { vl: VirtualLane(vl), weight, ..VlArbitrationEntry::default() };
                }
                let modifier = part << 16 | u32::from(port.0);
                self.ask(node, set(AttributeId::VlArbitrationTable, modifier, &table.encode()));
            }
            self.set_port(node, port.0, |info| info.vl_high_limit = limit);
        }
    }

    /// Feeds a device and passes on what it wants.
    pub(crate) fn input(&mut self, node: usize, input: Input) {
        self.devices[node].handle_input(self.now, input);
        self.drain(node);
    }

    fn push(&mut self, at: Time, node: usize, input: Input) {
        self.order += 1;
        self.queue.insert((at, self.order), (node, input));
    }

    fn drain(&mut self, node: usize) {
        while let Some(output) = self.devices[node].poll_output() {
            match output {
                Output::Transmit { port, frame: Frame::Data(packet) } => {
                    let (node, port) = self.cables[&(node, port)];
                    self.push(
                        self.now + self.delay,
                        node,
                        Input::Arrive { port, frame: Frame::Data(packet) },
                    );
                }
                Output::Transmit { port, frame: Frame::Packet(packet) } => {
                    let (node, port) = self.cables[&(node, port)];
                    self.push(
                        self.now + self.delay,
                        node,
                        Input::Arrive { port, frame: Frame::Packet(packet) },
                    );
                }
                Output::Transmit { port, frame: Frame::Credit(flow_control) } => {
                    let (node, port) = self.cables[&(node, port)];
                    self.push(
                        self.now + self.delay,
                        node,
                        Input::Arrive { port, frame: Frame::Credit(flow_control) },
                    );
                }
                Output::Accept { packet, .. } => {
                    let flow = packet.dest_qp.0 as usize;
                    assert_eq!(packet.sequence, self.expected[flow], "in order, none lost, none twice");
                    self.expected[flow] += 1;
                    self.arrived[flow] += packet.size() as u64;
                    self.accepted += 1;
                    self.accepted_at = self.now;
                }
                Output::Injected { packets, service_level, .. } => {
                    assert_eq!(packets, 1);
                    self.inject_again(node, service_level);
                }
                Output::Event(Event::Dropped { port, reason }) => panic!("node {node} port {port}: {reason}"),
                Output::Overrun { .. } => panic!("node {node}: overrun"),
                _ => {}
            }
        }
    }

    /// The flow of this host and level gives another packet; of several, the one that has given the fewest.
    fn inject_again(&mut self, node: usize, level: ServiceLevel) {
        let of_host = |flow: &Flow| self.hosts[&flow.from] == node && flow.service_level == level.0;
        let flows = (0..self.flows.len()).filter(|&at| of_host(&self.flows[at]));
        if let Some(flow) = flows.min_by_key(|&at| self.sequence[at]) {
            self.inject(flow);
        }
    }

    fn inject(&mut self, at: usize) {
        let flow = self.flows[at];
        let packet = DataPacket {
            sequence: self.sequence[at],
            dest_qp: weft_wire::QpNum(at as u32),
            dlid: Lid(flow.to),
            p_key: PKey::DEFAULT_FULL,
            payload: self.payloads.get(at).copied().unwrap_or(2048),
            opcode: opcode::RC_SEND_ONLY,
            service_level: ServiceLevel(flow.service_level),
            ..DataPacket::default()
        };
        self.sequence[at] += 1;
        let node = self.hosts[&flow.from];
        self.push(self.now, node, Input::Inject { port: PortNum(1), packet });
    }

    /// Lets everything happen that does by `end`.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            let wake =
                (0..self.devices.len()).filter_map(|node| Some((self.devices[node].poll_timeout()?, node)));
            let wake = wake.min();
            let next = self.queue.first_key_value().map(|(key, _)| key.0);
            let at = [wake.map(|(at, _)| at), next].into_iter().flatten().min();
            let Some(at) = at.filter(|&at| at <= end) else { break };
            self.now = at;
            match wake.filter(|&(due, _)| due == at) {
                Some((_, node)) => {
                    self.devices[node].handle_timeout(at);
                    self.drain(node);
                }
                None => {
                    let (_, (node, input)) = self.queue.pop_first().expect("something is due");
                    self.input(node, input);
                }
            }
        }
        self.now = end;
    }

    /// Starts flows, waits for `warm_up`, and says what each got in the time of `measured`, in megabits per second of
    /// fabric time.
    pub(crate) fn run(&mut self, flows: &[Flow], warm_up: Time, measured: Time) -> Vec<f64> {
        self.flows = flows.to_vec();
        (self.arrived, self.sequence) = (vec![0; flows.len()], vec![0; flows.len()]);
        self.expected = vec![0; flows.len()];
        for at in 0..flows.len() {
            (0..WINDOW).for_each(|_| self.inject(at));
        }
        self.run_until(self.now + warm_up);
        let before = self.arrived.clone();
        self.run_until(self.now + measured);
        let fabric_nanos = measured.as_nanos() as f64 / f64::from(self.options.data.dilation);
        let rate = |(now, before): (&u64, &u64)| (now - before) as f64 * 8_000.0 / fabric_nanos;
        self.arrived.iter().zip(&before).map(rate).collect()
    }

    /// One packet with `payload` bytes of body in an idle fabric: how long it takes from its host to the other.
    pub(crate) fn latency(&mut self, flow: Flow, payload: u16) -> Time {
        (self.flows, self.payloads) = (vec![flow], vec![payload]);
        (self.arrived, self.sequence, self.expected) = (vec![0], vec![0], vec![0]);
        let (begun, accepted) = (self.now, self.accepted);
        self.inject(0);
        self.settle();
        assert_eq!(self.accepted, accepted + 1, "it arrives");
        self.accepted_at - begun
    }

    /// Stops the flows and waits until everything has arrived.
    pub(crate) fn settle(&mut self) {
        self.flows.clear();
        self.run_until(self.now + Time::from_secs(60));
        assert!(self.queue.is_empty());
    }

    /// Everything adds up, in each device and over the fabric.
    pub(crate) fn check(&mut self) {
        let accounts: Vec<_> = self.devices.iter().map(Device::data_account).collect();
        for account in &accounts {
            assert!(account.is_sound(), "{account:?}");
        }
        let flying = self
            .queue
            .values()
            .filter(|(_, input)| matches!(input, Input::Arrive { frame: Frame::Data(_), .. }))
            .count() as u64;
        let sum =
            |of: fn(&weft_device::LaneAccount) -> u64| accounts.iter().map(|a| of(&a.total())).sum::<u64>();
        assert_eq!(sum(|lane| lane.transmitted), sum(|lane| lane.received) + flying);
        assert_eq!(sum(|lane| lane.injected), sum(|lane| lane.to_host) + sum(|lane| lane.held) + flying);
        assert_eq!(sum(|lane| lane.to_host), self.accepted);
    }

    pub(crate) fn snapshot(&self, node: usize, port: PortNum) -> PortSnapshot {
        self.devices[node].port_snapshot_at(port, self.now).expect("a port")
    }

    pub(crate) fn host_snapshot(&self, lid: u16) -> PortSnapshot {
        self.snapshot(self.hosts[&lid], PortNum(1))
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }
}
