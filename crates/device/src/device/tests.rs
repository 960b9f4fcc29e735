use super::*;
use crate::Frame;
use crate::testing::*;
use weft_wire::{AttributeId, Mad, MadRoute, Method, PhysState, PortState};

#[test]
fn the_way_to_active() {
    let mut bench = hca(1);
    assert_eq!(bench.state(ONE), PortState::Down);
    bench.link_up(ONE);
    assert_eq!(bench.state(ONE), PortState::Initialize);
    assert_ne!(bench.set_port_info(0, |info| info.port_state = PortState::Active), 0, "not before Armed");
    bench.activate(0);
    assert_eq!(bench.state(ONE), PortState::Active);
    let events = events(&bench.input(Input::LinkDown { port: ONE }));
    let gone = Event::PortStateChanged { port: ONE, from: PortState::Active, to: PortState::Down };
    assert_eq!(events, [gone]);
    let counters = bench.device.port_snapshot(ONE).unwrap().counters;
    assert_eq!(counters.link_downed_counter, 1);
    assert!(bench.input(Input::LinkDown { port: ONE }).is_empty(), "it is down already");
}

#[test]
fn the_first_data_packet_activates_an_armed_port() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    bench.assign(7);
    assert_eq!(bench.set_port_info(0, |info| info.port_state = PortState::Armed), 0);
    bench.receive(ONE, gmp_packet(0, 0, 3, 7, &Mad::default()));
    assert_eq!(bench.state(ONE), PortState::Active);
}

#[test]
fn links_are_switched_by_the_manager() {
    let mut bench = switch(2);
    bench.link_up(ONE);
    bench.link_up(TWO);
    let commands = |bench: &mut Bench, physical| {
        let mut info = bench.port_info(2);
        (info.port_state, info.port_physical_state) = (PortState::Down, physical);
        let mut mad = direct(smp(Method::Set, AttributeId::PortInfo, 2, &info.encode()), &[9]);
        weft_wire::DirectedSmp::hop_pointer.set(&mut mad.0, 1);
        let packet = Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad);
        let outputs = bench.receive(ONE, packet);
        outputs
            .iter()
            .filter_map(|output| match output {
                Output::SetLink { port, enabled, .. } => Some((port.0, *enabled)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(commands(&mut bench, PhysState::Disabled), [(2, false)]);
    assert_eq!(bench.state(TWO), PortState::Down);
    let outputs = bench.link_up(TWO);
    assert!(matches!(outputs[..], [Output::SetLink { enabled: false, .. }]), "{outputs:?}");
    assert_eq!(bench.state(TWO), PortState::Down, "a disabled port stays down");
    assert_eq!(commands(&mut bench, PhysState::Polling), [(2, true)]);
    bench.link_up(TWO);
    assert_eq!(bench.state(TWO), PortState::Initialize);
    assert_eq!(commands(&mut bench, PhysState::Polling), [(2, false), (2, true)], "down and up again");
    bench.link_up(TWO);
    assert_eq!(commands(&mut bench, PhysState::NoChange), [(2, false), (2, true)], "Down polls");
    let counters = bench.device.port_snapshot(TWO).unwrap().counters;
    assert_eq!(counters.link_downed_counter, 0, "what was asked for is no error");
}

#[test]
fn two_ends_without_a_common_speed_stay_down() {
    let mut bench = hca(1);
    let outputs = bench.input(Input::LinkUp { port: ONE, peer: LinkParameters { width: 4, ..LINK } });
    assert_eq!(events(&outputs), [Event::LinkMismatch { port: ONE }]);
    assert_eq!(bench.state(ONE), PortState::Down);
}

#[test]
fn ports_that_are_not_there() {
    let mut bench = hca(1);
    for port in [PortNum(0), PortNum(2), PortNum(255)] {
        for input in [
            Input::LinkUp { port, peer: LINK },
            Input::LinkDown { port },
            Input::Arrive { port, frame: Frame::Packet(gmp_packet(0, 0, 1, 2, &Mad::default())) },
            Input::TransmitDropped { port, unsent: (&gmp_packet(0, 0, 1, 2, &Mad::default())).into() },
        ] {
            assert_eq!(drop_reason(&bench.input(input)), Some(DropReason::NoSuchPort));
        }
    }
    let many = config(weft_wire::NodeType::Hca, 255);
    assert_eq!(Device::new(&many).ports.len(), PORTS_MAX + 1);
}

#[test]
fn nothing_comes_over_a_link_that_is_down() {
    let mut bench = hca(1);
    let outputs = bench.receive(ONE, gmp_packet(0, 0, 1, 2, &Mad::default()));
    assert_eq!(drop_reason(&outputs), Some(DropReason::LinkDown));
    assert_eq!(bench.device.port_snapshot(ONE).unwrap().counters, crate::Counters::default());
}

#[test]
fn a_snapshot_has_the_ports_that_there_are() {
    let ports = |bench: &Bench| bench.device.snapshot().ports.iter().map(|p| p.port.0).collect::<Vec<_>>();
    assert_eq!(ports(&switch(2)), [0, 1, 2]);
    assert_eq!(ports(&hca(2)), [1, 2]);
    let port0 = switch(1).device.port_snapshot(PortNum(0)).unwrap();
    assert_eq!((port0.state, port0.physical), (PortState::Active, PhysState::LinkUp));
    let bench = hca(1);
    assert_eq!(bench.device.statistics().dropped(DropReason::LinkDown), 0);
    assert_eq!(DropReason::LinkDown.to_string(), "link_down");
}
