//! Cables of a node that lose packets, hold them back, or deliver them twice.

use pair::pair;
use weft_fault::Impairment;
use weft_machine::Time;
use weft_node::{Answer, Client, DeviceId, Node, Output, PortId, Refusal, Request};
use weft_wire::{AddressedMad, DirectedSmp, Lid, PortNum, TransactionId};
use world::World;

use crate::world;
use crate::world::pair;

const SEED: u32 = 7;
/// No request was answered.
const NONE: [u64; 0] = [];

fn how(text: &str) -> Impairment {
    let (word, amounts) = text.split_once(' ').expect("a word and amounts");
    let word = weft_fault::Word::OF_IMPAIRMENTS.into_iter().find(|known| known.name() == word);
    Impairment::of(word.expect("a word"), amounts).expect("amounts")
}

fn impair(world: &mut World, at: PortId, text: &str) {
    assert_eq!(world.ask(Request::Impair { at, how: how(text), seed: SEED }).0, Ok(Answer::Done));
}

fn mend(world: &mut World, at: PortId, text: &str) {
    assert_eq!(world.ask(Request::Mend { at, how: how(text), seed: SEED }).0, Ok(Answer::Done));
}

/// Asks the other adapter for its NodeInfo.
fn get(world: &mut World, client: Client, id: u64) -> Vec<Output> {
    let mut mad = world::directed(&[1]);
    DirectedSmp::transaction_id.set(&mut mad.0, TransactionId(id));
    world.send(client, AddressedMad::smp(Lid::PERMISSIVE, mad))
}

fn answers(outputs: &[Output]) -> Vec<u64> {
    let ids = outputs.iter().filter_map(|output| match output {
        Output::Deliver { mad, .. } => Some(mad.mad.transaction_id().0),
        _ => None,
    });
    ids.collect()
}

fn received(node: &Node, device: DeviceId) -> (u64, u64, u64) {
    let port = node.device(device).and_then(|device| device.port_snapshot(PortNum(1))).expect("a port");
    let counters = port.counters;
    (counters.port_rcv_pkts, counters.port_rcv_errors, counters.symbol_error_counter)
}

#[test]
fn loss_is_one_way_and_ends_when_it_is_mended() {
    let (mut world, [a, b], client) = pair();
    for at in [b, a] {
        impair(&mut world, at, "loss 100%");
        let before = received(world.node(), at.device);
        assert_eq!(answers(&get(&mut world, client, 1)), NONE);
        assert_eq!(received(world.node(), at.device), before, "no counter of the port has seen it");
        mend(&mut world, at, "loss 100%");
        assert_eq!(answers(&get(&mut world, client, 2)), [2]);
    }
    assert_eq!(world.node().impairment_counts().lost, 2);
    assert_eq!(received(world.node(), b.device).0, 3, "what a has not heard, b had answered");
}

#[test]
fn delayed_packets_keep_their_order_when_delays_are_cleared() {
    let (mut world, [_, b], client) = pair();
    impair(&mut world, b, "delay 2ms");
    assert_eq!(answers(&get(&mut world, client, 1)), NONE);
    world.pass(Time::from_millis(1));
    mend(&mut world, b, "delay 2ms");
    // It is behind the first, which is late still.
    assert_eq!(answers(&get(&mut world, client, 2)), NONE);
    assert_eq!(answers(&world.pass(Time::from_micros(999))), NONE);
    assert_eq!(answers(&world.pass(Time::from_micros(1))), [1, 2]);
    assert_eq!(answers(&get(&mut world, client, 3)), [3], "the cable is as before");
}

#[test]
fn a_request_that_arrives_twice_is_answered_twice() {
    let (mut world, [_, b], client) = pair();
    impair(&mut world, b, "duplicate 100%");
    assert_eq!(answers(&get(&mut world, client, 1)), [1, 1]);
    assert_eq!((received(world.node(), b.device).0, world.node().impairment_counts().duplicated), (2, 1));
}

#[test]
fn wrong_bits_are_counted_at_the_port_that_receives_them() {
    let (mut world, [_, b], client) = pair();
    impair(&mut world, b, "bit-errors 1e-3");
    for id in 0..200 {
        get(&mut world, client, id);
    }
    let (packets, errors, symbols) = received(world.node(), b.device);
    assert_eq!(packets + errors, 200);
    assert_eq!(errors, world.node().impairment_counts().damaged);
    // 2.32 wrong bits a packet: about nine of ten have one.
    assert!(errors > 150 && symbols > errors, "{packets} {errors} {symbols}");
}

#[test]
fn a_lost_link_drops_delayed_packets_and_stays_impaired() {
    let (mut world, [_, b], client) = pair();
    impair(&mut world, b, "delay 2ms");
    get(&mut world, client, 1);
    for plugged in [false, true] {
        assert_eq!(world.ask(Request::Plug { at: b, plugged }).0, Ok(Answer::Done));
    }
    assert_eq!(answers(&world.pass(Time::from_secs(1))), NONE);
    assert_eq!(answers(&get(&mut world, client, 2)), NONE);
    assert_eq!(answers(&world.pass(Time::from_millis(2))), [2]);
}

#[test]
fn packets_without_room_are_dropped_and_reported() {
    let (mut world, [_, b], client) = pair();
    impair(&mut world, b, "delay 10s");
    let full = |outputs: &[Output]| outputs.contains(&Output::CableFull { at: b });
    for id in 0..1024 {
        assert!(!full(&get(&mut world, client, id)), "{id}");
    }
    assert!(full(&get(&mut world, client, 1024)));
    assert_eq!(world.node().impairment_counts().no_room, 1);
    assert_eq!(answers(&world.pass(Time::from_secs(10))).len(), 1024);
    assert_eq!(answers(&get(&mut world, client, 1025)), NONE, "it is late again, and has room");
    assert_eq!(world.node().impairment_counts().no_room, 1);
}

#[test]
fn a_repeated_impairment_counts_once_and_needs_a_port() {
    let (mut world, [_, b], client) = pair();
    impair(&mut world, b, "loss 100%");
    impair(&mut world, b, "loss 100%");
    mend(&mut world, b, "loss 100%");
    assert_eq!(answers(&get(&mut world, client, 1)), [1]);
    mend(&mut world, b, "loss 100%");
    let (nowhere, gone) = (PortId::new(b.device, PortNum(9)), PortId::new(DeviceId(77), PortNum(1)));
    let ask = |world: &mut World, at| world.ask(Request::Impair { at, how: how("loss 1%"), seed: SEED }).0;
    assert_eq!(ask(&mut world, nowhere), Err(Refusal::NoSuchPort(nowhere)));
    assert_eq!(ask(&mut world, gone), Err(Refusal::NoSuchDevice(gone.device)));
    // A device takes its impairments with it.
    impair(&mut world, b, "delay 10s");
    get(&mut world, client, 2);
    assert!(matches!(world.ask(Request::RemoveDevice(b.device)).0, Ok(Answer::Removed(_))));
    assert_eq!(answers(&world.pass(Time::from_secs(20))), NONE);
}
