use super::*;
use crate::testing::*;
use crate::{Input, Output};
use weft_wire::{Packet, SwitchInfo, trap};

/// A switch with LID 5 whose manager, LID 99, is behind port 1.
fn managed() -> Bench {
    let mut bench = switch(3);
    bench.link_up(ONE);
    bench.link_up(TWO);
    bench.assign(5);
    let mut table = weft_wire::LinearForwardingTable { ports: [PortNum::NONE; 64] };
    table.ports[99 - 64] = ONE;
    bench.ask(Method::Set, AttributeId::LinearForwardingTable, 1, &table.encode());
    let info = SwitchInfo { linear_fdb_top: 127, port_state_change: true, ..SwitchInfo::default() };
    assert_eq!(bench.ask(Method::Set, AttributeId::SwitchInfo, 0, &info.encode()).status(), 0);
    bench
}

fn state_changed(bench: &mut Bench) -> bool {
    let answer = bench.ask(Method::Get, AttributeId::SwitchInfo, 0, &[]);
    SwitchInfo::decode(answer.smp_attribute()).port_state_change
}

fn trap(outputs: &[Output]) -> Option<(Packet, Notice)> {
    let (port, packet) = transmitted(outputs)?;
    assert_eq!(port, ONE);
    let mad = packet.mad().unwrap();
    assert_eq!((mad.method(), mad.class()), (Method::Trap, MgmtClass::SubnLid));
    let notice = Notice::from_smp_data(mad.smp_data());
    Some((packet, notice))
}

#[test]
fn trap_128_is_repeated_until_it_is_heard() {
    let mut bench = managed();
    assert!(!state_changed(&mut bench));
    let (packet, notice) = trap(&bench.input(Input::LinkDown { port: TWO })).expect("a trap");
    assert_eq!((packet.slid(), packet.dlid()), (Lid(5), Lid(99)));
    assert_eq!(notice.trap_number, trap::LINK_STATE_CHANGE);
    assert_eq!((notice.issuer_lid, notice.details()), (Lid(5), Details::link_state_change(Lid(5))));
    assert!(state_changed(&mut bench));
    let before = bench.now;
    let timer = weft_machine::Machine::next_timer(&bench.device).map(|timer| (timer.at, timer.reason));
    assert_eq!(timer, Some((before + Time::from_millis(500), crate::DeviceTimer::Trap)));
    let (again, _) = trap(&bench.timeout()).expect("the trap again");
    assert_eq!(again, packet, "a repetition is the same trap");
    assert_eq!(bench.now, before + Time::from_millis(500));

    let mut repress = packet.mad().unwrap();
    weft_wire::Smp::method.set(&mut repress.0, Method::TrapRepress);
    let answer = Packet::from_mad(&weft_wire::MadRoute::smp(Lid(5), Lid(99)), &repress);
    let outputs = bench.receive(ONE, answer);
    assert_eq!(events(&outputs), [Event::TrapRepressed { trap_number: trap::LINK_STATE_CHANGE }]);
    assert_eq!(bench.device.traps.due(), NEVER);
}

#[test]
fn a_restarted_device_does_not_repeat_the_ids_of_its_traps() {
    let mut ids = std::collections::BTreeSet::new();
    for incarnation in 0..1000 {
        let mut bench = managed();
        bench.device.traps.begin_incarnation(incarnation);
        let (packet, _) = trap(&bench.input(Input::LinkDown { port: TWO })).expect("a trap");
        let id = packet.mad().unwrap().transaction_id();
        assert_eq!(id.0 >> 32, 0xffff_ffff, "no program's");
        assert!(ids.insert(id), "incarnation {incarnation}");
    }
}

#[test]
fn a_trap_nobody_answers_is_given_up() {
    let mut bench = managed();
    bench.input(Input::LinkDown { port: TWO });
    for attempt in 2..=10 {
        let outputs = bench.timeout();
        assert!(
            events(&outputs).contains(&Event::TrapSent { trap_number: trap::LINK_STATE_CHANGE, attempt })
        );
    }
    let outputs = bench.timeout();
    assert_eq!(events(&outputs), [Event::TrapAbandoned { trap_number: trap::LINK_STATE_CHANGE }]);
    assert_eq!(bench.device.traps.due(), NEVER);
    assert_eq!(bench.device.statistics().traps_sent, 10);
}

#[test]
fn a_new_change_begins_anew_and_an_old_answer_does_not_end_it() {
    let mut bench = managed();
    let (first, _) = trap(&bench.input(Input::LinkDown { port: TWO })).unwrap();
    bench.timeout();
    let (second, _) = trap(&bench.link_up(TWO)).unwrap();
    assert_ne!(first.mad().unwrap().transaction_id(), second.mad().unwrap().transaction_id());
    for (packet, heard) in [(first, false), (second, true)] {
        let mut repress = packet.mad().unwrap();
        weft_wire::Smp::method.set(&mut repress.0, Method::TrapRepress);
        bench.receive(ONE, Packet::from_mad(&weft_wire::MadRoute::smp(Lid(5), Lid(99)), &repress));
        assert_eq!(bench.device.traps.due() == NEVER, heard);
    }
}

#[test]
fn an_answer_may_name_the_notice_instead_of_the_transaction() {
    let mut bench = managed();
    let (packet, _) = trap(&bench.input(Input::LinkDown { port: TWO })).unwrap();
    let mut repress = packet.mad().unwrap();
    weft_wire::Smp::method.set(&mut repress.0, Method::TrapRepress);
    weft_wire::Smp::transaction_id.set(&mut repress.0, TransactionId(1));
    bench.receive(ONE, Packet::from_mad(&weft_wire::MadRoute::smp(Lid(5), Lid(99)), &repress));
    assert_eq!(bench.device.traps.due(), NEVER);
}

#[test]
fn a_gap_that_nobody_saw_is_down_and_up() {
    let mut bench = managed();
    let outputs = bench.link_up(TWO);
    let traps = events(&outputs).iter().filter(|event| matches!(event, Event::TrapSent { .. })).count();
    assert_eq!(traps, 2, "down, and up again");
    assert!(state_changed(&mut bench));
    assert_eq!(bench.device.port_snapshot(TWO).unwrap().counters.link_downed_counter, 1);
}

#[test]
fn without_a_manager_only_the_flag_is_set() {
    let mut bench = switch(2);
    bench.link_up(ONE);
    assert!(state_changed(&mut bench));
    let outputs = bench.link_up(TWO);
    assert!(!events(&outputs).iter().any(|event| matches!(event, Event::TrapSent { .. })));
    assert_eq!(bench.device.traps.due(), NEVER);
}

#[test]
fn a_change_that_the_manager_asked_for_is_no_news() {
    let mut bench = managed();
    let disabled = weft_wire::PhysState::Disabled;
    assert_eq!(bench.set_port_info(2, |info| info.port_physical_state = disabled), 0);
    assert!(!state_changed(&mut bench));
    assert_eq!(bench.device.statistics().traps_sent, 0);
}

#[test]
fn trap_144_says_what_changed() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    bench.assign(7);
    let (_, notice) = trap(&bench.input(Input::Describe { text: "new".to_owned() })).expect("a trap");
    let Details::LocalChanges(number, details) = notice.details() else { panic!("{notice:?}") };
    assert_eq!((number, details.lid), (trap::LOCAL_CHANGES, Lid(7)));
    assert!(details.node_description_change && details.other_local_changes);
    let (_, notice) = trap(&bench.attach_manager(ONE)).expect("a trap");
    let Details::LocalChanges(_, details) = notice.details() else { panic!("{notice:?}") };
    assert_eq!(details.capability_mask & weft_wire::capability::IS_SM, weft_wire::capability::IS_SM);
    let answer = bench.ask(Method::Get, AttributeId::Notice, 0, &[]);
    assert_eq!(Notice::from_smp_data(answer.smp_data()), notice);
}
