//! Management beside data: answers of subnet administration while a data lane stands still, notices that reach hosts, and
//! hosts that subscribe again when the manager has restarted.

use weft_host::traffic::{
    Command, Destination, FlowId, FlowReport, FlowSpec, LearntPath, PathSource, Transport,
};
use weft_machine::Time;
use weft_routing::{Member, Partition, Partitions};
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::*;

const LIMIT: Time = Time::from_secs(60);
/// A lifetime that never ends.
const FOR_EVER: u8 = 20;

fn hosts(fabric: &Fabric) -> Vec<PortRef> {
    fabric.hosts().map(|(node, _)| PortRef::new(node, PortNum(1))).collect()
}

/// The host behind each switch, in the order of the ring.
fn around(fabric: &Fabric) -> Vec<PortRef> {
    let first = fabric.switches().next().expect("a switch").0;
    let (mut order, mut at) = (Vec::<NodeIndex>::new(), Some(first));
    while let Some(switch) = at {
        order.push(switch);
        let mut next = fabric.node(switch).cabled_ports().map(|(_, peer)| peer.node);
        at = next.find(|node| fabric.node(*node).is_switch() && !order.contains(node));
    }
    let host = |switch: &NodeIndex| {
        let mut peers = fabric.node(*switch).cabled_ports().map(|(_, peer)| peer);
        peers.find(|peer| !fabric.node(peer.node).is_switch()).expect("a host")
    };
    order.iter().map(host).collect()
}

fn guid(fabric: &Fabric, port: PortRef) -> Guid {
    fabric.port(port).expect("a port").guid
}

fn up(fabric: &Fabric, management_lane: bool) -> Simulation {
    up_with(fabric, management_lane, SimOptions { hosts: true, ..SimOptions::default() })
}

fn up_with(fabric: &Fabric, management_lane: bool, mut options: SimOptions) -> Simulation {
    options.device.data.shaped = true;
    options.device.data.buffer_packets = 2;
    options.sm.lanes.management_lane = management_lane;
    // The default would not take shortest paths that can close a circle.
    options.sm.routing.chain = "minhop".parse().expect("an engine");
    (options.sm.lanes.hoq_life, options.sm.lanes.leaf_hoq_life, options.sm.lanes.packet_life_time) =
        (FOR_EVER, FOR_EVER, FOR_EVER);
    let mut simulation = Simulation::new(fabric, options, 4711);
    simulation.run_until_quiet(LIMIT).unwrap_or_else(|error| panic!("{error}"));
    // Hosts subscribe when their ports are up.
    let later = simulation.now() + Time::from_secs(2);
    simulation.run_until(later);
    simulation
}

fn stream(fabric: &Fabric, flow: u32, to: PortRef) -> Command {
    Command::Open(FlowSpec {
        flow: FlowId(flow),
        to: Destination::One(guid(fabric, to)),
        transport: Transport::UnreliableDatagram,
        work: Default::default(),
        message_bytes: 2048,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: Default::default(),
        move_by: Default::default(),
    })
}

fn expect(fabric: &Fabric, flow: u32, from: PortRef) -> Command {
    Command::Expect {
        flow: FlowId(flow),
        from: Some(guid(fabric, from)),
        transport: Transport::UnreliableDatagram,
        work: Default::default(),
        message_bytes: 2048,
    }
}

/// Bytes that have arrived anywhere.
fn delivered(simulation: &Simulation) -> u64 {
    let reports = hosts(simulation.fabric()).into_iter().flat_map(|host| simulation.host_reports(host.node));
    reports.filter(|report| !report.sender).map(|report| report.bytes).sum()
}

fn run_for(simulation: &mut Simulation, span: Time) {
    let until = simulation.now() + span;
    simulation.run_until(until);
}

/// Seven switches in a ring, each host sending to the third one on: the shortest way of all goes round the same way, so
/// lane 0 comes to stand still for good. Another host asks for a path then. With a lane of its own its question is
/// answered; without, neither ever gets through.
#[test]
fn a_lane_that_stands_still_does_not_hold_up_management() {
    for management_lane in [true, false] {
        let fabric = ring(7, 1, &GenerateOptions::default()).unwrap();
        let mut simulation = up(&fabric, management_lane);
        let hosts = around(&fabric);
        let third = |at: usize| hosts[(at + 3) % hosts.len()];
        for (at, from) in hosts.iter().enumerate() {
            let flow = at as u32;
            assert!(simulation.command(third(at), expect(&fabric, flow, *from)));
            assert!(simulation.command(*from, stream(&fabric, flow, third(at))));
        }
        run_for(&mut simulation, Time::from_millis(200));
        let before = delivered(&simulation);
        assert!(before > 0, "something went through at first");
        run_for(&mut simulation, Time::from_secs(1));
        assert_eq!(delivered(&simulation), before, "lane 0 stands still");
        // The manager is at the first host of the fabric.
        let asker = *hosts.iter().find(|host| **host != simulation.sm_port()).unwrap();
        let other = *hosts.iter().rfind(|host| **host != asker).unwrap();
        let answered = simulation.sm().unwrap().sa_counts().answered;
        assert!(simulation.command(asker, stream(&fabric, 99, other)));
        run_for(&mut simulation, Time::from_secs(5));
        let reports = simulation.host_reports(asker.node);
        let has_its_path = reports.iter().any(|report| report.flow == FlowId(99) && report.state != "path");
        assert_eq!(has_its_path, management_lane, "{reports:?}");
        let more = simulation.sm().unwrap().sa_counts().answered - answered;
        assert_eq!(more, u64::from(management_lane));
    }
}

/// SubnAdmSet(Notice) with a wildcard, from a node.
fn ask_again(simulation: &mut Simulation, node: NodeIndex) -> u16 {
    let details = Details::Repath(trap::REPATH, RepathDetails::default());
    let notice = Notice::generic(NodeType::Hca, Lid(0), &details).encode();
    let mut mad = Mad::default();
    SaMad::method.set(&mut mad.0, Method::Set);
    SaMad::attribute_id.set(&mut mad.0, AttributeId::Notice);
    mad.0[56..56 + notice.len()].copy_from_slice(&notice);
    simulation.ask_sa(node, &mad).expect("an answer").head.status()
}

/// A notice that one port requests reaches every host, also when the manager has restarted
/// meanwhile and knows of no subscription until hosts have subscribed again.
#[test]
fn hosts_receive_repaths_before_and_after_an_sm_restart() {
    let fabric = ring(4, 2, &GenerateOptions::default()).unwrap();
    let mut simulation = up(&fabric, true);
    let hosts = hosts(&fabric);
    let asker = hosts[5].node;
    for round in 1..=2 {
        assert_eq!(ask_again(&mut simulation, asker), status::OK);
        run_for(&mut simulation, Time::from_secs(1));
        for host in &hosts {
            let counts = simulation.stack(*host).unwrap().counts();
            assert_eq!(counts.repaths, round, "round {round}, {}: {counts:?}", fabric.port_name(*host));
        }
        if round == 1 {
            simulation.apply(Fault::Kill(Process::Sm));
            run_for(&mut simulation, Time::from_millis(500));
            simulation.apply(Fault::Restart(Process::Sm));
            run_for(&mut simulation, Time::from_secs(20));
        }
    }
}

/// A ring of eight hosts of which two, 2 and 5, are a partition of their own, the latter as a limited member.
fn with_tenant(fabric: &Fabric) -> Simulation {
    let hosts = hosts(fabric);
    let member = |at: usize, full| Member { guid: guid(fabric, hosts[at]), full };
    let tenant = Partition {
        name: "tenant".to_owned(),
        pkey: 2,
        members: vec![member(2, true), member(5, false)],
        isolation: Default::default(),
    };
    let mut options = SimOptions { hosts: true, ..SimOptions::default() };
    options.sm.routing.engine.partitions = Some(Partitions { list: vec![tenant], ..Partitions::default() });
    up_with(fabric, true, options)
}

/// With partitions, kept by switches, every host reaches the manager by the default one, though as a limited member; and
/// two hosts that share a partition with a full member in it have a path, others have none.
#[test]
fn limited_members_reach_the_manager() {
    let fabric = ring(4, 2, &GenerateOptions::default()).unwrap();
    let hosts = hosts(&fabric);
    let mut simulation = with_tenant(&fabric);
    let switches: Vec<NodeIndex> = fabric.switches().map(|(node, _)| node).collect();
    let (slid, dlid) = (1 << 5, 1 << 4);
    for (from, to, want) in [
        (2, 5, Ok(PKey(0x8002))),
        (5, 2, Ok(PKey(2))),
        (3, 5, Err(sa_status::NO_RECORDS)),
        (5, 6, Err(sa_status::NO_RECORDS)),
    ] {
        let lid =
            |at: usize| simulation.device(hosts[at].node).unwrap().port_snapshot(PortNum(1)).unwrap().lid;
        let record = PathRecord { slid: lid(from), dlid: lid(to), ..PathRecord::default() };
        let mut mad = Mad::default();
        SaMad::method.set(&mut mad.0, Method::Get);
        SaMad::attribute_id.set(&mut mad.0, PathRecord::ATTRIBUTE);
        SaMad::component_mask.set(&mut mad.0, slid | dlid);
        mad.0[56..56 + PathRecord::LENGTH].copy_from_slice(&record.encode());
        let answer = simulation.ask_sa(hosts[from].node, &mad).expect("an answer");
        let found = match answer.head.status() {
            status::OK => Ok(PathRecord::from_bytes(&answer.records).p_key),
            status => Err(status),
        };
        assert_eq!(found, want, "{from} to {to}");
    }
    for host in &hosts {
        let counts = simulation.stack(*host).unwrap().counts();
        assert!(counts.subscriptions > 0, "{}: {counts:?}", fabric.port_name(*host));
    }
    for switch in switches {
        for (port, _) in fabric.node(switch).cabled_ports() {
            let counters = simulation.device(switch).unwrap().port_snapshot(port).unwrap().counters;
            let dropped = counters.port_rcv_constraint_errors + counters.port_xmit_constraint_errors;
            assert_eq!(dropped, 0, "{}", fabric.port_name(PortRef::new(switch, port)));
        }
    }
}

fn lid_of(simulation: &Simulation, host: PortRef) -> Lid {
    let device = simulation.device(host.node).expect("the host is on");
    device.port_snapshot(PortNum(1)).expect("it has a port").lid
}

/// A flow of one megabyte at both of its ends.
fn flow(
    simulation: &mut Simulation,
    number: u32,
    (from, to): (PortRef, PortRef),
    how: (Transport, PathSource),
) {
    let fabric = simulation.fabric().clone();
    let (transport, paths) = how;
    let Command::Expect { flow, from: source, work, message_bytes, .. } = expect(&fabric, number, from)
    else {
        unreachable!("it is what it is made as")
    };
    assert!(simulation.command(to, Command::Expect { flow, from: source, transport, work, message_bytes }));
    let Command::Open(spec) = stream(&fabric, number, to) else { unreachable!("likewise") };
    let spec = FlowSpec { transport, paths, bytes_max: Some(1 << 20), ..spec };
    assert!(simulation.command(from, Command::Open(spec)));
}

fn report(simulation: &Simulation, host: PortRef, number: u32, sender: bool) -> FlowReport {
    let reports = simulation.host_reports(host.node);
    reports.into_iter().find(|report| report.flow.0 == number && report.sender == sender).expect("a report")
}

/// Flows between the members of a partition carry its key, whether a path record or whoever taught the path said so, and
/// acknowledgements do too. Across partitions there is no path; and who does not ask sends in the default partition, in
/// which limited members do not hear each other.
#[test]
fn flows_stay_in_their_partitions() {
    let fabric = ring(4, 2, &GenerateOptions::default()).unwrap();
    let hosts = hosts(&fabric);
    let mut simulation = with_tenant(&fabric);
    let (reliable, datagrams) = (Transport::ReliableConnection, Transport::UnreliableDatagram);
    let (asked, unasked) = (PathSource::PathRecord, PathSource::Unasked);
    flow(&mut simulation, 1, (hosts[2], hosts[5]), (reliable, asked));
    flow(&mut simulation, 2, (hosts[2], hosts[5]), (datagrams, asked));
    flow(&mut simulation, 3, (hosts[3], hosts[5]), (datagrams, asked));
    flow(&mut simulation, 4, (hosts[2], hosts[5]), (datagrams, unasked));
    let (to, dlid) = (guid(&fabric, hosts[2]), lid_of(&simulation, hosts[2]));
    let rate = PathRate::default();
    let learnt = LearntPath { to, dlid, service_level: ServiceLevel(0), p_key: PKey(0x8002), rate };
    assert!(simulation.command(hosts[5], Command::LearnPaths(vec![learnt])));
    flow(&mut simulation, 5, (hosts[5], hosts[2]), (reliable, asked));
    run_for(&mut simulation, Time::from_secs(30));
    for (number, from, to) in [(1, 2, 5), (2, 2, 5), (5, 5, 2)] {
        let (sent, received) =
            (report(&simulation, hosts[from], number, true), report(&simulation, hosts[to], number, false));
        assert_eq!((sent.state.as_str(), received.bytes), ("done", 1 << 20), "{sent:?}, {received:?}");
    }
    let across = report(&simulation, hosts[3], 3, true);
    assert_eq!((across.state.as_str(), across.packets), ("path", 0), "{across:?}");
    assert!(across.error.as_ref().is_some_and(|error| error.contains("0x0300")), "{across:?}");
    let sent = report(&simulation, hosts[2], 4, true);
    assert_eq!((sent.packets > 0, report(&simulation, hosts[5], 4, false).packets), (true, 0), "{sent:?}");
    assert_eq!(simulation.statistics().host_pauses, 0);
}

/// An adapter that has not the key refuses every packet at once: its host offers one in a packet's time.
#[test]
fn packets_refused_by_an_adapter_do_not_stop_time() {
    let fabric = ring(4, 2, &GenerateOptions::default()).unwrap();
    let hosts = hosts(&fabric);
    let mut simulation = with_tenant(&fabric);
    let (to, dlid) = (guid(&fabric, hosts[2]), lid_of(&simulation, hosts[2]));
    let rate = PathRate::default();
    let learnt = LearntPath { to, dlid, service_level: ServiceLevel(0), p_key: PKey(0x8009), rate };
    assert!(simulation.command(hosts[5], Command::LearnPaths(vec![learnt])));
    assert!(simulation.command(hosts[5], stream(&fabric, 1, hosts[2])));
    run_for(&mut simulation, Time::from_millis(10));
    let counts = simulation.stack(hosts[5]).unwrap().counts();
    // At more than 100 Gb/s 2048 bytes would go in less than 160 ns.
    assert!((1..60_000).contains(&counts.packets_refused), "{counts:?}");
    assert_eq!(simulation.statistics().host_pauses, 0);
}
