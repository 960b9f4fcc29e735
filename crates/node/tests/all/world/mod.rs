//! A node, driven by steps that name devices and programs by how manieth they are.

pub(crate) mod pair;

use proptest::prelude::*;
use weft_device::{DeviceConfig, DeviceOptions, PortConfig};
use weft_fault::{Impairment, Word};
use weft_host::mad::{Address, AgentId, AgentRequest};
use weft_host::stack::StackOptions;
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, PathSource};
use weft_machine::{Machine, Time};
use weft_node::{
    Answer, Client, DeviceId, Frame, Input, Message, NewDevice, Node, NodeOptions, Output, PortId, Refusal,
    Request, RequestId,
};
use weft_wire::{
    AddressedMad, FlowControl, Guid, Lid, LinkParameters, Mad, MadRoute, MethodMask, MgmtClass, NodeType,
    Oui, Packet, PortNum, QpNum, VirtualLane,
};

const LINK: LinkParameters = LinkParameters { width: 3, speed: 7, speed_ext: 1 };
const PORTS: u8 = 3;

/// Something happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Add(bool),
    Remove(u8),
    Connect([(u8, u8); 2], bool),
    Lead(u8, u8),
    Disconnect(u8, u8),
    Begin,
    Plug(u8, u8, bool),
    Attach(u8, u8, bool),
    Open(u8, u8),
    Detach(u8),
    Register(u8, u8),
    Unregister(u8, u8),
    Send(u8, Vec<u8>),
    SendThroughLayer(u8, u8, u32),
    Flow(u8, u8),
    Describe(u8),
    LinkUp(u8, u8),
    LinkDown(u8, u8),
    Smp(u8, u8, Vec<u8>),
    Credit(u8, u8, u16),
    Damaged(u8, u8),
    Impair(u8, u8, u8),
    Mend(u8, u8, u8),
    Freeze(u8, bool),
    Wait(u32),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let device = || 0u8..6;
    let port = || 0u8..PORTS + 2;
    let client = || 0u8..6;
    let path = || proptest::collection::vec(0u8..PORTS + 1, 0..5);
    let end = || (0u8..6, 1u8..=PORTS);
    prop_oneof![
        4 => any::<bool>().prop_map(Step::Add),
        1 => device().prop_map(Step::Remove),
        8 => ([end(), end()], any::<bool>()).prop_map(|(ends, long)| Step::Connect(ends, long)),
        2 => end().prop_map(|(device, port)| Step::Lead(device, port)),
        1 => (device(), port()).prop_map(|(device, port)| Step::Disconnect(device, port)),
        3 => Just(Step::Begin),
        2 => (device(), port(), any::<bool>()).prop_map(|(device, port, plugged)| Step::Plug(device, port, plugged)),
        3 => (device(), 0u8..2, any::<bool>()).prop_map(|(device, port, is_sm)| Step::Attach(device, port, is_sm)),
        2 => (device(), 0u8..2).prop_map(|(device, port)| Step::Open(device, port)),
        1 => client().prop_map(Step::Detach),
        2 => (client(), 0u8..4).prop_map(|(client, class)| Step::Register(client, class)),
        1 => (client(), 0u8..2).prop_map(|(client, agent)| Step::Unregister(client, agent)),
        8 => (client(), path()).prop_map(|(client, path)| Step::Send(client, path)),
        2 => (client(), 0u8..2, 0u32..40).prop_map(|(client, agent, timeout)| Step::SendThroughLayer(client, agent, timeout)),
        2 => (device(), port()).prop_map(|(device, port)| Step::Flow(device, port)),
        1 => device().prop_map(Step::Describe),
        2 => end().prop_map(|(device, port)| Step::LinkUp(device, port)),
        1 => end().prop_map(|(device, port)| Step::LinkDown(device, port)),
        2 => (device(), port(), path()).prop_map(|(device, port, path)| Step::Smp(device, port, path)),
        1 => (device(), port(), any::<u16>()).prop_map(|(device, port, fccl)| Step::Credit(device, port, fccl)),
        1 => (device(), port()).prop_map(|(device, port)| Step::Damaged(device, port)),
        2 => (device(), port(), 0u8..10).prop_map(|(device, port, kind)| Step::Impair(device, port, kind)),
        1 => (device(), port(), 0u8..10).prop_map(|(device, port, kind)| Step::Mend(device, port, kind)),
        1 => (device(), any::<bool>()).prop_map(|(device, frozen)| Step::Freeze(device, frozen)),
        4 => (1u32..3_000_000).prop_map(Step::Wait),
    ]
}

/// A node and the time.
pub(crate) struct World {
    node: Node,
    now: Time,
    devices: Vec<DeviceId>,
    clients: Vec<Client>,
    requests: u64,
    last_asked: Vec<RequestId>,
}

impl World {
    pub(crate) fn new(steps_max: u32) -> Self {
        let options = NodeOptions { steps_max, ..NodeOptions::default() };
        let (devices, clients, last_asked) = (Vec::new(), Vec::new(), Vec::new());
        Self { node: Node::new(options), now: Time::from_secs(1), devices, clients, requests: 0, last_asked }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The requests that the last step made.
    pub(crate) fn asked(&self) -> &[RequestId] {
        &self.last_asked
    }

    fn feed(&mut self, input: Input) -> Vec<Output> {
        self.node.handle_input(self.now, input);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        for _ in 0..100_000 {
            outputs.extend(std::iter::from_fn(|| self.node.poll_output()));
            if !self.node.is_unfinished() {
                return outputs;
            }
            self.node.handle_input(self.now, Input::Continue);
        }
        panic!("the node comes to no end");
    }

    /// The answer to a request, and what else came out.
    pub(crate) fn ask(&mut self, request: Request) -> (Result<Answer, Refusal>, Vec<Output>) {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.last_asked.push(id);
        let outputs = self.feed(Input::Request { id, request: Box::new(request) });
        let answer = outputs.iter().find_map(|output| match output {
            Output::Answer { id: answered, outcome } if *answered == id => Some(outcome.clone()),
            _ => None,
        });
        let answer = answer.expect("an answer in the same drain");
        match &answer {
            Ok(Answer::Device(device)) => self.devices.push(*device),
            Ok(Answer::Client(client)) => self.clients.push(*client),
            _ => {}
        }
        (answer, outputs)
    }

    pub(crate) fn add(&mut self, kind: NodeType) -> DeviceId {
        let new = self.new_device(kind);
        match self.ask(Request::AddDevice(new)).0 {
            Ok(Answer::Device(device)) => device,
            other => panic!("{other:?}"),
        }
    }

    fn new_device(&self, kind: NodeType) -> NewDevice {
        let number = self.devices.len() as u64;
        let port = |port: u8| PortConfig { guid: Guid(0x1000 * (number + 1) + u64::from(port)), link: LINK };
        let hca = kind != NodeType::Switch;
        let config = DeviceConfig {
            kind,
            guid: Guid(0x100 + number),
            system_image_guid: Guid(0x100 + number),
            description: format!("device {number}"),
            vendor_id: 1,
            device_id: 2,
            enhanced_port0: false,
            ports: (1..=PORTS).map(port).collect(),
            options: DeviceOptions::default(),
        };
        let hosts = (1..=PORTS).filter(|_| hca).map(PortNum).collect();
        NewDevice { config, incarnation: number, hosts, stack: Some(StackOptions::default()) }
    }

    /// An adapter with one port that is a slot of virtual machines.
    #[allow(dead_code, reason = "not every test has slots")]
    pub(crate) fn add_slot(&mut self, empty: bool, has_host: bool) -> DeviceId {
        let mut new = self.new_device(NodeType::Hca);
        new.config.ports.truncate(1);
        (new.hosts, new.stack) =
            if has_host { (vec![PortNum(1)], Some(StackOptions::default())) } else { (Vec::new(), None) };
        self.ask_for_slot(new, empty)
    }

    /// The same, whose host begins later, as these options say.
    #[allow(dead_code, reason = "not every test has slots")]
    pub(crate) fn add_late_slot(&mut self, options: &StackOptions) -> DeviceId {
        let mut new = self.new_device(NodeType::Hca);
        new.config.ports.truncate(1);
        (new.hosts, new.stack) = (Vec::new(), Some(options.clone()));
        self.ask_for_slot(new, true)
    }

    fn ask_for_slot(&mut self, new: NewDevice, empty: bool) -> DeviceId {
        match self.ask(Request::AddSlot { new, empty }).0 {
            Ok(Answer::Device(device)) => device,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn connect(&mut self, a: (DeviceId, u8), b: (DeviceId, u8)) {
        let ends = [a, b].map(|(device, port)| PortId::new(device, PortNum(port)));
        assert_eq!(self.ask(Request::Connect { ends, delay: Time::ZERO }).0, Ok(Answer::Done));
    }

    /// A program at an adapter's first port.
    pub(crate) fn attach(&mut self, device: DeviceId) -> Client {
        let at = PortId::new(device, PortNum(1));
        match self.ask(Request::Attach { at, registrations: Vec::new(), is_sm: false }).0 {
            Ok(Answer::Client(client)) => client,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn send(&mut self, client: Client, mad: AddressedMad) -> Vec<Output> {
        self.feed(Input::Send { client, mad: Box::new(mad) })
    }

    pub(crate) fn link_up(&mut self, at: PortId) -> Vec<Output> {
        self.feed(Input::LinkUp { at, peer: LINK })
    }

    pub(crate) fn link_down(&mut self, at: PortId) -> Vec<Output> {
        self.feed(Input::LinkDown { at })
    }

    /// Flow control comes to a port; when.
    pub(crate) fn credit_comes(&mut self, at: PortId) -> Time {
        let flow_control = FlowControl { op: 0, fctbs: 0, vl: VirtualLane(0), fccl: 0 };
        self.feed(Input::Arrived { at, frame: Frame::Credit(flow_control) });
        self.now
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Time) -> Vec<Output> {
        self.wait(span)
    }

    pub(crate) fn detach(&mut self, client: Client) -> Vec<Output> {
        self.feed(Input::Detach { client })
    }

    /// A device that was added, or the name of one that never was.
    fn device(&self, place: u8) -> DeviceId {
        self.devices.get(usize::from(place)).copied().unwrap_or(DeviceId(77))
    }

    fn at(&self, device: u8, port: u8) -> PortId {
        PortId::new(self.device(device), PortNum(port))
    }

    fn client(&self, place: u8) -> Client {
        let stranger = Client { device: DeviceId(77), number: weft_device::ClientId(9) };
        self.clients.get(usize::from(place)).copied().unwrap_or(stranger)
    }

    pub(crate) fn take(&mut self, step: &Step) -> Vec<Output> {
        self.last_asked.clear();
        if let Some(request) = self.request(step) {
            return self.ask(request).1;
        }
        match step {
            Step::Add(switch) => {
                let new = self.new_device(if *switch { NodeType::Switch } else { NodeType::Hca });
                self.ask(Request::AddDevice(new)).1
            }
            Step::Wait(nanos) => self.wait(Time::from_nanos(u64::from(*nanos) * 100)),
            other => match self.input(other) {
                Some(input) => self.feed(input),
                None => Vec::new(),
            },
        }
    }

    fn wait(&mut self, span: Time) -> Vec<Output> {
        let end = self.now + span;
        let mut outputs = Vec::new();
        for _ in 0..10_000 {
            let Some(due) = self.node.poll_timeout().filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            self.node.handle_timeout(self.now);
            outputs.extend(self.drain());
        }
        self.now = end;
        outputs
    }

    fn request(&self, step: &Step) -> Option<Request> {
        Some(match *step {
            Step::Remove(device) => Request::RemoveDevice(self.device(device)),
            Step::Connect(ends, long) => {
                let ends = ends.map(|(device, port)| self.at(device, port));
                Request::Connect { ends, delay: if long { Time::from_micros(30) } else { Time::ZERO } }
            }
            Step::Lead(device, port) => Request::Lead { at: self.at(device, port), delay: Time::ZERO },
            Step::Disconnect(device, port) => Request::Disconnect(self.at(device, port)),
            Step::Begin => Request::Begin,
            Step::Plug(device, port, plugged) => Request::Plug { at: self.at(device, port), plugged },
            Step::Attach(device, port, is_sm) => {
                Request::Attach { at: self.at(device, port), registrations: Vec::new(), is_sm }
            }
            Step::Open(device, port) => Request::Open { at: self.at(device, port), message_bytes: 4096 },
            Step::Register(client, class) => {
                let class =
                    [MgmtClass::SubnAdm, MgmtClass::Perf, MgmtClass::SubnLid, MgmtClass::from_code(7)]
                        [usize::from(class)];
                let registration = AgentRequest {
                    qp: if class == MgmtClass::SubnLid { QpNum::SMI } else { QpNum::GSI },
                    class,
                    class_version: 1,
                    oui: Oui(0),
                    methods: MethodMask(6),
                    rmpp_version: 0,
                };
                Request::Register { client: self.client(client), registration }
            }
            Step::Unregister(client, agent) => {
                Request::Unregister { client: self.client(client), agent: AgentId(agent.into()) }
            }
            Step::Flow(device, port) => {
                let spec = FlowSpec {
                    flow: FlowId(u32::from(port)),
                    to: Destination::One(Guid(0x2001)),
                    transport: Default::default(),
                    work: Default::default(),
                    message_bytes: 64,
                    packet_bytes: 64,
                    bytes_per_second: None,
                    bytes_max: None,
                    paths: PathSource::default(),
                    move_by: Default::default(),
                };
                Request::Command { at: self.at(device, port), command: Command::Open(spec) }
            }
            Step::Impair(device, port, kind) => {
                Request::Impair { at: self.at(device, port), how: impairment(kind), seed: 1 }
            }
            Step::Mend(device, port, kind) => {
                Request::Mend { at: self.at(device, port), how: impairment(kind), seed: 1 }
            }
            Step::Freeze(device, frozen) => Request::Freeze { device: self.device(device), frozen },
            Step::Describe(device) => {
                Request::Describe { device: self.device(device), text: "another".to_owned() }
            }
            _ => return None,
        })
    }

    fn input(&self, step: &Step) -> Option<Input> {
        Some(match step {
            Step::Detach(client) => Input::Detach { client: self.client(*client) },
            Step::Send(client, path) => {
                let mad = Box::new(AddressedMad::smp(Lid::PERMISSIVE, directed(path)));
                Input::Send { client: self.client(*client), mad }
            }
            Step::SendThroughLayer(client, agent, timeout_ms) => {
                let mad = AddressedMad::smp(Lid::PERMISSIVE, directed(&[1]));
                let (agent, address) = (AgentId((*agent).into()), Address::from(&mad));
                let data = mad.mad.0.to_vec();
                let message = Message { agent, address, timeout_ms: *timeout_ms, retries: 1, data };
                Input::SendThroughLayer { client: self.client(*client), message: Box::new(message) }
            }
            Step::LinkUp(device, port) => Input::LinkUp { at: self.at(*device, *port), peer: LINK },
            Step::LinkDown(device, port) => Input::LinkDown { at: self.at(*device, *port) },
            Step::Smp(device, port, path) => {
                let route = MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE);
                let frame = Frame::Packet(Packet::from_mad(&route, &directed(path)));
                Input::Arrived { at: self.at(*device, *port), frame }
            }
            Step::Credit(device, port, fccl) => {
                let flow_control = FlowControl { op: 0, fctbs: 0, vl: VirtualLane(0), fccl: fccl % 4096 };
                Input::Arrived { at: self.at(*device, *port), frame: Frame::Credit(flow_control) }
            }
            Step::Damaged(device, port) => Input::Damaged { at: self.at(*device, *port), physical: true },
            _ => return None,
        })
    }
}

fn impairment(kind: u8) -> Impairment {
    let text =
        ["30%", "20ms", "5ms", "30% 2ms", "30%", "1e-4", "20ms 5ms", "1x", "sdr", "1%"][usize::from(kind)];
    Impairment::of(Word::OF_IMPAIRMENTS[usize::from(kind)], text).expect("amounts")
}

/// A Get of NodeInfo by a directed route.
pub(crate) fn directed(path: &[u8]) -> Mad {
    use weft_wire::{AttributeId, DirectedSmp, MadHeader, Method, TransactionId};
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnDirected,
        class_version: 1,
        method: Method::Get,
        transaction_id: TransactionId(7),
        attribute_id: AttributeId::NodeInfo,
        ..MadHeader::default()
    });
    let mut initial = [PortNum(0); 64];
    for (place, port) in initial[1..].iter_mut().zip(path) {
        *place = PortNum(*port);
    }
    DirectedSmp::hop_count.set(&mut mad.0, path.len() as u8);
    DirectedSmp::initial_path.set(&mut mad.0, initial);
    DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    mad
}
