use std::collections::BTreeSet;

use super::*;
use crate::Input;
use crate::testing::*;
use weft_wire::{
    AttributeId, DirectedSmp, MadRoute, NodeInfo, NodeType, Oui, Packet, SA_CLASS_VERSION, ServiceLevel,
};

const OTHER: ClientId = ClientId(8);

fn get(attribute: AttributeId) -> Mad {
    smp(Method::Get, attribute, 0, &[])
}

fn attached() -> Bench {
    let mut bench = hca(2);
    bench.link_up(ONE);
    bench.attach_manager(ONE);
    bench
}

#[test]
fn no_hops_lead_back_to_the_own_agent() {
    let mut bench = attached();
    let request = direct(get(AttributeId::NodeInfo), &[]);
    let (client, answer) = delivered(&bench.send(AddressedMad::smp(Lid::PERMISSIVE, request))).unwrap();
    assert_eq!((client, answer.lid), (CLIENT, Lid::PERMISSIVE));
    assert_eq!(answer.mad.transaction_id(), TransactionId(0x55));
    assert_eq!((answer.mad.method(), answer.mad.status()), (Method::GetResp, 0));
    assert_eq!(NodeInfo::decode(answer.mad.smp_attribute()).local_port_num, ONE);
    assert_eq!(DirectedSmp::hop_pointer.get(&answer.mad.0), 0);
}

#[test]
fn an_answer_finds_its_program_by_the_first_16_bits() {
    let mut bench = attached();
    bench.input(Input::Attach { client: OTHER, port: ONE, registrations: Vec::new() });
    for (client, id) in [(CLIENT, 0x0000_0001_0000_0001), (OTHER, 0xdead_beef_0000_0001), (CLIENT, 2)] {
        let mut mad = direct(get(AttributeId::NodeInfo), &[1]);
        DirectedSmp::transaction_id.set(&mut mad.0, TransactionId(id));
        let sent =
            bench.input(Input::Send { client, mad: Box::new(AddressedMad::smp(Lid::PERMISSIVE, mad)) });
        let (port, packet) = transmitted(&sent).unwrap();
        let mut answer = packet.mad().unwrap();
        assert_eq!(port, ONE);
        assert_eq!(answer.transaction_id().0, u64::from(client.0) << 48 | id & 0xffff_ffff_ffff);
        DirectedSmp::direction.set(&mut answer.0, true);
        DirectedSmp::method.set(&mut answer.0, Method::GetResp);
        let packet = Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &answer);
        let (to, answer) = delivered(&bench.receive(ONE, packet)).unwrap();
        assert_eq!((to, answer.mad.transaction_id()), (client, TransactionId(id)));
    }
}

/// Programs at a virtual function whose QP0 is closed: their SMPs go nowhere, not even to the device itself; GMPs go as ever, and
/// the device answers its manager.
#[test]
fn programs_whose_qp0_is_closed() {
    let mut config = config(NodeType::Hca, 1);
    config.options.programs_qp0 = false;
    let mut bench = Bench::new(&config);
    bench.link_up(ONE);
    bench.attach_manager(ONE);
    assert_eq!(bench.port_info(1).capability_mask & capability::IS_SM, 0, "a program is no subnet manager");
    bench.assign(7);
    bench.activate(0);
    let by_route = AddressedMad::smp(Lid::PERMISSIVE, direct(get(AttributeId::NodeInfo), &[1]));
    let to_itself = AddressedMad::smp(Lid::PERMISSIVE, direct(get(AttributeId::NodeInfo), &[]));
    let mut answer = get(AttributeId::SmInfo);
    DirectedSmp::method.set(&mut answer.0, Method::GetResp);
    for mad in [
        by_route,
        to_itself,
        AddressedMad::smp(Lid(8), get(AttributeId::PortInfo)),
        AddressedMad::smp(Lid(8), answer),
    ] {
        let outputs = bench.send(mad);
        assert_eq!(drop_reason(&outputs), Some(DropReason::Qp0Denied));
        assert!(transmitted(&outputs).is_none() && delivered(&outputs).is_none());
    }
    assert_eq!(bench.device.snapshot().statistics.dropped(DropReason::Qp0Denied), 4);

    let mut gmp = get(AttributeId::ClassPortInfo);
    DirectedSmp::mgmt_class.set(&mut gmp.0, MgmtClass::Perf);
    assert!(transmitted(&bench.send(AddressedMad::gmp(Lid(8), ServiceLevel(0), gmp))).is_some());
    let request = Packet::from_mad(&MadRoute::smp(Lid(7), Lid(8)), &get(AttributeId::NodeInfo));
    let (_, answer) = transmitted(&bench.receive(ONE, request)).expect("its own agent answers");
    assert_eq!(answer.mad().unwrap().method(), Method::GetResp);
}

#[test]
fn an_hca_passes_nothing_to_its_other_port() {
    let mut bench = attached();
    let outputs = bench.send(AddressedMad::smp(Lid::PERMISSIVE, direct(get(AttributeId::NodeInfo), &[2])));
    assert_eq!(drop_reason(&outputs), Some(DropReason::BadDirectedRoute));
}

#[test]
fn by_lid_to_oneself_and_to_others() {
    let mut bench = attached();
    bench.assign(7);
    let (_, answer) = delivered(&bench.send(AddressedMad::smp(Lid(7), get(AttributeId::PortInfo)))).unwrap();
    assert_eq!((answer.lid, answer.mad.status()), (Lid(7), 0));
    let (_, packet) =
        transmitted(&bench.send(AddressedMad::smp(Lid(8), get(AttributeId::PortInfo)))).unwrap();
    assert_eq!((packet.slid(), packet.dlid()), (Lid(7), Lid(8)));
    let outputs = bench.send(AddressedMad::smp(Lid(0), get(AttributeId::PortInfo)));
    assert_eq!(drop_reason(&outputs), Some(DropReason::BadAddress));
}

#[test]
fn registered_clients_receive_unsolicited_mads() {
    let mut bench = attached();
    bench.assign(7);
    let trap = smp(Method::Trap, AttributeId::Notice, 0, &[]);
    let packet = Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &trap);
    let (client, mad) = delivered(&bench.receive(ONE, packet.clone())).unwrap();
    assert_eq!((client, mad.lid, mad.mad), (CLIENT, Lid(3), trap));
    let sm_info = Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &get(AttributeId::SmInfo));
    let (client, mad) = delivered(&bench.receive(ONE, sm_info.clone())).unwrap();
    assert_eq!((client, mad.mad.attribute_id()), (CLIENT, AttributeId::SmInfo));

    bench.input(Input::Detach { client: CLIENT });
    assert_eq!(drop_reason(&bench.receive(ONE, packet)), Some(DropReason::NoReceiver));
    let (_, answer) = transmitted(&bench.receive(ONE, sm_info)).unwrap();
    assert_eq!(answer.mad().unwrap().status(), weft_wire::status::BAD_METHOD_ATTRIBUTE);
}

#[test]
fn a_managers_answer_keeps_its_transaction() {
    let mut bench = attached();
    bench.assign(7);
    let mut answer = smp(Method::GetResp, AttributeId::SmInfo, 0, &[]);
    SmpLayout::transaction_id.set(&mut answer.0, TransactionId(0xabcd_0000_1111_2222));
    let (_, packet) = transmitted(&bench.send(AddressedMad::smp(Lid(8), answer))).unwrap();
    assert_eq!(packet.mad().unwrap(), answer);
    SmpLayout::method.set(&mut answer.0, Method::TrapRepress);
    let (_, packet) = transmitted(&bench.send(AddressedMad::smp(Lid(8), answer))).unwrap();
    assert_eq!(packet.mad().unwrap(), answer);
}

#[test]
fn a_registration_belongs_to_one_program() {
    let mut bench = attached();
    let registrations = vec![Registration::new(MgmtClass::SubnLid, 1, [Method::Trap])];
    let refused = |bench: &mut Bench, client, port| {
        let registrations = registrations.clone();
        bench.input(Input::Attach { client, port, registrations }).into_iter().find_map(|output| match output
        {
            Output::Attached { outcome, .. } => outcome.err(),
            _ => None,
        })
    };
    let taken = RefusalReason::Taken { class: MgmtClass::SubnLid, class_version: 1, method: Method::Trap };
    assert_eq!(refused(&mut bench, OTHER, ONE), Some(taken));
    assert_eq!(refused(&mut bench, OTHER, TWO), None, "the other port has other programs");
    assert_eq!(refused(&mut bench, CLIENT, ONE), None, "attaching again replaces");
    assert_eq!(refused(&mut bench, ClientId(9), PortNum(3)), Some(RefusalReason::NoSuchPort));
    assert_eq!(refused(&mut bench, ClientId(9), PortNum(0)), Some(RefusalReason::NoSuchPort));
}

/// Whichever attaches first, a host and a program that registered for Reports both get them, and each may leave. The host answers.
#[test]
fn a_host_and_a_program_both_get_what_both_registered_for() {
    const HOST: ClientId = ClientId(ClientId::HOSTS + 1);
    let mut bench = attached();
    bench.assign(7);
    bench.activate(0);
    let reports = vec![Registration::new(MgmtClass::SubnAdm, SA_CLASS_VERSION, [Method::Report])];
    let attach = |bench: &mut Bench, client| {
        bench.input(Input::Attach { client, port: ONE, registrations: reports.clone() })
    };
    let receivers = |bench: &mut Bench| {
        let mut report = get(AttributeId::Notice);
        SmpLayout::mgmt_class.set(&mut report.0, MgmtClass::SubnAdm);
        SmpLayout::class_version.set(&mut report.0, SA_CLASS_VERSION);
        SmpLayout::method.set(&mut report.0, Method::Report);
        let outputs = bench.send(AddressedMad::gmp(Lid(7), ServiceLevel(0), report));
        let to = |output: &Output| match output {
            Output::Deliver { client, .. } => Some(*client),
            _ => None,
        };
        outputs.iter().filter_map(to).collect::<BTreeSet<ClientId>>()
    };
    attach(&mut bench, OTHER);
    assert_eq!(receivers(&mut bench), BTreeSet::from([OTHER]));
    let granted = Output::Attached { client: HOST, port: ONE, outcome: Ok(()) };
    assert!(attach(&mut bench, HOST).contains(&granted));
    assert_eq!(receivers(&mut bench), BTreeSet::from([OTHER, HOST]));
    bench.input(Input::Detach { client: HOST });
    assert_eq!(receivers(&mut bench), BTreeSet::from([OTHER]));
    attach(&mut bench, HOST);
    bench.input(Input::Detach { client: OTHER });
    assert_eq!(receivers(&mut bench), BTreeSet::from([HOST]));
    let granted = Output::Attached { client: OTHER, port: ONE, outcome: Ok(()) };
    assert!(attach(&mut bench, OTHER).contains(&granted));
    assert_eq!(receivers(&mut bench), BTreeSet::from([OTHER, HOST]));
    let third = attach(&mut bench, ClientId(9));
    assert!(matches!(third[..], [Output::Attached { outcome: Err(RefusalReason::Taken { .. }), .. }]));

    let answered = |bench: &mut Bench, client| {
        let mut answer = get(AttributeId::Notice);
        SmpLayout::mgmt_class.set(&mut answer.0, MgmtClass::SubnAdm);
        SmpLayout::class_version.set(&mut answer.0, SA_CLASS_VERSION);
        SmpLayout::method.set(&mut answer.0, Method::ReportResp);
        let mad = Box::new(AddressedMad::gmp(Lid(8), ServiceLevel(0), answer));
        transmitted(&bench.input(Input::Send { client, mad })).is_some()
    };
    assert!(!answered(&mut bench, OTHER) && answered(&mut bench, HOST));
    bench.input(Input::Detach { client: HOST });
    assert!(answered(&mut bench, OTHER), "no host answers for it");
}

#[test]
fn no_more_programs_than_stated() {
    let mut config = config(weft_wire::NodeType::Hca, 1);
    config.options.clients_max = 2;
    let mut bench = Bench::new(&config);
    for id in 0..3 {
        let attach = Input::Attach { client: ClientId(id), port: ONE, registrations: Vec::new() };
        let outcome = if id == 2 { Err(RefusalReason::TooMany) } else { Ok(()) };
        assert_eq!(bench.input(attach)[0], Output::Attached { client: ClientId(id), port: ONE, outcome });
    }
}

#[test]
fn the_manager_bit_comes_and_goes() {
    let mut bench = hca(2);
    bench.link_up(ONE);
    let is_sm = |bench: &mut Bench| bench.port_info(0).capability_mask & capability::IS_SM != 0;
    assert!(!is_sm(&mut bench));
    bench.attach_manager(ONE);
    assert!(is_sm(&mut bench));
    bench.input(Input::Detach { client: CLIENT });
    assert!(!is_sm(&mut bench));
}

/// Who asks without end forgets his own oldest requests, and no one else's.
#[test]
fn upper_bits_are_not_remembered_for_ever() {
    let client =
        || Client { port: ONE, claims: Vec::new(), says_sm: false, upper_bits: UpperBits::default() };
    let attached = BTreeMap::from([(CLIENT, client()), (OTHER, client())]);
    let mut clients = Clients { attached, max: 2, qp0: true };
    let mad = |upper: u64, lower: u64| {
        let mut mad = Mad::default();
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(upper << 48 | lower));
        mad
    };
    let max = UPPER_BITS_MAX as u64;
    clients.mark(CLIENT, &mut mad(7, 5));
    // The highest numbers first: age decides, not the number.
    for id in (0..2 * max).rev() {
        clients.mark(OTHER, &mut mad(1, id));
        clients.mark(OTHER, &mut mad(2, id));
    }
    let remembered = &clients.attached[&OTHER].upper_bits;
    assert_eq!((remembered.by_lower.len(), remembered.by_age.len()), (max as usize, max as usize));
    let mut answer = |client: ClientId, lower| {
        let mut mad = mad(u64::from(client.0), lower);
        assert_eq!(clients.claim(ONE, &mut mad), Some(client));
        mad.transaction_id().0 >> 48
    };
    assert_eq!(answer(CLIENT, 5), 7, "the other's requests are not held against it");
    assert_eq!([answer(OTHER, 0), answer(OTHER, max - 1), answer(OTHER, max)], [2, 2, 0]);
    assert_eq!(answer(OTHER, 0), 0, "an answer comes once");
}

#[test]
fn an_unattached_client_sends_nothing() {
    let mut bench = hca(1);
    let mad = AddressedMad::gmp(Lid(1), ServiceLevel(0), Mad::default());
    assert_eq!(drop_reason(&bench.send(mad)), Some(DropReason::NoSuchClient));
}

fn vendor(oui: u32) -> Registration {
    Registration { oui: Oui(oui), ..Registration::new(MgmtClass::OpenIbPing, 1, [Method::Get]) }
}

fn registered(bench: &mut Bench, client: ClientId, key: u32, registration: Registration) -> Vec<Output> {
    bench.input(Input::Register { client, key, registration })
}

/// The only output.
fn outcome(outputs: &[Output]) -> Result<(), RefusalReason> {
    match outputs {
        [Output::Registered { outcome, .. }] => *outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn registrations_come_and_go_one_at_a_time() {
    let mut bench = attached();
    bench.input(Input::Attach { client: OTHER, port: ONE, registrations: Vec::new() });
    let perf = Registration::new(MgmtClass::Perf, 1, [Method::Get, Method::Set]);
    let answer = registered(&mut bench, OTHER, 3, perf);
    assert_eq!(answer, [Output::Registered { client: OTHER, key: 3, outcome: Ok(()) }]);
    assert_eq!(outcome(&registered(&mut bench, OTHER, 3, vendor(1))), Err(RefusalReason::KeyInUse));
    let taken = Err(RefusalReason::Taken { class: MgmtClass::Perf, class_version: 1, method: Method::Set });
    let set = Registration::new(MgmtClass::Perf, 1, [Method::Set, Method::Trap]);
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 1, set)), taken);
    assert_eq!(outcome(&registered(&mut bench, OTHER, 4, set)), taken, "not even by the same program");
    let next_version = Registration { class_version: 2, ..set };
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 1, next_version)), Ok(()));
    bench.input(Input::Unregister { client: CLIENT, key: 3 });
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 2, set)), taken, "that key is another's");
    bench.input(Input::Unregister { client: OTHER, key: 3 });
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 2, set)), Ok(()));
    assert_eq!(outcome(&registered(&mut bench, ClientId(9), 2, set)), Err(RefusalReason::NotAttached));
    for key in 10..500 {
        let at_most = registered(&mut bench, CLIENT, key, vendor(key));
        assert_eq!(outcome(&at_most).is_ok(), (key as usize) < 10 + CLAIMS_MAX - 3, "{key}");
    }
}

#[test]
fn a_registered_class_comes_before_the_devices_own_answer() {
    let mut bench = attached();
    bench.assign(7);
    let request = {
        let mut mad = get(AttributeId::ClassPortInfo);
        SmpLayout::mgmt_class.set(&mut mad.0, MgmtClass::Perf);
        mad
    };
    let own = AddressedMad::gmp(Lid(7), ServiceLevel(0), request);
    let ask = |bench: &mut Bench| delivered(&bench.send(own)).unwrap().1.mad.method();
    assert_eq!(ask(&mut bench), Method::GetResp, "the device answers");
    let perf = Registration::new(MgmtClass::Perf, 1, [Method::Get]);
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 1, perf)), Ok(()));
    assert_eq!(ask(&mut bench), Method::Get, "the program is asked");
    bench.input(Input::Unregister { client: CLIENT, key: 1 });
    assert_eq!(ask(&mut bench), Method::GetResp);
}

#[test]
fn vendors_are_told_apart() {
    let mut bench = attached();
    bench.assign(7);
    bench.input(Input::Attach { client: OTHER, port: ONE, registrations: vec![vendor(0x00_1405)] });
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 1, vendor(0x00_02c9))), Ok(()));
    let ask = |bench: &mut Bench, oui: u32| {
        let mut mad = get(AttributeId::ClassPortInfo);
        SmpLayout::mgmt_class.set(&mut mad.0, MgmtClass::OpenIbPing);
        mad.0[36..40].copy_from_slice(&oui.to_be_bytes());
        let (client, mad) = delivered(&bench.send(AddressedMad::gmp(Lid(7), ServiceLevel(0), mad))).unwrap();
        (client, mad.mad.method(), mad.mad.status())
    };
    assert_eq!(ask(&mut bench, 0x00_1405), (OTHER, Method::Get, 0));
    assert_eq!(ask(&mut bench, 0x00_02c9), (CLIENT, Method::Get, 0));
    let nobody = (CLIENT, Method::GetResp, weft_wire::status::BAD_VERSION);
    assert_eq!(ask(&mut bench, 0x00_0001), nobody);
}

#[test]
fn a_program_hears_that_its_own_trap_was_heard() {
    let mut bench = attached();
    bench.assign(7);
    let trap = smp(Method::Trap, AttributeId::Notice, 0, &[]);
    let (_, packet) = transmitted(&bench.send(AddressedMad::smp(Lid(3), trap))).unwrap();
    let mut heard = packet.mad().unwrap();
    assert_eq!(heard.transaction_id().0 >> 48, u64::from(CLIENT.0));
    SmpLayout::method.set(&mut heard.0, Method::TrapRepress);
    let (client, mad) =
        delivered(&bench.receive(ONE, Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &heard))).unwrap();
    assert_eq!((client, mad.mad.transaction_id()), (CLIENT, trap.transaction_id()));
}

#[test]
fn only_set_sm_makes_a_client_a_manager() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    bench.input(Input::Attach { client: CLIENT, port: ONE, registrations: Vec::new() });
    let is_sm = |bench: &mut Bench| bench.port_info(0).capability_mask & capability::IS_SM != 0;
    let wanted = Registration::new(MgmtClass::SubnLid, 1, [Method::Get, Method::Trap]);
    assert_eq!(outcome(&registered(&mut bench, CLIENT, 0, wanted)), Ok(()));
    assert!(!is_sm(&mut bench), "taking traps does not make a manager");
    bench.input(Input::SetSm { client: CLIENT, is_sm: true });
    assert!(is_sm(&mut bench));
    bench.input(Input::SetSm { client: CLIENT, is_sm: false });
    assert!(!is_sm(&mut bench));
    bench.input(Input::SetSm { client: CLIENT, is_sm: true });
    bench.input(Input::Detach { client: CLIENT });
    assert!(!is_sm(&mut bench), "who is gone manages nothing");
}

#[test]
fn an_answer_in_segments_keeps_its_transaction() {
    let mut bench = attached();
    bench.assign(7);
    let mut request = get(AttributeId::NodeInfo);
    SmpLayout::mgmt_class.set(&mut request.0, MgmtClass::SubnAdm);
    SmpLayout::transaction_id.set(&mut request.0, TransactionId(0x1234_5678_9abc_def0));
    bench.input(Input::Send {
        client: CLIENT,
        mad: Box::new(AddressedMad::gmp(Lid(9), ServiceLevel(0), request)),
    });
    let mut answer = request;
    let marked = u64::from(CLIENT.0) << 48 | 0x5678_9abc_def0;
    SmpLayout::transaction_id.set(&mut answer.0, TransactionId(marked));
    SmpLayout::method.set(&mut answer.0, Method::GetTableResp);
    answer.set_rmpp(&weft_wire::RmppHeader { active: true, ..Default::default() });
    for _ in 0..3 {
        let gmp = AddressedMad::gmp(Lid(7), ServiceLevel(0), answer);
        let (_, mad) = delivered(&bench.send(gmp)).unwrap();
        assert_eq!(mad.mad.transaction_id(), request.transaction_id());
    }
}

/// The driver of an adapter tells its programs of their port's link, and of no other.
#[test]
fn programs_are_told_of_their_ports_link() {
    let mut bench = hca(2);
    bench.attach_manager(ONE);
    bench.input(Input::Attach { client: OTHER, port: PortNum(2), registrations: Vec::new() });
    let told = |outputs: &[Output]| -> Vec<(ClientId, bool)> {
        let told = outputs.iter().filter_map(|output| match output {
            Output::PortChanged { client, up } => Some((*client, *up)),
            _ => None,
        });
        told.collect()
    };
    assert_eq!(told(&bench.link_up(ONE)), [(CLIENT, true)]);
    assert_eq!(told(&bench.link_up(ONE)), [(CLIENT, false), (CLIENT, true)], "it was down unnoticed");
    assert_eq!(told(&bench.link_up(PortNum(2))), [(OTHER, true)]);
    assert_eq!(told(&bench.input(Input::LinkDown { port: ONE })), [(CLIENT, false)]);
    assert_eq!(told(&bench.input(Input::LinkDown { port: ONE })), [], "no news");
    let mut switch = switch(2);
    switch.attach_manager(PortNum::ZERO);
    assert_eq!(told(&switch.link_up(ONE)), [], "port 0 has no link");
}
