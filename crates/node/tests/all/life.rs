//! Devices, cables and programs come and go while a node runs, and every request has one answer.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_host::mad::{AgentRequest, MadTimer};
use weft_host::stack::StackOptions;
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use weft_machine::{Machine, Time};
use weft_node::{Answer, Client, DeviceId, LinkLoss, NodeTimer, Output, PortId, Refusal, Request, RequestId};
use weft_wire::{
    AddressedMad, DirectedSmp, Guid, Lid, Method, MethodMask, MgmtClass, NodeType, Oui, PortNum, QpNum,
    TransactionId,
};
use world::{Step, World, step};

use crate::world;

/// A Get of NodeInfo, by ports from the node that it starts on.
fn get_node_info(id: u64, path: &[u8]) -> AddressedMad {
    let mut mad = world::directed(path);
    DirectedSmp::transaction_id.set(&mut mad.0, TransactionId(id));
    AddressedMad::smp(Lid::PERMISSIVE, mad)
}

fn delivered(outputs: &[Output]) -> Vec<(Client, u64)> {
    let mads = outputs.iter().filter_map(|output| match output {
        Output::Deliver { client, mad } => Some((*client, mad.mad.transaction_id().0)),
        _ => None,
    });
    mads.collect()
}

/// A switch with two adapters, cabled within the node and up.
fn chain() -> (World, [DeviceId; 3]) {
    let mut world = World::new(4096);
    let devices = [NodeType::Hca, NodeType::Switch, NodeType::Hca].map(|kind| world.add(kind));
    let [a, switch, b] = devices;
    world.connect((a, 1), (switch, 1));
    world.connect((switch, 2), (b, 1));
    let outputs = world.ask(Request::Begin).1;
    assert_eq!(outputs.iter().filter(|output| matches!(output, Output::LinkUp { .. })).count(), 4);
    (world, devices)
}

#[test]
fn its_timer_says_what_it_then_does() {
    let mut world = World::new(4096);
    let [a, b] = [NodeType::Hca, NodeType::Hca].map(|kind| world.add(kind));
    let delay = Time::from_millis(5);
    let ends = [a, b].map(|device| PortId::new(device, PortNum(1)));
    assert_eq!(world.ask(Request::Connect { ends, delay }).0, Ok(Answer::Done));
    assert_eq!(world.ask(Request::Begin).0, Ok(Answer::Done));
    // The credits of the beginning are on the cable.
    let timer = world.node().next_timer().unwrap();
    assert_eq!(timer.reason, NodeTimer::Held);
    let late = world.node().poll_timeout();
    world.pass(delay);
    assert_ne!(world.node().poll_timeout(), late, "they have arrived");

    let at = PortId::new(a, PortNum(1));
    let Ok(Answer::Client(client)) = world.ask(Request::Open { at, message_bytes: 4096 }).0 else {
        panic!("a program")
    };
    let registration = AgentRequest {
        qp: QpNum::SMI,
        class: MgmtClass::SubnDirected,
        class_version: 1,
        oui: Oui(0),
        methods: MethodMask(0),
        rmpp_version: 0,
    };
    let Ok(Answer::Agent(agent)) = world.ask(Request::Register { client, registration }).0 else {
        panic!("an agent")
    };
    world.take(&Step::Disconnect(0, 1));
    // It is sent once more after 20 ms, and given back after 40.
    world.take(&Step::SendThroughLayer(0, agent.0 as u8, 20));
    let timer = world.node().next_timer().unwrap();
    assert_eq!(timer.reason, NodeTimer::Layer(client, MadTimer::Answer));
    let given_back =
        |output: &Output| matches!(output, Output::DeliverThroughLayer { client: to, .. } if *to == client);
    assert!(!world.pass(Time::from_millis(39)).iter().any(given_back));
    assert!(world.pass(Time::from_millis(1)).iter().any(given_back));
}

#[test]
fn an_smp_goes_to_the_end_of_the_node_and_back_in_one_drain() {
    let (mut world, [a, _, _]) = chain();
    let client = world.attach(a);
    for (id, path) in [(1, &[][..]), (2, &[1][..]), (3, &[1, 2][..])] {
        let outputs = world.send(client, get_node_info(id, path));
        assert_eq!(delivered(&outputs), [(client, id)], "over {path:?}");
        assert!(!outputs.iter().any(|output| matches!(output, Output::Transmit { .. })), "nothing leaves");
    }
}

#[test]
fn a_removed_device_takes_its_programs_and_cables_with_it() {
    let (mut world, [a, switch, b]) = chain();
    let (asker, gone) = (world.attach(a), world.attach(b));
    let (answer, outputs) = world.ask(Request::RemoveDevice(b));
    let Ok(Answer::Removed(account)) = answer else { panic!("{answer:?}") };
    assert!(account.is_sound());
    assert!(outputs.contains(&Output::Detached { client: gone }));
    let far = PortId::new(switch, PortNum(2));
    let down =
        |output: &Output| matches!(output, Output::LinkDown { at, cause: LinkLoss::Cut } if *at == far);
    assert!(outputs.iter().any(down), "{outputs:?}");
    assert_eq!(world.node().peer(far), None);
    assert_eq!(world.node().inner_links_up(), 1);
    assert_eq!(delivered(&world.send(asker, get_node_info(1, &[1, 2]))), [], "nobody is there");
    assert_eq!(delivered(&world.send(asker, get_node_info(2, &[1]))), [(asker, 2)]);
    // Another device in its place has another name.
    let c = world.add(NodeType::Hca);
    assert!(c > b);
    world.connect((switch, 2), (c, 1));
    assert_eq!(delivered(&world.send(asker, get_node_info(3, &[1, 2]))), [(asker, 3)]);
    assert_eq!(world.ask(Request::RemoveDevice(b)).0, Err(Refusal::NoSuchDevice(b)));
}

/// What is on its way over one long cable arrives, though another's link is lost.
#[test]
fn a_lost_link_takes_only_its_own_frames_with_it() {
    let mut world = World::new(4096);
    let device = world.add(NodeType::Switch);
    let delay = Time::from_micros(30);
    let ends = [1, 2].map(|port| PortId::new(device, PortNum(port)));
    for at in ends {
        assert_eq!(world.ask(Request::Lead { at, delay }).0, Ok(Answer::Done));
    }
    let first = world.credit_comes(ends[0]);
    world.pass(Time::from_micros(10));
    let second = world.credit_comes(ends[1]);
    assert_eq!(world.node().poll_timeout(), Some(first + delay));
    world.link_down(ends[0]);
    assert_eq!(world.node().poll_timeout(), Some(second + delay), "the other one's is still to come");
    world.pass(delay);
    assert_eq!(world.node().poll_timeout(), None, "it has come");
}

/// Both ends of a cable from a switch to itself go with it.
#[test]
fn a_device_that_is_cabled_to_itself_can_be_removed() {
    let mut world = World::new(4096);
    let switch = world.add(NodeType::Switch);
    world.connect((switch, 1), (switch, 3));
    assert_eq!(world.ask(Request::Begin).0, Ok(Answer::Done));
    assert_eq!(world.node().inner_links_up(), 1);
    assert!(matches!(world.ask(Request::RemoveDevice(switch)).0, Ok(Answer::Removed(_))));
    assert_eq!((world.node().devices().count(), world.node().inner_links_up()), (0, 0));
}

/// Cables that leave the node go with their device, all of them at once.
#[test]
fn a_device_with_many_cables_to_the_outside_can_be_removed() {
    let mut world = World::new(4096);
    let device = world.add(NodeType::Switch);
    for port in 1..=3 {
        let at = PortId::new(device, PortNum(port));
        assert_eq!(world.ask(Request::Lead { at, delay: Time::ZERO }).0, Ok(Answer::Done));
        world.link_up(at);
    }
    let at = PortId::new(device, PortNum(1));
    assert_eq!(world.ask(Request::Disconnect(at)).0, Ok(Answer::Done));
    assert!(matches!(world.ask(Request::RemoveDevice(device)).0, Ok(Answer::Removed(_))));
    assert_eq!(world.node().devices().count(), 0);
    assert_eq!(world.node().poll_timeout(), None, "no timer is left");
}

#[test]
fn a_cable_can_be_pulled_at_either_end_and_taken_out() {
    let (mut world, [a, switch, b]) = chain();
    let client = world.attach(a);
    for at in [PortId::new(switch, PortNum(2)), PortId::new(b, PortNum(1))] {
        let (_, outputs) = world.ask(Request::Plug { at, plugged: false });
        assert_eq!(outputs.iter().filter(|output| matches!(output, Output::LinkDown { .. })).count(), 2);
        assert_eq!(delivered(&world.send(client, get_node_info(1, &[1, 2]))), []);
        assert_eq!(world.ask(Request::Plug { at, plugged: true }).0, Ok(Answer::Done));
        assert_eq!(delivered(&world.send(client, get_node_info(2, &[1, 2]))), [(client, 2)]);
    }
    let at = PortId::new(a, PortNum(1));
    assert_eq!(world.ask(Request::Connect { ends: [at; 2], delay: Time::ZERO }).0, Err(Refusal::Cabled(at)));
    assert_eq!(world.ask(Request::Disconnect(at)).0, Ok(Answer::Done));
    assert_eq!(world.ask(Request::Disconnect(at)).0, Err(Refusal::NotCabled(at)));
    assert_eq!(delivered(&world.send(client, get_node_info(3, &[1]))), []);
    let none = PortId::new(a, PortNum(7));
    assert_eq!(world.ask(Request::Lead { at: none, delay: Time::ZERO }).0, Err(Refusal::NoSuchPort(none)));
}

#[test]
fn a_watched_frame_is_reported_at_both_ends() {
    let (mut world, [a, _, _]) = chain();
    let client = world.attach(a);
    let crossings = |outputs: &[Output]| {
        let crossed = outputs.iter().filter_map(|output| match output {
            Output::Crossed { at, received, .. } => Some((at.device.0, at.port.0, *received)),
            _ => None,
        });
        crossed.collect::<Vec<_>>()
    };
    assert_eq!(crossings(&world.send(client, get_node_info(1, &[1]))), []);
    assert_eq!(world.ask(Request::Watch(true)).0, Ok(Answer::Done));
    assert_eq!(
        crossings(&world.send(client, get_node_info(2, &[1]))),
        [(0, 1, false), (1, 1, true), (1, 1, false), (0, 1, true)]
    );
    assert_eq!(world.ask(Request::Watch(false)).0, Ok(Answer::Done));
    assert_eq!(crossings(&world.send(client, get_node_info(3, &[1]))), []);
}

#[test]
fn two_programs_cannot_have_the_same_registration() {
    let (mut world, [a, ..]) = chain();
    let open = |world: &mut World| {
        let at = PortId::new(a, PortNum(1));
        match world.ask(Request::Open { at, message_bytes: 4096 }).0 {
            Ok(Answer::Client(client)) => client,
            other => panic!("{other:?}"),
        }
    };
    let (first, second) = (open(&mut world), open(&mut world));
    let registration = AgentRequest {
        qp: QpNum::GSI,
        class: MgmtClass::from_code(7),
        class_version: 2,
        oui: Oui(0),
        methods: [Method::Get].into_iter().collect::<MethodMask>(),
        rmpp_version: 0,
    };
    let register = |client| Request::Register { client, registration };
    assert!(matches!(world.ask(register(first)).0, Ok(Answer::Agent(_))));
    assert!(matches!(world.ask(register(second)).0, Err(Refusal::Register(_))));
    world.detach(first);
    assert!(matches!(world.ask(register(second)).0, Ok(Answer::Agent(_))), "it is free again");
    assert_eq!(world.ask(register(first)).0, Err(Refusal::NoSuchClient));
    let of_the_host = AgentRequest {
        class: MgmtClass::SubnAdm,
        methods: [Method::Report].into_iter().collect::<MethodMask>(),
        ..registration
    };
    let beside = world.ask(Request::Register { client: second, registration: of_the_host }).0;
    assert!(
        matches!(beside, Ok(Answer::Agent(_))),
        "the host behind the port has it too, and both get it: {beside:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whatever is asked in whatever order: every request is answered once, and a node that may do one step at a time says
    /// the same in the same order as one that may do thousands.
    #[test]
    fn one_answer_each_and_one_order(steps in vec(step(), 1..60)) {
        let mut worlds = [1, 7, 4096].map(World::new);
        for (number, step) in steps.iter().enumerate() {
            let outputs = worlds.each_mut().map(|world| world.take(step));
            prop_assert_eq!(&outputs[0], &outputs[2], "step {}: {:?}", number, step);
            prop_assert_eq!(&outputs[1], &outputs[2], "step {}: {:?}", number, step);
            let answers = outputs[0].iter().filter_map(|output| match output {
                Output::Answer { id, .. } => Some(*id),
                _ => None,
            });
            let answers: Vec<RequestId> = answers.collect();
            prop_assert_eq!(&answers[..], worlds[0].asked(), "step {}: {:?}", number, step);
        }
        for world in &worlds {
            for (_, device) in world.node().devices() {
                prop_assert!(device.data_account().is_sound());
            }
        }
    }
}

/// A host that begins while the node runs hears what the adapter knows, takes commands, and is gone when it ends.
#[test]
fn a_host_begins_and_ends_while_the_node_runs() {
    let (mut world, [a, switch, _]) = chain();
    let at = PortId::new(a, PortNum(1));
    let stop = |at| Request::Command { at, command: Command::Stop { flow: FlowId(1) } };
    assert_eq!(world.ask(Request::EndHost { at }).0, Ok(Answer::Done), "the one that it began with");
    assert_eq!(world.ask(stop(at)).0, Err(Refusal::NoHost(at)));
    let start = |at| Request::StartHost { at, options: StackOptions::default() };
    for _ in 0..2 {
        assert_eq!(world.ask(start(at)).0, Ok(Answer::Done), "one that is there stays");
    }
    // It knows its port's GUID.
    let spec = FlowSpec {
        flow: FlowId(1),
        to: Destination::One(Guid(0x1001)),
        transport: Transport::UnreliableDatagram,
        work: Work::Stream,
        message_bytes: 64,
        packet_bytes: 64,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    };
    let refused = world.ask(Request::Command { at, command: Command::Open(spec) }).0;
    let own = "it goes to the port that it comes from";
    assert!(matches!(&refused, Err(Refusal::Command(why)) if why.contains(own)), "{refused:?}");
    let refused = world.ask(stop(at)).0;
    assert!(
        matches!(&refused, Err(Refusal::Command(why)) if why.contains("flow 1 is not stopped")),
        "{refused:?}"
    );
    assert_eq!(world.ask(Request::EndHost { at }).0, Ok(Answer::Done));
    assert_eq!(world.ask(Request::EndHost { at }).0, Err(Refusal::NoHost(at)));
    assert_eq!(world.ask(stop(at)).0, Err(Refusal::NoHost(at)));
    // Its place at the device is free for the next.
    assert_eq!(world.ask(start(at)).0, Ok(Answer::Done));
    assert!(matches!(world.ask(stop(at)).0, Err(Refusal::Command(_))));
    for wrong in [PortId::new(switch, PortNum(1)), PortId::new(a, PortNum(9)), PortId::new(a, PortNum(0))] {
        assert_eq!(world.ask(start(wrong)).0, Err(Refusal::NoSuchPort(wrong)));
    }
}
