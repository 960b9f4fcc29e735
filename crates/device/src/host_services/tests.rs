use super::*;
use crate::testing::*;
use weft_wire::{AddressedMad, Lid, MadHeader, NodeType, Registration, ServiceLevel};

fn request(class: MgmtClass, method: Method, attribute_id: AttributeId, oui: u32) -> Mad {
    let mut mad = Mad([0x5a; 256]);
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: class,
        class_version: 1,
        method,
        attribute_id,
        ..MadHeader::default()
    });
    VendorMad::oui.set(&mut mad.0, oui);
    mad
}

fn host() -> Bench {
    let mut config = config(NodeType::Hca, 1);
    config.options.processors = "two of them, è".to_owned();
    let mut bench = Bench::new(&config);
    bench.link_up(ONE);
    bench.assign(7);
    bench.activate(0);
    bench
}

/// Sends the request over the link and returns the answer.
fn ask(bench: &mut Bench, mad: &Mad) -> Option<Mad> {
    transmitted(&bench.receive(ONE, gmp_packet(0, 0, 3, 7, mad))).map(|(_, packet)| packet.mad().unwrap())
}

fn said(answer: &Mad) -> String {
    let data = VendorMad::data.get(&answer.0);
    let end = data.iter().position(|&byte| byte == 0).expect("a zero behind the text");
    assert!(data[end..].iter().all(|&byte| byte == 0));
    String::from_utf8(data[..end].to_vec()).unwrap()
}

#[test]
fn a_ping_is_answered_with_the_hosts_name() {
    let mut bench = host();
    let ping = request(MgmtClass::OpenIbPing, Method::Get, AttributeId::NONE, OPENIB_OUI);
    let answer = ask(&mut bench, &ping).unwrap();
    assert_eq!((answer.method(), answer.status(), said(&answer).as_str()), (Method::GetResp, 0, "bench"));
    assert_eq!(VendorMad::oui.get(&answer.0), OPENIB_OUI);
    bench.input(crate::Input::Describe { text: "another name".to_owned() });
    assert_eq!(said(&ask(&mut bench, &ping).unwrap()), "another name");
    assert_eq!(bench.device.statistics().gmps_answered, 2);
}

#[test]
fn system_status() {
    let mut bench = host();
    let mut about = |attribute| {
        let asked = request(MgmtClass::OpenIbSysstat, Method::Get, attribute, OPENIB_OUI);
        (asked, ask(&mut bench, &asked).unwrap())
    };
    let (asked, pong) = about(sysstat::PING);
    assert_eq!((pong.status(), &pong.0[40..]), (0, &asked.0[40..]), "what was said comes back");
    assert_eq!(said(&about(sysstat::HOST_INFO).1), "bench");
    assert_eq!(said(&about(sysstat::CPU_INFO).1), "two of them, è");
    assert_eq!(about(AttributeId::from_code(0x13)).1.status(), status::BAD_METHOD_ATTRIBUTE);
}

#[test]
fn a_long_text_is_cut_at_a_character() {
    assert_eq!(text(&"x".repeat(300))[213..], [b'x', b'x', 0]);
    assert_eq!(text(&format!("{}è", "x".repeat(214)))[213..], [b'x', 0, 0]);
}

/// By class, method, attribute and organisation: the status, and whether it is a host.
#[test]
fn everything_else_is_refused() {
    let mut bench = host();
    let mut refused = |class, method, attribute, oui| {
        let answer = ask(&mut bench, &request(class, method, attribute, oui)).expect("never silently");
        (answer.method(), answer.status())
    };
    let (ping, sysstat) = (MgmtClass::OpenIbPing, MgmtClass::OpenIbSysstat);
    let none = AttributeId::NONE;
    let resp = Method::GetResp;
    assert_eq!(refused(ping, Method::Set, none, OPENIB_OUI), (resp, status::BAD_METHOD_ATTRIBUTE));
    assert_eq!(refused(ping, Method::Get, sysstat::PING, OPENIB_OUI), (resp, status::BAD_METHOD_ATTRIBUTE));
    assert_eq!(refused(sysstat, Method::Get, none, OPENIB_OUI), (resp, status::BAD_METHOD_ATTRIBUTE));
    assert_eq!(refused(ping, Method::Delete, none, OPENIB_OUI), (Method::DeleteResp, status::BAD_METHOD));
    assert_eq!(
        refused(ping, Method::Get, none, 0x2c9),
        (resp, status::BAD_VERSION),
        "not that organisation's"
    );
    let other = MgmtClass::from_code(0x34);
    assert_eq!(refused(other, Method::Get, none, OPENIB_OUI), (resp, status::BAD_VERSION));
    assert_eq!(
        refused(MgmtClass::SubnAdm, Method::GetTable, none, 0),
        (Method::GetTableResp, status::BAD_VERSION)
    );
    assert_eq!(refused(MgmtClass::from_code(0x0a), Method::Get, none, 0), (resp, status::BAD_VERSION));
    // What asks for no answer gets none.
    for method in [Method::Send, Method::Report, Method::Trap] {
        let mad = request(ping, method, none, OPENIB_OUI);
        let outputs = bench.receive(ONE, gmp_packet(0, 0, 3, 7, &mad));
        assert_eq!(drop_reason(&outputs), Some(crate::DropReason::NoReceiver), "{method}");
    }
    let mut newer = request(ping, Method::Get, none, OPENIB_OUI);
    VendorMad::class_version.set(&mut newer.0, 2);
    assert_eq!(ask(&mut bench, &newer).unwrap().status(), status::BAD_VERSION);
}

#[test]
fn a_switch_is_no_host() {
    let mut bench = switch(2);
    bench.link_up(ONE);
    bench.assign(7);
    bench.activate(1);
    bench.routes(&[(3, 1), (7, 0)]);
    let ping = request(MgmtClass::OpenIbPing, Method::Get, AttributeId::NONE, OPENIB_OUI);
    assert_eq!(ask(&mut bench, &ping).unwrap().status(), status::BAD_VERSION);
}

#[test]
fn a_program_that_registers_takes_the_services_place() {
    let mut bench = host();
    let ping = request(MgmtClass::OpenIbPing, Method::Get, AttributeId::NONE, OPENIB_OUI);
    let registration = Registration {
        oui: weft_wire::Oui(OPENIB_OUI),
        ..Registration::new(MgmtClass::OpenIbPing, 1, [Method::Get])
    };
    bench.input(crate::Input::Attach { client: CLIENT, port: ONE, registrations: vec![registration] });
    let outputs = bench.receive(ONE, gmp_packet(0, 0, 3, 7, &ping));
    assert_eq!(delivered(&outputs).map(|(client, mad)| (client, mad.mad)), Some((CLIENT, ping)));
    assert_eq!(transmitted(&outputs), None);
    bench.input(crate::Input::Detach { client: CLIENT });
    assert!(ask(&mut bench, &ping).is_some());
}

/// A program asks its own host, and a subnet manager at the same port hears nothing of it.
#[test]
fn a_ping_of_ones_own_host() {
    let mut bench = host();
    bench.attach_manager(ONE);
    let other = crate::ClientId(9);
    bench.input(crate::Input::Attach { client: other, port: ONE, registrations: Vec::new() });
    let ping = request(MgmtClass::OpenIbPing, Method::Get, AttributeId::NONE, OPENIB_OUI);
    let mad = AddressedMad::gmp(Lid(7), ServiceLevel(0), ping);
    let outputs = bench.input(crate::Input::Send { client: other, mad: Box::new(mad) });
    let (client, answer) = delivered(&outputs).unwrap();
    assert_eq!((client, answer.mad.method(), said(&answer.mad).as_str()), (other, Method::GetResp, "bench"));
}
