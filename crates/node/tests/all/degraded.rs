//! Ports of a node that flap or train below their best, and nodes that answer nothing.

use pair::pair;
use weft_fault::{Impairment, Word};
use weft_machine::Time;
use weft_node::{Answer, Client, Output, PortId, Refusal, Request};
use weft_wire::{AddressedMad, DirectedSmp, Lid, LinkParameters, NodeType, PortNum, TransactionId};
use world::World;

use crate::world;
use crate::world::pair;

fn how(word: Word, amounts: &str) -> Impairment {
    Impairment::of(word, amounts).unwrap_or_else(|| panic!("{amounts}"))
}

fn is_answered(world: &mut World, client: Client, id: u64) -> bool {
    let mut mad = world::directed(&[1]);
    DirectedSmp::transaction_id.set(&mut mad.0, TransactionId(id));
    let outputs = world.send(client, AddressedMad::smp(Lid::PERMISSIVE, mad));
    outputs
        .iter()
        .any(|output| matches!(output, Output::Deliver { mad, .. } if mad.mad.transaction_id().0 == id))
}

fn active(world: &World, at: PortId) -> (u8, u8, u8) {
    let info =
        world.node().device(at.device).and_then(|device| device.own_port_info(at.port)).expect("a port");
    (info.link_width_active, info.link_speed_active, info.link_speed_ext_active)
}

#[test]
fn a_link_goes_and_comes_back_at_its_times_until_it_is_mended() {
    let (mut world, [_, b], client) = pair();
    let flap = how(Word::Flap, "100ms 30ms");
    assert_eq!(world.ask(Request::Impair { at: b, how: flap, seed: 1 }).0, Ok(Answer::Done));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(world.node().is_link_up(b));
        world.pass(Time::from_millis(69));
        seen.push(world.node().is_link_up(b));
        world.pass(Time::from_millis(1));
        seen.push(world.node().is_link_up(b));
        world.pass(Time::from_millis(30));
    }
    assert_eq!(seen, [true, true, false].repeat(4));
    world.pass(Time::from_millis(80));
    assert!(!world.node().is_link_up(b) && !is_answered(&mut world, client, 1));
    assert_eq!(world.ask(Request::Mend { at: b, how: flap, seed: 1 }).0, Ok(Answer::Done));
    assert!(world.node().is_link_up(b) && is_answered(&mut world, client, 2));
    world.pass(Time::from_secs(10));
    assert!(world.node().is_link_up(b));
}

#[test]
fn both_ends_train_at_what_the_worse_one_allows() {
    let (mut world, [a, b], client) = pair();
    let best = active(&world, a);
    for (word, amounts, wanted) in
        [(Word::Width, "1x", (1, best.1, best.2)), (Word::Speed, "ddr", (best.0, 2, 0))]
    {
        let fault = how(word, amounts);
        assert_eq!(world.ask(Request::Impair { at: b, how: fault, seed: 1 }).0, Ok(Answer::Done));
        assert_eq!([a, b].map(|end| active(&world, end)), [wanted; 2], "{amounts}");
        assert!(is_answered(&mut world, client, 1), "the link is up again");
        assert_eq!(world.node().impairments(b), [(fault, 1)]);
        assert_eq!(world.ask(Request::Mend { at: b, how: fault, seed: 1 }).0, Ok(Answer::Done));
        assert_eq!([a, b].map(|end| active(&world, end)), [best; 2], "{amounts}");
    }
}

#[test]
fn the_driver_of_a_link_hears_what_a_fault_leaves_of_it() {
    let mut world = World::new(4096);
    let device = world.add(NodeType::Hca);
    let at = PortId::new(device, PortNum(1));
    assert_eq!(world.ask(Request::Lead { at, delay: Time::ZERO }).0, Ok(Answer::Done));
    let said = |outputs: Vec<Output>| -> Vec<(bool, LinkParameters)> {
        let links = outputs.into_iter().filter_map(|output| match output {
            Output::SetLink { enabled, parameters, .. } => Some((enabled, parameters)),
            _ => None,
        });
        links.collect()
    };
    let (outcome, outputs) = world.ask(Request::Impair { at, how: how(Word::Width, "1x"), seed: 1 });
    let narrow = LinkParameters { width: 1, speed: 7, speed_ext: 1 };
    assert_eq!((outcome, said(outputs)), (Ok(Answer::Done), vec![(false, narrow), (true, narrow)]));
    let (_, outputs) = world.ask(Request::Freeze { device, frozen: true });
    assert_eq!(said(outputs).first(), Some(&(false, narrow)));
    let (_, outputs) = world.ask(Request::Mend { at, how: how(Word::Width, "1x"), seed: 1 });
    assert!(said(outputs).iter().all(|(enabled, _)| !enabled), "it is frozen still");
    let (_, outputs) = world.ask(Request::Freeze { device, frozen: false });
    assert_eq!(said(outputs).first(), Some(&(true, LinkParameters { width: 3, speed: 7, speed_ext: 1 })));
}

#[test]
fn a_frozen_node_has_no_link_and_its_programs_no_answer() {
    let (mut world, [a, b], client) = pair();
    for device in [a.device, b.device] {
        for frozen in [true, true] {
            assert_eq!(world.ask(Request::Freeze { device, frozen }).0, Ok(Answer::Done));
        }
        assert!(!world.node().is_link_up(a) && !is_answered(&mut world, client, 1));
        assert_eq!(world.ask(Request::Freeze { device, frozen: false }).0, Ok(Answer::Done));
        assert!(world.node().is_link_up(a) && is_answered(&mut world, client, 2));
    }
    let gone = weft_node::DeviceId(77);
    assert_eq!(world.ask(Request::Freeze { device: gone, frozen: true }).0, Err(Refusal::NoSuchDevice(gone)));
}
