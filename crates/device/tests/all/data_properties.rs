//! Whatever comes in on the data lanes, the device's account is sound, and what it holds leaves once there is credit.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_device::{
    ClientId, Crossbar, DataPathOptions, Device, DeviceConfig, DeviceOptions, DropReason, Frame, Input,
    LaneShare, Output, PortConfig, Unsent,
};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, DataPacket, DirectedSmp, FlowControl, Guid, Lid, LinearForwardingTable,
    LinkParameters, Mad, MadRoute, Method, MgmtClass, NodeType, PKey, Packet, PhysState, PortNum, PortState,
    QKey, QpNum, ServiceLevel, SlToVlTable, Smp, SwitchInfo, VirtualLane, VlArbitrationTable, opcode,
};

const PORTS: u8 = 3;
const LINK: LinkParameters = LinkParameters { width: 3, speed: 7, speed_ext: 1 };
const CLIENT: ClientId = ClientId(1);

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    /// A packet that its sender has credit for, unless `greedy`.
    Arrive {
        port: u8,
        packet: DataPacket,
        greedy: bool,
    },
    Gmp {
        port: u8,
        level: u8,
        dlid: u16,
    },
    Inject {
        packet: DataPacket,
    },
    /// `more` blocks more may be sent than were; if more than 2048, the credit is wrong.
    Credit {
        port: u8,
        lane: u8,
        more: u16,
    },
    Down(u8),
    Up(u8),
    Settings {
        port: u8,
        hoq_life: u8,
        stall: u8,
        limit: u8,
        enforce: bool,
    },
    Arbitration {
        port: u8,
        part: u8,
        table: VlArbitrationTable,
    },
    Lanes {
        table: SlToVlTable,
    },
    Route {
        lid: u8,
        port: u8,
    },
    Pass(u32),
    Refuse,
}

fn packet() -> impl Strategy<Value = DataPacket> {
    let sizes = prop_oneof![Just(0u16), Just(16), Just(2048), Just(4096), Just(4400), 4u16..1024];
    let keys = prop_oneof![4 => Just(0xffffu16), 1 => Just(0x8001), 1 => any::<u16>()];
    (0u16..9, sizes, keys, 0u8..9, 0u8..16).prop_map(|(dlid, payload, p_key, vl, level)| DataPacket {
        slid: Lid(40),
        dlid: Lid(dlid),
        payload: payload & !3,
        p_key: PKey(p_key),
        vl: VirtualLane(vl),
        service_level: ServiceLevel(level),
        opcode: opcode::RC_SEND_ONLY,
        ..DataPacket::default()
    })
}

fn step() -> impl Strategy<Value = Step> {
    let port = || 0u8..=PORTS + 1;
    let bytes = || vec(any::<u8>(), 64).prop_map(|bytes| <[u8; 64]>::try_from(bytes).expect("64 bytes"));
    prop_oneof![
        30 => (port(), packet(), prop_oneof![20 => Just(false), 1 => Just(true)])
            .prop_map(|(port, packet, greedy)| Step::Arrive { port, packet, greedy }),
        4 => (port(), 0u8..16, 0u16..9).prop_map(|(port, level, dlid)| Step::Gmp { port, level, dlid }),
        10 => packet().prop_map(|packet| Step::Inject { packet }),
        15 => (port(), 0u8..9, prop_oneof![9 => 0u16..2049, 1 => any::<u16>()])
            .prop_map(|(port, lane, more)| Step::Credit { port, lane, more }),
        1 => port().prop_map(Step::Down),
        2 => port().prop_map(Step::Up),
        2 => (port(), prop_oneof![Just(20u8), 0u8..20], 0u8..8, any::<u8>(), any::<bool>()).prop_map(
            |(port, hoq_life, stall, limit, enforce)| Step::Settings { port, hoq_life, stall, limit, enforce }
        ),
        2 => (port(), 1u8..5, bytes()).prop_map(|(port, part, bytes)| {
            let mut table = VlArbitrationTable::decode(&bytes);
            table.entries.iter_mut().for_each(|entry| entry.vl.0 %= 9);
            Step::Arbitration { port, part, table }
        }),
        1 => any::<[u8; 8]>().prop_map(|bytes| Step::Lanes { table: SlToVlTable::decode(&bytes) }),
        1 => (0u8..9, 0u8..5).prop_map(|(lid, port)| Step::Route { lid, port }),
        12 => (0u32..2_000_000).prop_map(Step::Pass),
        1 => Just(Step::Refuse),
    ]
}

/// Packets in a crowd: many, of all lanes, to ports that have credit for few of them, and links that go and return.
fn crowded_step() -> impl Strategy<Value = Step> {
    let port = || 1u8..=PORTS;
    prop_oneof![
        40 => (port(), packet()).prop_map(|(port, packet)| Step::Arrive { port, packet, greedy: false }),
        20 => (port(), 0u8..8, 0u16..130).prop_map(|(port, lane, more)| Step::Credit { port, lane, more }),
        20 => (0u32..20_000).prop_map(Step::Pass),
        1 => port().prop_map(Step::Down),
        3 => port().prop_map(Step::Up),
        1 => any::<[u8; 8]>().prop_map(|bytes| Step::Lanes { table: SlToVlTable::decode(&bytes) }),
        1 => (1u8..9, 1u8..=PORTS).prop_map(|(lid, port)| Step::Route { lid, port }),
    ]
}

fn set(attribute_id: AttributeId, modifier: u32, data: &[u8]) -> Box<AddressedMad> {
    let mut mad = Mad::default();
    (mad.0[0], mad.0[1], mad.0[2]) = (1, 0x81, 1);
    Smp::method.set(&mut mad.0, Method::Set);
    Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnDirected);
    Smp::attribute_id.set(&mut mad.0, attribute_id);
    Smp::attribute_modifier.set(&mut mad.0, modifier);
    DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    mad.set_smp_data(data);
    Box::new(AddressedMad::smp(Lid::PERMISSIVE, mad))
}

/// A device and what is known of its cables.
struct Bench {
    device: Device,
    now: Time,
    is_switch: bool,
    shaped: bool,
    routes: LinearForwardingTable,
    /// By port and lane, what the device has been sent since the link began, and may be sent, in blocks.
    sent: [[u16; 16]; 6],
    promised: [[u16; 16]; 6],
    /// The same of what the device has sent.
    received: [[u16; 16]; 6],
    /// The last packet that left port 1 over this link.
    last_sent: Option<Unsent>,
    injected: u64,
    left: u64,
}

impl Bench {
    /// Of every port.
    fn waits(&self) -> Vec<Waited> {
        let tick = if self.shaped { 400 } else { 4 };
        let wait = |port| {
            self.device.port_snapshot_at(PortNum(port), self.now).expect("a port").counters.port_xmit_wait
        };
        (1..=PORTS).map(|port| (self.now, wait(port) * tick)).collect()
    }

    fn new(kind: NodeType, data: DataPathOptions) -> Self {
        let shaped = data.shaped;
        let options = DeviceOptions { data, ..DeviceOptions::default() };
        let guid = Guid(1);
        let device = Device::new(&DeviceConfig {
            kind,
            guid,
            system_image_guid: guid,
            description: "property".to_owned(),
            vendor_id: 1,
            device_id: 2,
            enhanced_port0: false,
            ports: vec![PortConfig { guid, link: LINK }; PORTS.into()],
            options,
        });
        let routes = LinearForwardingTable {
            ports: std::array::from_fn(|lid| PortNum(if lid == 0 { 255 } else { (lid % 4) as u8 })),
        };
        let is_switch = kind == NodeType::Switch;
        let mut bench = Self {
            device,
            now: Time::from_secs(1),
            is_switch,
            shaped,
            routes,
            sent: Default::default(),
            promised: Default::default(),
            received: Default::default(),
            last_sent: None,
            injected: 0,
            left: 0,
        };
        let port = PortNum(u8::from(!is_switch));
        bench.feed(Input::Attach { client: CLIENT, port, registrations: Vec::new() });
        for port in 1..=PORTS {
            bench.up(port);
        }
        let info = SwitchInfo { linear_fdb_top: 63, life_time_value: 18, ..SwitchInfo::default() };
        bench.ask(AttributeId::SwitchInfo, 0, &info.encode());
        bench.write_routes();
        bench
    }

    fn write_routes(&mut self) {
        let table = self.routes.encode();
        self.ask(AttributeId::LinearForwardingTable, 0, &table);
    }

    fn ask(&mut self, attribute: AttributeId, modifier: u32, data: &[u8]) {
        self.feed(Input::Send { client: CLIENT, mad: set(attribute, modifier, data) });
    }

    fn set_port(&mut self, port: u8, change: impl FnOnce(&mut weft_wire::PortInfo)) {
        let Some(info) = self.device.own_port_info(PortNum(port)) else { return };
        let mut info = *info;
        (info.port_state, info.port_physical_state) = (PortState::NoChange, PhysState::NoChange);
        change(&mut info);
        self.ask(AttributeId::PortInfo, port.into(), &info.encode());
    }

    fn up(&mut self, port: u8) {
        self.feed(Input::LinkUp { port: PortNum(port), peer: LINK });
        if self.is_switch {
            self.set_port(0, |info| info.lid = Lid(4));
        } else {
            self.set_port(port, |info| info.lid = Lid(port.into()));
        }
        for state in [PortState::Armed, PortState::Active] {
            self.set_port(port, |info| info.port_state = state);
        }
    }

    fn feed(&mut self, input: Input) {
        if let Input::LinkUp { port, .. } | Input::LinkDown { port } = &input {
            let at = usize::from(port.0);
            (self.sent[at], self.promised[at], self.received[at]) = Default::default();
            self.last_sent = None;
        }
        self.device.handle_input(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        let mut outputs = 0;
        while let Some(output) = self.device.poll_output() {
            outputs += 1;
            assert!(outputs < 20_000, "one input causes so much");
            match output {
                Output::Transmit { port, frame: Frame::Credit(flow_control) } => {
                    let (at, lane) = (usize::from(port.0), usize::from(flow_control.vl.0));
                    assert_eq!(flow_control.fctbs, self.received[at][lane], "it says what it has sent");
                    self.promised[at][lane] = flow_control.fccl;
                }
                Output::Transmit { port, frame } if !frame.is_management() => {
                    let (at, unsent) = (usize::from(port.0), frame.unsent().expect("a packet"));
                    self.last_sent = (at == 1).then_some(unsent).or(self.last_sent);
                    let blocks = (unsent.words as usize * 4 + 2).div_ceil(64) as u16;
                    let received = &mut self.received[at][usize::from(unsent.lane.0)];
                    *received = (*received + blocks) % 4096;
                }
                Output::Injected { packets, .. } => self.left += u64::from(packets),
                _ => {}
            }
        }
    }

    fn pass(&mut self, nanos: u32) {
        let end = self.now + Time::from_nanos(nanos.into());
        // Sometimes the driver is late.
        if !nanos.is_multiple_of(3) {
            while let Some(due) = self.device.poll_timeout().filter(|&due| due <= end) {
                self.device.handle_timeout(due);
                self.drain();
                let next = self.device.poll_timeout();
                assert!(next.is_none_or(|next| next > due), "time goes on");
            }
        }
        self.now = end;
        self.device.handle_timeout(end);
        self.drain();
    }

    fn credit(&mut self, port: u8, lane: u8, more: u16) {
        let Some(received) = self.received.get(usize::from(port)).map(|lanes| lanes[usize::from(lane)])
        else {
            return;
        };
        let fccl = received.wrapping_add(more) % 4096;
        let fctbs = self.sent[usize::from(port)][usize::from(lane)];
        let flow_control = FlowControl { op: 0, fctbs, vl: VirtualLane(lane), fccl };
        self.feed(Input::Arrive { port: PortNum(port), frame: Frame::Credit(flow_control) });
    }

    /// Sends it a packet of `size` bytes, if there is credit for it or the sender is greedy.
    fn pays(&mut self, port: u8, lane: u8, size: usize, greedy: bool) -> bool {
        let (at, lane) = (usize::from(port), usize::from(lane));
        let blocks = size.div_ceil(64) as u16;
        let left = self.promised[at][lane].wrapping_sub(self.sent[at][lane]) % 4096;
        if blocks <= left && left <= 2048 {
            self.sent[at][lane] = (self.sent[at][lane] + blocks) % 4096;
            return true;
        }
        greedy
    }

    fn step(&mut self, step: &Step) {
        match step.clone() {
            Step::Arrive { port, packet, greedy } => {
                if self.pays(port, packet.vl.0, packet.size(), greedy) {
                    self.feed(Input::Arrive { port: PortNum(port), frame: Frame::Data(packet) });
                }
            }
            Step::Gmp { port, level, dlid } => {
                let route = MadRoute {
                    vl: VirtualLane(level % 8),
                    service_level: ServiceLevel(level),
                    dest_qp: QpNum::GSI,
                    src_qp: QpNum::GSI,
                    q_key: QKey::GSI,
                    ..MadRoute::smp(Lid(dlid), Lid(1 + dlid % 3))
                };
                let mut mad = Mad::default();
                (mad.0[0], mad.0[1], mad.0[2], mad.0[3]) = (1, 4, 1, 1);
                let packet = Packet::from_mad(&route, &mad);
                if self.pays(port, level % 8, packet.bytes().len(), false) {
                    self.feed(Input::Arrive { port: PortNum(port), frame: Frame::Packet(packet) });
                }
            }
            Step::Inject { packet } => {
                let port = PortNum(1 + packet.vl.0 % PORTS);
                self.injected += u64::from(!self.is_switch);
                self.feed(Input::Inject { port, packet });
            }
            Step::Credit { port, lane, more } => self.credit(port, lane, more),
            Step::Down(port) => self.feed(Input::LinkDown { port: PortNum(port) }),
            Step::Up(port) if (1..=PORTS).contains(&port) => self.up(port),
            Step::Up(_) => {}
            Step::Settings { port, hoq_life, stall, limit, enforce } => self.set_port(port, |info| {
                (info.hoq_life, info.vl_stall_count, info.vl_high_limit) = (hoq_life, stall, limit);
                info.partition_enforcement_inbound = enforce;
                info.partition_enforcement_outbound = enforce && hoq_life % 2 == 0;
            }),
            Step::Arbitration { port, part, table } => {
                self.ask(
                    AttributeId::VlArbitrationTable,
                    u32::from(part) << 16 | u32::from(port),
                    &table.encode(),
                );
            }
            Step::Lanes { table } => {
                self.ask(AttributeId::SlToVlTable, if self.is_switch { 3 << 16 } else { 0 }, &table.encode());
            }
            Step::Route { lid, port } => {
                self.routes.ports[usize::from(lid)] = PortNum(port);
                self.write_routes();
            }
            Step::Pass(nanos) => self.pass(nanos),
            Step::Refuse => {
                let Some(unsent) = self.last_sent.take() else { return };
                self.device.handle_input(self.now, Input::TransmitDropped { port: PortNum(1), unsent });
                // The cable did carry it: the two ends disagree from here on, as when a packet is lost.
                self.drain_after_refusal();
            }
        }
    }

    /// What was refused has not been received.
    fn drain_after_refusal(&mut self) {
        for port in 1..=PORTS {
            for lane in 0..8u8 {
                let account = self.device.buffer_account(PortNum(port), VirtualLane(lane)).expect("a lane");
                self.received[usize::from(port)][usize::from(lane)] = account.sent;
            }
        }
        self.drain();
    }

    /// Gives every lane all the credit that there is until nothing moves any more.
    fn finish(&mut self) {
        for _ in 0..400 {
            for port in 1..=PORTS {
                for lane in 0..8 {
                    self.credit(port, lane, 2048);
                }
            }
            self.pass(999_999_999);
        }
    }
}

/// When a port's PortXmitWait was read, and how many nanoseconds it says.
type Waited = (Time, u64);

/// Whether a port has waited between 0 and 100 % of the time between two reads, but for a tick that was cut.
fn at_most_all_of_the_time(before: &Waited, now: &Waited) -> bool {
    let (elapsed, tick) = (now.0.saturating_sub(before.0).as_nanos(), 400);
    now.1 >= before.1 && now.1 - before.1 <= elapsed + tick
}

/// Any crossbar at all, the profiles more often than chance would have them.
fn crossbar() -> impl Strategy<Value = Crossbar> {
    let free = (0..4u8, 100..300u16, 0..4u8, any::<bool>(), 0..400u16, 0..200u16).prop_map(
        |(input_packets, bus_percent, output_packets, output_queues, buffer_blocks, latency_ns)| Crossbar {
            input_packets,
            bus_percent,
            output_packets,
            output_queues,
            buffer_blocks,
            latency_ns,
            host_bus_percent: 80,
        },
    );
    prop_oneof![Just(Crossbar::UNLIMITED), Just(Crossbar::FIFO), Just(Crossbar::IS4), free]
}

/// Those of a vSwitch whose host has a bus, or of any device.
fn with_bus(bus: bool) -> DataPathOptions {
    let (host_bus_mbps, uplink) = (900 * u32::from(bus), PortNum(u8::from(bus)));
    DataPathOptions { host_bus_mbps, uplink, ..DataPathOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_account_is_sound(
        is_switch: bool,
        shaped: bool,
        limited: bool,
        buffer_packets in prop_oneof![Just(0u16), Just(1), Just(2), Just(16), any::<u16>()],
        crossbar in crossbar(),
        cut_through: bool,
        bus: bool,
        lane_share in prop::sample::select(LaneShare::ALL.as_slice()),
        steps in vec(step(), 0..150),
    ) {
        let (dilation, host_limit_mbps) = (if shaped { 100 } else { 1 }, if limited { 1000 } else { 0 });
        let limits = DataPathOptions { host_limit_mbps, cut_through, ..with_bus(bus) };
        let data = DataPathOptions { shaped, dilation, buffer_packets, crossbar, lane_share, ..limits };
        let mut bench = Bench::new(if is_switch { NodeType::Switch } else { NodeType::Hca }, data);
        let mut waited = Vec::new();
        for step in steps {
            bench.step(&step);
            let now = bench.waits();
            for (before, now) in waited.iter().zip(&now) {
                prop_assert!(at_most_all_of_the_time(before, now), "after {:?}: {:?}, {:?}", step, before, now);
            }
            waited = now;
            let account = bench.device.data_account();
            prop_assert!(account.is_sound(), "after {:?}: {:?}", step, account);
        }
        bench.finish();
        let account = bench.device.data_account();
        prop_assert!(account.is_sound());
        prop_assert_eq!(account.total().held, 0, "what is held leaves: {:?}", account);
        prop_assert!(account.buffers.iter().all(|buffer| buffer.occupied == 0 && buffer.waiting_bytes == 0));
        prop_assert_eq!(bench.left, bench.injected, "the host is told of each packet once");
    }
    /// Where inputs send few packets at once, outputs claim them in turns ([`Crossbar::input_packets`]). Nothing has a lifetime
    /// here, so what a claim that is never met keeps waiting would stay.
    #[test]
    fn no_claim_on_an_input_lasts_for_ever(
        input_packets in 1..4u8,
        output_packets in 0..3u8,
        buffer_packets in prop_oneof![Just(2u16), Just(4), Just(16)],
        cut_through: bool,
        bus: bool,
        steps in vec(crowded_step(), 50..400),
    ) {
        let crossbar = Crossbar { input_packets, output_packets, ..Crossbar::FIFO };
        let limits = DataPathOptions { shaped: true, dilation: 100, ..with_bus(bus) };
        let data = DataPathOptions { buffer_packets, crossbar, cut_through, ..limits };
        let mut bench = Bench::new(NodeType::Switch, data);
        let info = SwitchInfo { linear_fdb_top: 63, life_time_value: 20, ..SwitchInfo::default() };
        bench.ask(AttributeId::SwitchInfo, 0, &info.encode());
        for port in 1..=PORTS {
            bench.set_port(port, |info| info.hoq_life = 20);
        }
        let mut down = [false; PORTS as usize + 1];
        for step in &steps {
            match step {
                Step::Down(port) => down[usize::from(*port)] = true,
                // A link that begins again loses what waits for it.
                Step::Up(port) if !std::mem::take(&mut down[usize::from(*port)]) => continue,
                _ => {}
            }
            bench.step(step);
        }
        bench.finish();
        let account = bench.device.data_account();
        prop_assert_eq!(account.total().held, 0, "what is held leaves: {:?}", account);
        for reason in [DropReason::HeadLifetime, DropReason::SwitchLifetime] {
            prop_assert_eq!(account.total().dropped_for(reason), 0);
        }
    }
}
