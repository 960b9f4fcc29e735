//! Requests of diagnostic tools to a whole fabric, from hosts and from switches.

use weft_device::Counters;
use weft_machine::Time;
use weft_mgmt::{DirectedPath, Request, SmpRoute, perf};
use weft_sim::{SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{
    AttributeId, Lid, Method, NodeInfo, NodeType, PERF_DATA, PhysState, PortCountersExtended, PortInfo,
    PortNum, PortState, PortVlOpPackets, ServiceLevel, status,
};

const LIMIT: Time = Time::from_secs(300);

fn up() -> Simulation {
    let fabric = xgft(&[3, 2], &[1, 2], &GenerateOptions::default()).expect("a tree that fits its radix");
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 7);
    simulation.run_until_quiet(LIMIT).unwrap_or_else(|error| panic!("{error}"));
    simulation
}

/// The LID of a switch, or of a host's first port.
fn lid(simulation: &Simulation, node: NodeIndex) -> Lid {
    simulation.device(node).unwrap().snapshot().ports[0].lid
}

fn ports_of(simulation: &Simulation, kind: NodeType) -> Vec<PortRef> {
    let nodes = simulation.fabric().iter().filter(|(_, node)| node.kind == kind);
    nodes.flat_map(|(at, node)| node.cabled_ports().map(move |(port, _)| PortRef::new(at, port))).collect()
}

/// `ibportstate LID PORT` of every port of every switch: the peer is the one of the cabling, whoever asks.
#[test]
fn the_peer_of_every_port_of_every_switch() {
    let mut simulation = up();
    let askers: Vec<NodeIndex> = [NodeType::Hca, NodeType::Switch]
        .into_iter()
        .flat_map(|kind| simulation.fabric().iter().filter(move |(_, n)| n.kind == kind).take(2))
        .map(|(at, _)| at)
        .collect();
    for asker in askers {
        let from = lid(&simulation, asker);
        for port in ports_of(&simulation, NodeType::Switch) {
            let via = lid(&simulation, port.node);
            let path = DirectedPath::new(&[port.port]).unwrap();
            let route = SmpRoute::Combined { via, from, path };
            let request = Request::get(AttributeId::NodeInfo, 0).by(&route);
            let answer = simulation.ask(asker, request).unwrap_or_else(|| panic!("{asker:?} {port:?}"));
            assert_eq!(answer.mad.status(), status::OK);
            let found = NodeInfo::decode(answer.mad.smp_attribute());
            let peer = simulation.fabric().peer(port).unwrap();
            let wanted = simulation.fabric().node(peer.node).guid;
            assert_eq!((found.node_guid, found.local_port_num), (wanted, peer.port), "{port:?}");
        }
    }
}

fn counters(simulation: &Simulation, port: PortRef) -> Counters {
    simulation.device(port.node).unwrap().port_snapshot(port.port).unwrap().counters
}

/// What one end of a cable has sent, the other has received; and the PMA says what the device has counted.
#[test]
fn both_ends_of_every_cable_have_counted_the_same() {
    let mut simulation = up();
    simulation.probe().unwrap();
    let hosts = ports_of(&simulation, NodeType::Hca);
    let switches = ports_of(&simulation, NodeType::Switch);
    let (asker, _) = simulation.fabric().hosts().next().unwrap();
    for &port in hosts.iter().chain(&switches) {
        let peer = simulation.fabric().peer(port).unwrap();
        let (sent, received) = (counters(&simulation, port), counters(&simulation, peer));
        assert!(sent.port_xmit_pkts > 0);
        assert_eq!(
            (sent.port_xmit_pkts, sent.port_xmit_data),
            (received.port_rcv_pkts, received.port_rcv_data),
            "{port:?}"
        );
        assert_eq!((sent.port_rcv_errors, sent.port_xmit_discards), (0, 0));
    }
    for port in switches {
        let asked = PortCountersExtended { port_select: port.port, ..PortCountersExtended::default() };
        let to = lid(&simulation, port.node);
        let request =
            perf(to, ServiceLevel(0), Method::Get, AttributeId::PortCountersExtended, &asked.encode());
        let answer = simulation.ask(asker, request).expect("an answer");
        let found = PortCountersExtended::decode(answer.mad.0[PERF_DATA].first_chunk().unwrap());
        let now = counters(&simulation, port);
        // The answer itself may have left by this port after it was written.
        assert!(now.port_xmit_pkts - found.port_xmit_pkts <= 1, "{port:?}");
        assert_eq!(now.port_rcv_pkts, found.port_rcv_pkts, "{port:?}");

        let lanes = PortVlOpPackets { port_select: port.port, ..PortVlOpPackets::default() };
        let request =
            perf(to, ServiceLevel(0), Method::Get, AttributeId::PORT_VL_OP_PACKETS, &lanes.encode());
        let answer = simulation.ask(asker, request).expect("an answer");
        let lanes =
            PortVlOpPackets::decode(answer.mad.0[PERF_DATA].first_chunk().unwrap()).port_vl_op_packets;
        let all: u64 = lanes.iter().map(|&count| u64::from(count)).sum();
        assert_eq!(all, counters(&simulation, port).port_rcv_pkts, "every packet came on some lane");
        assert!(lanes[15] > 0 && lanes[1..15].iter().all(|&count| count == 0));
    }
}

fn set_state(simulation: &mut Simulation, asker: NodeIndex, port: PortRef, state: PhysState) -> PortInfo {
    let route = SmpRoute::Lid(lid(simulation, port.node));
    let modifier = u32::from(port.port.0);
    let get = Request::get(AttributeId::PortInfo, modifier).by(&route);
    let mut info = PortInfo::decode(simulation.ask(asker, get).expect("an answer").mad.smp_attribute());
    (info.port_state, info.port_physical_state) = (PortState::NoChange, state);
    let set = Request::set(AttributeId::PortInfo, modifier, &info.encode()).by(&route);
    let answer = simulation.ask(asker, set).expect("an answer");
    assert_eq!(answer.mad.status(), status::OK);
    PortInfo::decode(answer.mad.smp_attribute())
}

/// `ibportstate LID PORT disable` and `enable`, of a port towards a host that is not the one that asks.
#[test]
fn a_port_is_switched_off_and_on() {
    let mut simulation = up();
    let (asker, _) = simulation.fabric().hosts().next().unwrap();
    let (other, _) = simulation.fabric().hosts().last().unwrap();
    let at_host = PortRef::new(other, PortNum(1));
    let at_switch = simulation.fabric().peer(at_host).unwrap();
    let states = |simulation: &Simulation| {
        [at_switch, at_host].map(|port| {
            let port = simulation.device(port.node).unwrap().port_snapshot(port.port).unwrap();
            (port.state, port.physical)
        })
    };
    assert_eq!(states(&simulation), [(PortState::Active, PhysState::LinkUp); 2]);
    let info = set_state(&mut simulation, asker, at_switch, PhysState::Disabled);
    assert_eq!((info.port_state, info.port_physical_state), (PortState::Down, PhysState::Disabled));
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let (down, off) = (PortState::Down, PhysState::Disabled);
    assert_eq!(states(&simulation), [(down, off), (down, PhysState::Polling)]);
    let info = set_state(&mut simulation, asker, at_switch, PhysState::Polling);
    assert_eq!((info.port_state, info.port_physical_state), (PortState::Down, PhysState::Polling));
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        states(&simulation),
        [(PortState::Active, PhysState::LinkUp); 2],
        "the manager has seen it come"
    );
    // Reset: down and up again, which the manager takes for a new link.
    let downed = counters(&simulation, at_host).link_downed_counter;
    set_state(&mut simulation, asker, at_switch, PhysState::Polling);
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(states(&simulation), [(PortState::Active, PhysState::LinkUp); 2]);
    assert_eq!(counters(&simulation, at_host).link_downed_counter, downed + 1);
}
