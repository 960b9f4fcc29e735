//! Devices on a bench, for this crate's own tests.

use std::collections::{BTreeMap, VecDeque};

use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, FlowControl, Guid, Lid, LinearForwardingTable, LinkParameters,
    Mad, MadHeader, MadRoute, Method, MgmtClass, Mtu, NodeType, PKey, Packet, PortInfo, PortNum, PortState,
    QKey, QpNum, Registration, ServiceLevel, SwitchInfo, TransactionId, VirtualLane,
};

use crate::{ClientId, Device, DeviceConfig, DeviceOptions, Event, Frame, Input, Output, PortConfig};

pub(crate) const LINK: LinkParameters = LinkParameters { width: 0b11, speed: 0b111, speed_ext: 0b1 };
pub(crate) const ONE: PortNum = PortNum(1);
pub(crate) const TWO: PortNum = PortNum(2);
pub(crate) const CLIENT: ClientId = ClientId(7);

/// A device and the time.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) now: Time,
}

pub(crate) fn config(kind: NodeType, ports: u8) -> DeviceConfig {
    let guid =
        |number: u8| if kind == NodeType::Switch { Guid(0xabe) } else { Guid(0x100 + u64::from(number)) };
    let port = |number: u8| PortConfig { guid: guid(number), link: LINK };
    DeviceConfig {
        kind,
        guid: Guid(0xabc),
        system_image_guid: Guid(0xdef),
        description: "bench".to_owned(),
        vendor_id: 0x2c9,
        device_id: 0x1011,
        enhanced_port0: false,
        ports: (1..=ports).map(port).collect(),
        options: DeviceOptions::default(),
    }
}

pub(crate) fn switch(ports: u8) -> Bench {
    Bench::new(&config(NodeType::Switch, ports))
}

pub(crate) fn hca(ports: u8) -> Bench {
    Bench::new(&config(NodeType::Hca, ports))
}

/// An SMP of class SubnLid; the caller makes it a directed one with [`direct`].
pub(crate) fn smp(method: Method, attribute_id: AttributeId, attribute_modifier: u32, data: &[u8]) -> Mad {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnLid,
        class_version: 1,
        method,
        transaction_id: TransactionId(0x55),
        attribute_id,
        attribute_modifier,
        ..MadHeader::default()
    });
    mad.set_smp_data(data);
    mad
}

/// Makes an SMP a directed one along `path`.
pub(crate) fn direct(mut mad: Mad, path: &[u8]) -> Mad {
    DirectedSmp::mgmt_class.set(&mut mad.0, MgmtClass::SubnDirected);
    DirectedSmp::hop_count.set(&mut mad.0, path.len() as u8);
    DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    mad.0[129..129 + path.len()].copy_from_slice(path);
    mad
}

/// A packet between queue pairs 1.
pub(crate) fn gmp_packet(vl: u8, service_level: u8, slid: u16, dlid: u16, mad: &Mad) -> Packet {
    let route = MadRoute {
        vl: VirtualLane(vl),
        service_level: ServiceLevel(service_level),
        dlid: Lid(dlid),
        slid: Lid(slid),
        p_key: PKey::DEFAULT_FULL,
        dest_qp: QpNum::GSI,
        src_qp: QpNum::GSI,
        q_key: QKey::GSI,
    };
    Packet::from_mad(&route, mad)
}

impl Bench {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        Self { device: Device::new(config), now: Time::from_secs(1) }
    }

    pub(crate) fn input(&mut self, input: Input) -> Vec<Output> {
        self.device.handle_input(self.now, input);
        std::iter::from_fn(|| self.device.poll_output()).collect()
    }

    /// Lets time pass up to the next timeout.
    pub(crate) fn timeout(&mut self) -> Vec<Output> {
        self.now = self.device.poll_timeout().expect("something is due");
        self.device.handle_timeout(self.now);
        std::iter::from_fn(|| self.device.poll_output()).collect()
    }

    pub(crate) fn receive(&mut self, port: PortNum, packet: Packet) -> Vec<Output> {
        self.input(Input::Arrive { port, frame: Frame::Packet(packet) })
    }

    /// The link comes up, with a peer that has room for as much as can be said, on every lane.
    pub(crate) fn link_up(&mut self, port: PortNum) -> Vec<Output> {
        let outputs = self.input(Input::LinkUp { port, peer: LINK });
        if self.state(port) != PortState::Down {
            for lane in 0..15 {
                self.credit(port, lane, 0, 2048);
            }
        }
        outputs
    }

    /// The peer says what it has sent, and how much may have been sent to it.
    pub(crate) fn credit(&mut self, port: PortNum, lane: u8, fctbs: u16, fccl: u16) -> Vec<Output> {
        let flow_control = FlowControl { op: 0, fctbs, vl: VirtualLane(lane), fccl };
        self.input(Input::Arrive { port, frame: Frame::Credit(flow_control) })
    }

    pub(crate) fn state(&self, port: PortNum) -> PortState {
        self.device.port_snapshot(port).unwrap().state
    }

    /// Asks the SMA over the link at `port`, one hop away, and returns the answer's MAD.
    pub(crate) fn ask_through(&mut self, port: PortNum, mad: Mad) -> Option<Mad> {
        let mut mad = direct(mad, &[9]);
        DirectedSmp::hop_pointer.set(&mut mad.0, 1);
        let packet = Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad);
        transmitted(&self.receive(port, packet)).map(|(_, packet)| packet.mad().unwrap())
    }

    pub(crate) fn ask(&mut self, method: Method, attribute: AttributeId, modifier: u32, data: &[u8]) -> Mad {
        self.ask_through(ONE, smp(method, attribute, modifier, data)).expect("an answer")
    }

    pub(crate) fn port_info(&mut self, modifier: u32) -> PortInfo {
        let answer = self.ask(Method::Get, AttributeId::PortInfo, modifier, &[]);
        assert_eq!(answer.status(), 0);
        PortInfo::decode(answer.smp_attribute())
    }

    /// Sets a PortInfo that differs from the present one as `change` says; returns the status.
    pub(crate) fn set_port_info(&mut self, modifier: u32, change: impl FnOnce(&mut PortInfo)) -> u16 {
        let mut info = self.port_info(modifier);
        info.port_state = PortState::NoChange;
        info.port_physical_state = weft_wire::PhysState::NoChange;
        change(&mut info);
        self.ask(Method::Set, AttributeId::PortInfo, modifier, &info.encode()).status()
    }

    /// Brings a port from Initialize to Active.
    pub(crate) fn activate(&mut self, modifier: u32) {
        assert_eq!(self.set_port_info(modifier, |info| info.port_state = PortState::Armed), 0);
        assert_eq!(self.set_port_info(modifier, |info| info.port_state = PortState::Active), 0);
    }

    /// Gives the node's end port a LID and a subnet manager at LID 99.
    pub(crate) fn assign(&mut self, lid: u16) {
        let status = self.set_port_info(0, |info| {
            info.lid = Lid(lid);
            info.master_sm_lid = Lid(99);
            info.neighbor_mtu = Mtu::Bytes4096;
        });
        assert_eq!(status, 0);
    }

    /// Writes forwarding entries of block 0 and the top.
    pub(crate) fn routes(&mut self, entries: &[(u16, u8)]) {
        let mut table = LinearForwardingTable { ports: [PortNum::NONE; 64] };
        for &(lid, port) in entries {
            table.ports[usize::from(lid)] = PortNum(port);
        }
        let answer = self.ask(Method::Set, AttributeId::LinearForwardingTable, 0, &table.encode());
        assert_eq!(answer.status(), 0);
        let info = SwitchInfo { linear_fdb_top: 63, ..SwitchInfo::default() };
        assert_eq!(self.ask(Method::Set, AttributeId::SwitchInfo, 0, &info.encode()).status(), 0);
    }

    /// Attaches a program that takes traps.
    pub(crate) fn attach_manager(&mut self, port: PortNum) -> Vec<Output> {
        let registration = Registration::new(MgmtClass::SubnLid, 1, [Method::Trap, Method::Get]);
        self.input(Input::Attach { client: CLIENT, port, registrations: vec![registration] })
    }

    pub(crate) fn send(&mut self, mad: AddressedMad) -> Vec<Output> {
        self.input(Input::Send { client: CLIENT, mad: Box::new(mad) })
    }
}

/// Devices with cables between them, in a time that stands still.
pub(crate) struct Network {
    pub(crate) benches: Vec<Bench>,
    /// By device and port: the other end.
    cables: BTreeMap<(usize, PortNum), (usize, PortNum)>,
    /// What programs were given: at which device, which one, and what.
    pub(crate) delivered: Vec<(usize, ClientId, AddressedMad)>,
}

/// A cable's end: the device's place in the network, and its port.
pub(crate) struct End {
    pub(crate) device: usize,
    pub(crate) port: u8,
}

impl Network {
    pub(crate) fn new(benches: Vec<Bench>) -> Self {
        Self { benches, cables: BTreeMap::new(), delivered: Vec::new() }
    }

    /// A cable between two ports, and its link up.
    pub(crate) fn cable(&mut self, ends: [End; 2]) {
        let ends = ends.map(|End { device, port }| (device, PortNum(port)));
        self.cables.extend([(ends[0], ends[1]), (ends[1], ends[0])]);
        for (device, port) in ends {
            self.input(device, Input::LinkUp { port, peer: LINK });
        }
    }

    /// Feeds one device, and passes packets on until all is quiet.
    pub(crate) fn input(&mut self, device: usize, input: Input) {
        let mut waiting = VecDeque::from([(device, input)]);
        while let Some((device, input)) = waiting.pop_front() {
            for output in self.benches[device].input(input) {
                match output {
                    Output::Transmit { port, frame: Frame::Packet(packet) } => {
                        if let Some(&(device, port)) = self.cables.get(&(device, port)) {
                            waiting.push_back((device, Input::Arrive { port, frame: Frame::Packet(packet) }));
                        }
                    }
                    Output::Transmit { port, frame: Frame::Credit(flow_control) } => {
                        if let Some(&(device, port)) = self.cables.get(&(device, port)) {
                            waiting.push_back((
                                device,
                                Input::Arrive { port, frame: Frame::Credit(flow_control) },
                            ));
                        }
                    }
                    Output::Deliver { client, mad } => self.delivered.push((device, client, *mad)),
                    _ => {}
                }
            }
        }
    }
}

/// The only packet among the outputs.
pub(crate) fn transmitted(outputs: &[Output]) -> Option<(PortNum, Packet)> {
    let mut packets = outputs.iter().filter_map(|output| match output {
        Output::Transmit { port, frame: Frame::Packet(packet) } => Some((*port, packet.clone())),
        _ => None,
    });
    let first = packets.next();
    assert!(packets.next().is_none(), "more than one packet: {outputs:?}");
    first
}

/// The only MAD given to a program among the outputs.
pub(crate) fn delivered(outputs: &[Output]) -> Option<(ClientId, AddressedMad)> {
    let mut mads = outputs.iter().filter_map(|output| match output {
        Output::Deliver { client, mad } => Some((*client, **mad)),
        _ => None,
    });
    let first = mads.next();
    assert!(mads.next().is_none(), "more than one MAD: {outputs:?}");
    first
}

pub(crate) fn events(outputs: &[Output]) -> Vec<Event> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Event(event) => Some(*event),
            _ => None,
        })
        .collect()
}

pub(crate) fn drop_reason(outputs: &[Output]) -> Option<crate::DropReason> {
    events(outputs).into_iter().find_map(|event| match event {
        Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    })
}
