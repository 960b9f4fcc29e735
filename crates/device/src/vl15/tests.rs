use weft_wire::DirectedSmp;

use super::*;
use crate::DropReason;
use crate::testing::*;
use weft_wire::{AttributeId, MadRoute, Method, NodeType, Packet};

fn request(id: u64) -> Packet {
    let mut mad = direct(smp(Method::Get, AttributeId::NodeInfo, 0, &[]), &[9]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    DirectedSmp::transaction_id.set(&mut mad.0, weft_wire::TransactionId(id));
    Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad)
}

#[test]
fn one_smp_at_a_time_and_no_more_waiting_than_fit() {
    let mut config = config(NodeType::Switch, 2);
    config.options.smp_processing = Time::from_micros(10);
    config.options.vl15_buffer_packets = 2;
    let mut bench = Bench::new(&config);
    bench.link_up(ONE);
    let start = bench.now;
    for id in 1..=5 {
        let outputs = bench.receive(ONE, request(id));
        assert!(transmitted(&outputs).is_none());
        let dropped = (id > 3).then_some(DropReason::Vl15Full);
        assert_eq!(drop_reason(&outputs), dropped, "one in process, two waiting, SMP {id}");
    }
    assert_eq!(bench.device.port_snapshot(ONE).unwrap().counters.vl15_dropped, 2);
    for id in 1..=3 {
        let (_, packet) = transmitted(&bench.timeout()).expect("an answer");
        assert_eq!(packet.mad().unwrap().transaction_id().0, id);
        assert_eq!(bench.now, start + Time::from_micros(10 * id));
    }
    assert_eq!(bench.device.vl15.due(), NEVER);
}

#[test]
fn a_late_call_catches_up() {
    let mut queue = Vl15::new(8, Time::from_micros(10));
    let job = || Smp { arrival: Arrival::Link, port: ONE, slid: Lid(0), dlid: Lid(0), mad: Mad::default() };
    for _ in 0..3 {
        assert!(queue.push(Time::ZERO, job()).is_ok());
    }
    let late = Time::from_micros(25);
    assert_eq!(std::iter::from_fn(|| queue.pop_done(late)).count(), 2);
    assert_eq!(queue.due(), Time::from_micros(30), "the third began when the second ended");
    assert!(queue.pop_done(Time::from_micros(30)).is_some());
    assert!(queue.push(Time::from_micros(50), job()).is_ok());
    assert_eq!(queue.due(), Time::from_micros(60), "an idle agent begins when asked");
}
