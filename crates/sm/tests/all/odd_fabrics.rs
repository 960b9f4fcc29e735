//! Fabrics that are unusual, wrong, or lying.

use fake::{Fake, World};
use weft_machine::{Machine, Time};
use weft_sm::{Activity, Event, GuidToLid, Input, Options, Output, RoutingOptions};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef};
use weft_vocabulary::HexGuid;
use weft_wire::*;

use crate::fake;

const SWITCH: NodeType = NodeType::Switch;
const HCA: NodeType = NodeType::Hca;

/// Node and port.
type End = (u32, u8);

/// Nodes by kind and number of ports, with GUIDs 0x100, 0x200, …, and cables between (node, port) pairs.
fn build(nodes: &[(NodeType, u8)], cables: &[(End, End)]) -> Fabric {
    let mut builder = FabricBuilder::new();
    for (at, (kind, ports)) in nodes.iter().enumerate() {
        let guid = Guid(0x100 * (at as u64 + 1));
        builder.add_node(Node::new(*kind, guid, *ports, LinkRate::default())).expect("a node");
    }
    for (a, b) in cables {
        builder.connect(port(*a), port(*b)).expect("a cable");
    }
    builder.build()
}

fn port((node, number): End) -> PortRef {
    PortRef::new(NodeIndex(node), PortNum(number))
}

fn up(fabric: Fabric, own: End) -> World {
    let mut world = World::new(Fake::new(fabric, port(own)), Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    world
}

fn has(world: &World, wanted: impl Fn(&Event) -> bool) -> bool {
    world.events.iter().any(|(_, event)| wanted(event))
}

#[test]
fn two_hosts_back_to_back() {
    let mut world = up(build(&[(HCA, 1), (HCA, 1)], &[((0, 1), (1, 1))]), (1, 1));
    world.check();
    assert!(world.last_summary().complete);
    // No switch says that the other end was replaced: the light sweep looks at our own port.
    world.fake.kill(NodeIndex(0));
    world.fake.restart(NodeIndex(0));
    world.run_for(Time::from_secs(12));
    world.check();
    assert_eq!(world.summaries().len(), 2);
}

#[test]
fn every_port_of_a_host_is_an_end_of_its_own() {
    let cables = [((0, 1), (2, 1)), ((0, 2), (2, 2)), ((1, 1), (2, 3)), ((1, 3), (3, 1)), ((2, 4), (3, 2))];
    let world = up(build(&[(HCA, 2), (HCA, 3), (SWITCH, 4), (SWITCH, 4)], &cables), (0, 1));
    world.check();
    assert_eq!(world.last_summary().lids, 6);
    assert!(world.last_summary().complete, "{:#?}", world.events);
}

#[test]
fn a_switch_cabled_to_itself_and_parallel_cables() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (1, 3)), ((1, 4), (2, 1)), ((1, 5), (2, 2)), ((2, 3), (3, 1))];
    let world = up(build(&[(HCA, 1), (SWITCH, 6), (SWITCH, 3), (HCA, 1)], &cables), (3, 1));
    world.check();
    assert_eq!(world.last_summary().cables, 5);
    assert!(world.last_summary().complete, "{:#?}", world.events);
}

#[test]
fn a_manager_on_a_switch() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((2, 2), (3, 1))];
    let world = up(build(&[(HCA, 1), (SWITCH, 3), (SWITCH, 3), (HCA, 1)], &cables), (1, 0));
    world.check();
    assert!(world.last_summary().complete, "{:#?}", world.events);
}

#[test]
fn a_long_chain_ends_where_directed_routes_do() {
    let count = 70;
    let mut nodes = vec![(HCA, 1)];
    nodes.extend((0..count).map(|_| (SWITCH, 2)));
    let cables: Vec<_> =
        (0..count).map(|at| if at == 0 { ((0, 1), (1, 1)) } else { ((at, 2), (at + 1, 1)) }).collect();
    let world = up(build(&nodes, &cables), (0, 1));
    assert_eq!(world.last_summary().switches, 63);
    assert!(has(&world, |event| matches!(event, Event::Nonsense { .. })));
}

#[test]
fn the_second_of_two_with_one_guid_is_left_out() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    let mut fake = Fake::new(build(&[(HCA, 1), (SWITCH, 3), (HCA, 1), (HCA, 1)], &cables), port((0, 1)));
    fake.devices[3].node.guid = Guid(0x300);
    let mut world = World::new(fake, Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    assert_eq!(world.last_summary().hosts, 2);
    assert_eq!((world.last_summary().ports_left_out, world.last_summary().complete), (1, false));
    assert!(
        has(&world, |e| matches!(e, Event::DuplicateGuid { guid: HexGuid(Guid(0x300)), .. })),
        "{:#?}",
        world.events
    );
}

/// What is refused once is asked again, and until then the subnet is not complete.
#[test]
fn a_refused_question_is_not_the_last_one() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    for attribute in [AttributeId::NodeInfo, AttributeId::SwitchInfo, AttributeId::PortInfo] {
        // A switch that is busy is asked again at once, one that does not want to in the next sweep.
        for (code, sweeps) in [(status::BAD_METHOD_ATTRIBUTE, 2), (status::BUSY, 1)] {
            let nodes = [(HCA, 1), (SWITCH, 3), (HCA, 1), (SWITCH, 2)];
            let fake = Fake::new(build(&nodes, &cables), port((0, 1)));
            let mut world = World::new(fake, Options::default(), &GuidToLid::default());
            let mut left = 1;
            world.lie = Some(Box::new(move |answer| {
                let last_switch = DirectedSmp::initial_path.get(&answer.mad.0)[2] == PortNum(3);
                if answer.mad.attribute_id() == attribute && last_switch && left > 0 {
                    left -= 1;
                    Smp::status.set(&mut answer.mad.0, code | status::DIRECTION);
                }
            }));
            world.run_for(Time::from_secs(2));
            world.check_with(&format!("{attribute} {code}"));
            let complete: Vec<bool> = world.summaries().iter().map(|summary| summary.complete).collect();
            // That a switch has no SwitchInfo yet is noticed at the end of the sweep, which is not over then.
            let sweeps = if attribute == AttributeId::SwitchInfo { 1 } else { sweeps };
            let wanted = &[false, true][2 - sweeps..];
            assert_eq!(complete, wanted, "{attribute} {code}");
        }
    }
}

#[test]
fn without_enough_lids_the_subnet_is_not_complete() {
    let fabric = weft_topology::generate::xgft(&[20, 20], &[1, 1], &Default::default()).expect("a tree");
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    let options = Options::from(RoutingOptions { lmc: 7, ..RoutingOptions::default() });
    let mut world = World::new(Fake::new(fabric, own), options, &GuidToLid::default());
    world.run_for(Time::from_secs(2));
    let summary = world.last_summary();
    // The 21 switches have LIDs below 128, where no range of 128 begins.
    assert_eq!((summary.lids, summary.ports_without_lid), (383 + 21, 17));
    assert!(!summary.complete);
}

#[test]
fn without_a_link_the_manager_waits() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
    let mut fake = Fake::new(build(&[(HCA, 1), (SWITCH, 2), (HCA, 1)], &cables), port((0, 1)));
    fake.cut(port((0, 1)));
    let mut world = World::new(fake, Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(3));
    assert_eq!(world.summaries().len(), 0);
    assert_eq!(world.sm.progress().activity, Activity::OwnPortDown);
    let down = |e: &&(Time, Event)| matches!(e.1, Event::OwnPortDown);
    assert_eq!(world.events.iter().filter(down).count(), 1);
    world.fake.mend(port((0, 1)));
    world.command(Input::PortChanged { up: true });
    world.run_for(Time::from_millis(100));
    world.check();
    assert!(has(&world, |event| *event == Event::OwnPortUp));
    assert_eq!(world.sm.progress().activity, Activity::Up);
    // And it is noticed when the link goes again, whether anybody says so or not.
    world.fake.cut(port((0, 1)));
    world.run_for(Time::from_secs(11));
    assert_eq!(world.sm.progress().activity, Activity::OwnPortDown);
    world.fake.mend(port((0, 1)));
    world.run_for(Time::from_secs(11));
    world.check();
    world.fake.cut(port((0, 1)));
    world.command(Input::PortChanged { up: false });
    world.run_for(Time::from_millis(100));
    assert_eq!(world.sm.progress().activity, Activity::OwnPortDown);
    assert!(!has(&world, |event| matches!(event, Event::HostCutOff { .. })), "nobody knows");
}

/// Whatever the manager is at when its link goes and comes back, it begins again as soon as the link is back.
#[test]
fn a_blink_of_the_managers_link_always_starts_a_sweep() {
    let own = port((0, 1));
    let fabric = build(&[(HCA, 1), (SWITCH, 2), (HCA, 1)], &[((0, 1), (1, 1)), ((1, 2), (2, 1))]);
    for micros in (0..6_000).step_by(100) {
        let mut world = World::new(Fake::new(fabric.clone(), own), Options::default(), &GuidToLid::default());
        world.run_for(Time::from_micros(micros));
        let seen = micros % 200 == 0;
        world.fake.cut(own);
        if seen {
            world.command(Input::PortChanged { up: false });
            world.run_for(Time::from_millis(1));
        }
        world.fake.mend(own);
        if !seen {
            world.command(Input::PortChanged { up: false });
        }
        world.command(Input::PortChanged { up: true });
        world.run_for(Time::from_secs(1));
        world.check();
        assert!(world.last_summary().complete, "{micros} us");
    }
}

#[test]
fn a_manager_detached_in_the_middle_begins_again() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
    let fabric = build(&[(HCA, 1), (SWITCH, 2), (HCA, 1)], &cables);
    for micros in (0..6_000).step_by(100) {
        let mut world =
            World::new(Fake::new(fabric.clone(), port((0, 1))), Options::default(), &GuidToLid::default());
        world.run_for(Time::from_micros(micros));
        world.command(Input::Detached);
        world.run_for(Time::from_secs(1));
        assert_eq!(world.sm.poll_timeout(), None);
        world.attach();
        world.run_for(Time::from_secs(1));
        world.check();
        assert!(world.last_summary().complete);
    }
}

#[test]
fn another_manager_is_told_who_is_here_and_noticed() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
    let mut world = up(build(&[(HCA, 1), (SWITCH, 2), (HCA, 1)], &cables), (0, 1));
    let mut asked = weft_mgmt::Request::get(AttributeId::SmInfo, 0)
        .by(&weft_mgmt::SmpRoute::Directed("0,1,2".parse().unwrap()));
    DirectedSmp::hop_pointer.set(&mut asked.mad.0, 3);
    world.sm.handle_input(world.now, Input::Receive(asked));
    let Some(Output::Send(answer)) = world.sm.poll_output() else { panic!("no answer") };
    let info = SmInfo::decode(answer.mad.smp_attribute());
    assert_eq!((info.guid, info.sm_state), (Guid(0x101), SmState::Master));
    assert_eq!(answer.mad.method(), Method::GetResp);
    assert!(DirectedSmp::direction.get(&answer.mad.0));
    assert_eq!(DirectedSmp::hop_pointer.get(&answer.mad.0), 3);
    assert_eq!(answer.mad.transaction_id(), asked.mad.transaction_id());
}

/// A small generator of pseudorandom numbers, so that a seed tells all.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn lies_neither_stop_the_manager_nor_keep_it_busy_for_ever() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((2, 2), (3, 1)), ((1, 3), (2, 3))];
    let fabric = build(&[(HCA, 1), (SWITCH, 4), (SWITCH, 4), (HCA, 2)], &cables);
    for seed in 0..200 {
        let fake = Fake::new(fabric.clone(), port((0, 1)));
        let mut world = World::new(fake, Options::default(), &GuidToLid::default());
        let mut dice = Dice(seed);
        world.lie = Some(Box::new(move |mad| {
            if dice.roll(4) == 0 {
                for _ in 0..=dice.roll(8) {
                    let at = if dice.roll(10) == 0 { dice.roll(256) } else { 64 + dice.roll(64) };
                    mad.mad.0[at as usize] = [0, 0xff, dice.roll(256) as u8][dice.roll(3) as usize];
                }
            }
        }));
        world.run_for(Time::from_secs(60));
        let before = world.sent;
        world.lie = None;
        // What was believed is read again.
        world.command(Input::Detached);
        world.attach();
        world.run_for(Time::from_secs(60));
        world.check_with(&format!("seed {seed}"));
        assert!(before < 100_000, "seed {seed}: {before} SMPs in a minute");
    }
}

#[test]
fn no_mad_from_nowhere_changes_anything() {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
    let mut world = up(build(&[(HCA, 1), (SWITCH, 2), (HCA, 1)], &cables), (0, 1));
    let (sent, mut dice) = (world.sent, Dice(1));
    for _ in 0..20_000 {
        let mut mad = Mad::default();
        mad.0.iter_mut().for_each(|byte| *byte = dice.roll(256) as u8);
        if dice.roll(2) == 0 {
            Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnLid);
            Smp::method.set(&mut mad.0, Method::GetResp);
        }
        world.command(Input::Receive(AddressedMad::smp(Lid(dice.roll(4) as u16), mad)));
    }
    assert_eq!(world.sent, sent);
    // Requests of class SubnAdm get the answer that they make no sense.
    let answered = world.sm.sa_counts().refused;
    assert_eq!((world.sm.progress().mads_ignored + answered, answered > 0), (20_000, true));
}
