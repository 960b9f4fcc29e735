//! Fabrics in service, and hosts that send.

use std::time::{Duration, Instant};

use weft_control::agent::DeviceAccount;
use weft_control::{Answer, Error, Page, Request as Ask};
use weft_device::DataPathOptions;
use weft_host::stack::StackOptions;
use weft_host::traffic::{Command, Destination, FlowId, FlowReport, FlowSpec, LearntPath, Transport, Work};
use weft_machine::Time;
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_umad::Client;
use weft_wire::{
    AttributeId, Guid, Lid, LinearForwardingTable, Mtu, PKey, PathRate, PortInfo, PortNum, PortState,
    ServiceLevel, SwitchInfo, VirtualLane, VlArbitrationEntry, VlArbitrationTable,
};

use super::{Fabric, HCA_A, HCA_B, HCA_C, PATIENCE, Running, SWITCH, ask, end, port_end};

/// No lifetime ends: nothing is dropped for waiting (IBA 14.2.5.4, 14.2.5.6).
const UNLIMITED: u8 = 20;

/// The LID of each node here.
pub(crate) fn lid(node: Guid) -> Lid {
    match node {
        HCA_A => Lid(1),
        HCA_B => Lid(2),
        HCA_C => Lid(3),
        _ => Lid(10),
    }
}

/// The GUID of an adapter's only port.
pub(crate) fn port_guid(hca: Guid) -> Guid {
    Guid(hca.0 + 1)
}

impl Fabric {
    /// Three hosts at a switch, at the experiments' rates and scale.
    pub(crate) fn shaped(groups: &[&[Guid]]) -> Self {
        Self::with_hosts(
            groups,
            &DataPathOptions {
                shaped: true,
                dilation: 1000,
                host_limit_mbps: 12_900,
                ..DataPathOptions::default()
            },
        )
    }

    /// Hosts at a switch.
    pub(crate) fn with_hosts(groups: &[&[Guid]], data: &DataPathOptions) -> Self {
        let mut fabric = Self::new(groups, 2000);
        for agent in &mut fabric.agents {
            agent.part.hosts = Some(StackOptions { dilation: data.dilation, ..StackOptions::default() });
            agent.part.devices.iter_mut().for_each(|device| device.options.data = data.clone());
        }
        fabric
    }

    /// Hosts that do not wait long before they send again.
    pub(crate) fn impatient(mut self) -> Self {
        for options in self.agents.iter_mut().filter_map(|agent| agent.part.hosts.as_mut()) {
            options.ack_timeout = Time::from_millis(400);
        }
        self
    }
}

/// Agents in service: links up, LIDs and tables written as a subnet manager would, ports Active.
pub(crate) fn in_service(fabric: &Fabric) -> Vec<Running> {
    let agents = fabric.up();
    activate(&agents);
    agents
}

/// Writes LIDs and tables and activates every port, from HCA A.
pub(crate) fn activate(agents: &[Running]) {
    activate_from(agents, HCA_A, None);
}

/// The same from another adapter. A stranger's own port is not asked to do anything.
pub(crate) fn activate_from(agents: &[Running], from: Guid, stranger: Option<Guid>) {
    let mut program = running(agents, from).attach(from, 1);
    let switch = running(agents, SWITCH);
    let cables: Vec<_> =
        switch.config.part.cables.iter().filter(|cable| cable.local.guid == SWITCH).collect();
    let mut table = LinearForwardingTable { ports: [PortNum(255); 64] };
    table.ports[usize::from(lid(SWITCH).0)] = PortNum(0);
    for cable in &cables {
        table.ports[usize::from(lid(cable.remote.guid).0)] = cable.local.port;
    }
    let info = SwitchInfo::decode(get(&mut program, &[1], AttributeId::SwitchInfo, 0).first_chunk().unwrap());
    let info = SwitchInfo { linear_fdb_top: Lid(10).0, life_time_value: UNLIMITED, ..info };
    set(&mut program, &[1], AttributeId::SwitchInfo, 0, &info.encode());
    set(&mut program, &[1], AttributeId::LinearForwardingTable, 0, &table.encode());
    let info = PortInfo { lid: lid(SWITCH), ..PortInfo::default() };
    set(&mut program, &[1], AttributeId::PortInfo, 0, &info.encode());
    for state in [PortState::NoChange, PortState::Armed, PortState::Active] {
        for cable in &cables {
            let (node, out) = (cable.remote.guid, cable.local.port.0);
            let way: &[u8] = if node == from { &[] } else { &[1, out] };
            if stranger != Some(node) {
                weights(&mut program, way, 1);
                bring(&mut program, way, 1, lid(node), state);
            }
            weights(&mut program, &[1], out);
            bring(&mut program, &[1], out, Lid(0), state);
        }
    }
    for cable in cables {
        switch.await_port(cable.local, |port| port.state == PortState::Active.into());
        if stranger != Some(cable.remote.guid) {
            let there = running(agents, cable.remote.guid);
            there.await_port(cable.remote, |port| port.state == PortState::Active.into());
        }
    }
}

/// Gives a port one lane.
pub(crate) fn weights(program: &mut Client, path: &[u8], port: u8) {
    let mut low = VlArbitrationTable::default();
    low.entries[0] = VlArbitrationEntry { reserved: 0, vl: VirtualLane(0), weight: 64 };
    set(program, path, AttributeId::VlArbitrationTable, 1 << 16 | u32::from(port), &low.encode());
}

/// Brings a port to a state, without lifetimes; one that is in service stays so.
pub(crate) fn bring(program: &mut Client, path: &[u8], port: u8, lid: Lid, state: PortState) {
    let now = get(program, path, AttributeId::PortInfo, port.into());
    if PortInfo::decode(&now).port_state == PortState::Active {
        return;
    }
    let neighbor_mtu = Mtu::Bytes2048;
    let info = PortInfo { lid, neighbor_mtu, port_state: state, hoq_life: UNLIMITED, ..PortInfo::default() };
    set(program, path, AttributeId::PortInfo, port.into(), &info.encode());
}

/// The agent that runs a node.
pub(crate) fn running(agents: &[Running], node: Guid) -> &Running {
    let runs = |agent: &&Running| agent.config.part.devices.iter().any(|device| device.guid == node);
    agents.iter().find(runs).unwrap()
}

fn route(path: &[u8]) -> SmpRoute {
    let ports: Vec<PortNum> = path.iter().copied().map(PortNum).collect();
    SmpRoute::Directed(DirectedPath::new(&ports).unwrap())
}

pub(crate) fn get(program: &mut Client, path: &[u8], attribute: AttributeId, modifier: u32) -> [u8; 64] {
    *ask(program, &Request::get(attribute, modifier).by(&route(path))).mad.smp_attribute()
}

pub(crate) fn set(program: &mut Client, path: &[u8], attribute: AttributeId, modifier: u32, value: &[u8]) {
    let answer = ask(program, &Request::set(attribute, modifier, value).by(&route(path)));
    assert_eq!(answer.mad.status() & 0x1f, 0, "{attribute:?} {modifier:#x} at {path:?}");
}

/// Tells the host of an adapter to do something.
pub(crate) fn tell(agent: &Running, node: Guid, command: Command) -> Result<Answer, Error> {
    agent.try_ask(Ask::Host { end: port_end(end(node, 1)), command })
}

/// Begins a flow of a reliable connection between two adapters' hosts.
pub(crate) fn stream(agents: &[Running], flow: u32, from: Guid, to: Guid) {
    let path = |to: Guid| LearntPath {
        to: port_guid(to),
        dlid: lid(to),
        service_level: ServiceLevel(0),
        p_key: PKey::DEFAULT_FULL,
        rate: PathRate::default(),
    };
    let done = Ok(Answer::Done);
    assert_eq!(tell(running(agents, to), to, Command::LearnPaths(vec![path(from)])), done);
    assert_eq!(tell(running(agents, from), from, Command::LearnPaths(vec![path(to)])), done);
    let expect = Command::Expect {
        flow: FlowId(flow),
        from: Some(port_guid(from)),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 2048,
    };
    assert_eq!(tell(running(agents, to), to, expect), done);
    let open = Command::Open(FlowSpec {
        flow: FlowId(flow),
        to: Destination::One(port_guid(to)),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 2048,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: Default::default(),
        move_by: Default::default(),
    });
    assert_eq!(tell(running(agents, from), from, open), done);
}

/// What became of a flow at one end.
pub(crate) fn report(agent: &Running, node: Guid, flow: u32, sender: bool) -> FlowReport {
    let Answer::Flows { hosts, more: false } = agent.ask(Ask::Flows(Page::default())) else {
        panic!("no flows")
    };
    let host = hosts.into_iter().find(|host| host.end.node.0 == node).unwrap();
    let flow = FlowId(flow);
    host.flows.into_iter().find(|report| report.flow == flow && report.sender == sender).unwrap()
}

/// Waits until something is so, asking now and then.
pub(crate) fn await_that(agent: &Running, what: &str, mut so: impl FnMut() -> bool) {
    let mut pause = agent.connect();
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        assert_eq!(pause.recv(Duration::from_millis(20)).unwrap(), None);
    }
}

/// The accounts of all devices.
pub(crate) fn accounts(agents: &[Running]) -> Vec<DeviceAccount> {
    let account = |agent: &Running| match agent.ask(Ask::Account(Page::default())) {
        Answer::Account { devices, more: false } => devices,
        other => panic!("{other:?}"),
    };
    agents.iter().flat_map(account).collect()
}
