//! The manager before real devices and a real subnet manager: what it learns is what is cabled, what it totals is what
//! the devices counted.

use std::collections::VecDeque;

use weft_machine::{Machine, Time};
use weft_pm::{End, ErrorTotals, Event, Input, Options, Output, PerformanceManager};
use weft_sim::{SimOptions, Simulation};
use weft_sm::SubnetManager;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_vocabulary::NodeKind;
use weft_wire::{
    AddressedMad, AttributeId, DataPacket, Lid, MgmtClass, PERF_DATA, PKey, PortCountersExtended, opcode,
};

/// The devices of one simulation and the subnet manager of another with the same seed, which know the same subnet.
struct World {
    devices: Simulation,
    sm: SubnetManager,
    node: NodeIndex,
    lid: Lid,
    now: Time,
    manager: PerformanceManager,
    events: Vec<Event>,
}

fn up(fabric: &Fabric) -> Simulation {
    let mut simulation = Simulation::new(fabric, SimOptions::default(), 5);
    simulation.run_until_quiet(Time::from_secs(60)).unwrap();
    simulation
}

impl World {
    fn new(fabric: &Fabric, options: Options) -> Self {
        let devices = up(fabric);
        let node = fabric.iter().filter(|(_, node)| !node.is_switch()).last().unwrap().0;
        let now = devices.now();
        let sm = up(fabric).into_sm().unwrap();
        let manager = PerformanceManager::new(options);
        let mut world = Self { devices, sm, node, lid: Lid(0), now, manager, events: Vec::new() };
        let info = world.devices.fabric().node(node).clone();
        let (port, _) = info.cabled_ports().next().unwrap();
        let port_guid = info.port(port).unwrap().guid;
        let attached = Input::Attached { node_guid: info.guid, port_guid, port };
        world.feed(attached);
        world
    }

    fn feed(&mut self, input: Input) {
        self.manager.handle_input(self.now, input);
        self.drain();
    }

    fn run_for(&mut self, time: Time) {
        let end = self.now + time;
        while let Some(at) = self.manager.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.manager.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        let mut inputs = VecDeque::new();
        loop {
            while let Some(output) = self.manager.poll_output() {
                match output {
                    Output::Event(event) => self.events.push(event),
                    Output::Send(mad) => inputs.extend(self.answers(&mad)),
                }
            }
            let Some(mad) = inputs.pop_front() else { return };
            self.now += Time::from_micros(1);
            self.manager.handle_input(self.now, Input::Receive(mad));
        }
    }

    fn answers(&mut self, mad: &AddressedMad) -> Vec<AddressedMad> {
        if mad.mad.class() != MgmtClass::SubnAdm {
            let answer = self.devices.ask(self.node, *mad).into_iter().collect::<Vec<_>>();
            if mad.mad.class() == MgmtClass::SubnDirected {
                self.lid = weft_wire::PortInfo::decode(answer[0].mad.smp_data()).lid;
            }
            return answer;
        }
        self.sm.handle_input(self.now, weft_sm::Input::Receive(AddressedMad { lid: self.lid, ..*mad }));
        self.drain_sm(mad.lid)
    }

    fn drain_sm(&mut self, lid: Lid) -> Vec<AddressedMad> {
        let mut sent = Vec::new();
        while let Some(output) = self.sm.poll_output() {
            match output {
                weft_sm::Output::Send(mad) if mad.mad.class() == MgmtClass::SubnAdm => {
                    sent.push(AddressedMad { lid, ..mad });
                }
                _ => {}
            }
        }
        sent
    }
}

#[test]
fn the_pm_learns_the_cabling() {
    let fabric = xgft(&[4, 3], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut world = World::new(&fabric, Options { wildcard_at_start: false, ..Options::default() });
    let ends: usize = fabric.iter().map(|(_, node)| node.cabled_ports().count()).sum();
    let nodes = fabric.iter().count() as u64;
    assert_eq!(world.events[0], Event::Learned { nodes, ports: ends as u64 });
    let statistics = world.manager.statistics();
    assert_eq!((statistics.subscriptions_failed, statistics.refused, statistics.failures), (0, 0, 0));
    assert_eq!((statistics.sweeps, statistics.requests), (1, 2 * ends as u64));
    let snapshot = world.manager.snapshot(world.now);
    let hosts = snapshot.ports.iter().filter(|port| port.end.kind == NodeKind::Hca);
    assert_eq!(hosts.count(), 12);
    for port in &snapshot.ports {
        let (at, node) = fabric.iter().find(|(_, node)| node.guid == port.end.node_guid.0).unwrap();
        assert_eq!(node.description, port.end.name);
        let far = fabric.peer(weft_topology::PortRef::new(at, port.end.port)).unwrap();
        let peer = port.peer.as_ref().unwrap();
        assert_eq!((fabric.node(far.node).guid, far.port), (peer.node_guid.0, peer.port));
        assert!(port.totals.port_xmit_pkts > 0, "{port:?}");
    }
    let is_other = |end: &End| end.kind == NodeKind::Hca && end.lid != snapshot.lid;
    let idle = snapshot.ports.iter().find(|port| is_other(&port.end)).unwrap();
    let asked = weft_mgmt::perf(
        idle.end.lid,
        Default::default(),
        weft_wire::Method::Get,
        AttributeId::PortCountersExtended,
        &[0, idle.end.port.0],
    );
    let answer = world.devices.ask(world.node, asked).unwrap();
    let counters = PortCountersExtended::decode(answer.mad.0[PERF_DATA].first_chunk().unwrap());
    // The sweep's own PortCounters, and this request, came in between.
    assert!(counters.port_rcv_pkts - idle.totals.port_rcv_pkts <= 2);
    // The subnet manager begins again, and knows no subscriber any more.
    world.run_for(Time::from_secs(5));
    assert!(!world.events.contains(&Event::Forgotten), "{:?}", world.events);
    world.sm = up(&fabric).into_sm().unwrap();
    world.run_for(Time::from_secs(5));
    assert_eq!(world.events.iter().filter(|event| **event == Event::Forgotten).count(), 1);
    let statistics = world.manager.statistics();
    assert_eq!((statistics.learned, statistics.subscriptions_failed), (2, 0));
}

#[test]
fn a_packet_to_nobody_is_found_where_it_was_dropped() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let options = Options { errors: true, wildcard_at_start: false, ..Options::default() };
    let mut world = World::new(&fabric, options);
    let (host, node) = fabric.hosts().next().unwrap();
    let from = PortRef::new(host, node.cabled_ports().next().unwrap().0);
    let leaf = fabric.peer(from).unwrap();
    let packet = DataPacket {
        dlid: Lid(900),
        p_key: PKey::DEFAULT_FULL,
        payload: 2048,
        opcode: opcode::UD_SEND_ONLY,
        ..DataPacket::default()
    };
    world.devices.inject(from, packet);
    world.devices.run_until(world.devices.now() + Time::from_secs(1));
    world.run_for(Time::from_secs(5));
    let snapshot = world.manager.snapshot(world.now);
    let at = (fabric.node(leaf.node).guid, leaf.port);
    for port in &snapshot.ports {
        let expected = u64::from((port.end.node_guid.0, port.end.port) == at);
        let errors = ErrorTotals { port_dlid_mapping_errors: expected, ..ErrorTotals::default() };
        assert_eq!((port.errors, port.totals.port_rcv_switch_relay_errors), (errors, expected), "{port:?}");
    }
}
