//! The server of ibsim's protocol as a machine: what programs say goes in, and what it wants done must come out.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use weft_ibsim::{
    Address, Command, Connect, Control, Counts, Data, Form, Output, Role, SLOTS, Server, ServerOptions,
    TIMED_OUT,
};
use weft_wire::{
    AddressedMad, AttributeId, Guid, Lid, Mad, MadHeader, Method, MgmtClass, NodeInfo, NodeType, PortInfo,
    PortNum, PortState, QpNum, Smp, TransactionId,
};

const OPTIONS: ServerOptions = ServerOptions { timeout: Duration::from_millis(100), retries: 1 };

struct Bench {
    server: Server,
    now: Instant,
}

fn mad(class: MgmtClass, method: Method, attribute: AttributeId, id: u64) -> Mad {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: class,
        class_version: 1,
        method,
        attribute_id: attribute,
        transaction_id: TransactionId(id),
        ..MadHeader::default()
    });
    mad
}

fn data(lid: Lid, mad: Mad) -> Vec<u8> {
    let data = Data { dlid: lid, slid: Lid(0), dqp: QpNum(0), sqp: QpNum(0), status: 0, mad };
    data.encode(Form::Wide).to_vec()
}

/// The answer to a request, with these data.
fn response(request: &AddressedMad, bytes: &[u8]) -> AddressedMad {
    let mut mad = request.mad;
    Smp::method.set(&mut mad.0, Method::GetResp);
    mad.set_smp_data(bytes);
    AddressedMad { mad, ..*request }
}

fn own(pid: u32) -> Address {
    Address::named("sim", &format!("ctl{pid}"))
}

impl Bench {
    fn new() -> Self {
        Self { server: Server::new("sim", OPTIONS), now: Instant::now() }
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.server.poll_output()).collect()
    }

    fn ask(&mut self, pid: u32, slot: u8, command: Command, bytes: &[u8]) -> Vec<Output> {
        let control = Control::new(slot.into(), command, bytes);
        self.server.control(self.now, &own(pid), &control.encode()).unwrap();
        self.outputs()
    }

    /// Sends a connect; the slot, or `None` when the server says no.
    fn begin(&mut self, pid: u32, issm: bool) -> Option<u8> {
        let connect = Connect { id: pid, qp: 0, issm, node: "H-1".into() };
        for output in self.ask(pid, 0, Command::Connect, &connect.encode()) {
            match output {
                Output::Attach { slot, connect: wanted, peer } => {
                    assert_eq!((wanted, peer), (connect, Address::named("sim", &format!("in{pid}"))));
                    return Some(slot);
                }
                Output::Answer { to, control } => {
                    assert_eq!((to, control.command), (own(pid), Command::Error));
                }
                _ => {}
            }
        }
        None
    }

    /// Connects a program all the way.
    fn connect(&mut self, pid: u32, issm: bool) -> u8 {
        let slot = self.begin(pid, issm).unwrap();
        self.server.attached(self.now, slot, Some(("H-1".into(), PortNum(1))));
        let [Output::Send { mad, .. }] = self.outputs()[..] else { panic!("the node is asked who it is") };
        assert_eq!(mad.mad.attribute_id(), AttributeId::NodeInfo);
        let info = NodeInfo {
            node_type: NodeType::Hca,
            num_ports: 2,
            node_guid: Guid(0x10),
            port_guid: Guid(0x11),
            vendor_id: 0x2c9,
            device_id: 4099,
            revision: 7,
            ..NodeInfo::decode(&[0; NodeInfo::SIZE])
        };
        self.server.received(slot, &response(&mad, &info.encode()));
        if issm {
            assert_eq!(self.outputs(), [Output::Register { slot, role: Some(Role::Everything) }]);
            self.server.registered(slot, Some(Role::Everything), true);
        }
        let [Output::Answer { to, control }] = &self.outputs()[..] else {
            panic!("it says that it connects")
        };
        assert_eq!((to, control.command, control.client), (&own(pid), Command::Connect, slot.into()));
        assert_eq!(Connect::decode(&control.data).node, "H-1");
        slot
    }

    /// Sends a MAD of a program; what goes to the fabric.
    fn send(&mut self, slot: u8, lid: Lid, mad: Mad) -> AddressedMad {
        self.server.data(self.now, slot, &data(lid, mad)).unwrap();
        let [Output::Send { mad, slot: by }] = self.outputs()[..] else { panic!("it is sent") };
        assert_eq!(by, slot);
        mad
    }

    /// What a program gets, which must be one MAD.
    fn delivered(&mut self) -> Data {
        let [Output::Deliver { data, form: Form::Wide, .. }] = self.outputs()[..] else { panic!("one MAD") };
        data
    }
}

fn get(id: u64) -> Mad {
    mad(MgmtClass::SubnLid, Method::Get, AttributeId::NodeInfo, id)
}

#[test]
fn an_answer_comes_back_with_the_programs_transaction_and_slot() {
    let mut bench = Bench::new();
    bench.connect(100, false);
    let slot = bench.connect(101, false);
    assert_eq!(slot, 1);
    let sent = bench.send(slot, Lid(7), get(0xffff_0005_1234_5678));
    assert_eq!((sent.lid, sent.remote_qp), (Lid(7), QpNum(0)));
    assert!(sent.mad.transaction_id().0 <= u64::from(u32::MAX), "the upper half belongs to the device");
    bench.server.received(slot, &response(&sent, &[1]));
    let got = bench.delivered();
    assert_eq!((got.slid, got.status), (Lid(7), 0));
    assert_eq!(got.mad.transaction_id(), TransactionId(0x0001_0005_1234_5678));
    bench.server.received(slot, &response(&sent, &[1]));
    assert_eq!((bench.outputs(), bench.server.counts().unmatched), (vec![], 1), "a second answer is none");
}

#[test]
fn silence_becomes_status_110_after_all_attempts() {
    let mut bench = Bench::new();
    let slot = bench.connect(100, false);
    let sent = bench.send(slot, Lid(7), get(0x0005_0000_0001));
    assert_eq!(bench.server.poll_timeout(), Some(bench.now + OPTIONS.timeout));
    bench.now += OPTIONS.timeout;
    bench.server.handle_timeout(bench.now);
    assert_eq!(bench.outputs(), [Output::Send { slot, mad: sent }], "it is sent again as it was");
    bench.now += OPTIONS.timeout;
    bench.server.handle_timeout(bench.now);
    let got = bench.delivered();
    assert_eq!((got.status, got.slid, got.mad.method()), (TIMED_OUT, Lid(7), Method::Get));
    assert_eq!(got.mad.transaction_id(), TransactionId(0x0005_0000_0001));
    assert_eq!(bench.server.poll_timeout(), None);
    let Counts { retried, timed_out, .. } = bench.server.counts();
    assert_eq!((retried, timed_out), (1, 1));
}

#[test]
fn too_many_requests_come_back_at_once() {
    let mut bench = Bench::new();
    let slot = bench.connect(100, false);
    let mut returned = 0;
    for id in 0..2000 {
        bench.server.data(bench.now, slot, &data(Lid(7), get(id))).unwrap();
        let outputs = bench.outputs();
        returned += outputs.iter().filter(|o| matches!(o, Output::Deliver { .. })).count() as u64;
    }
    assert_eq!((returned, bench.server.counts().overflowed), (2000 - 1024, 2000 - 1024));
}

#[test]
fn the_eleventh_is_refused_until_one_is_gone() {
    let mut bench = Bench::new();
    for pid in 0..SLOTS as u32 {
        bench.connect(100 + pid, false);
    }
    assert_eq!(bench.begin(200, false), None);
    assert_eq!(bench.server.counts().refused_full, 1);
    bench.server.gone(3);
    assert_eq!(bench.outputs(), [Output::Detach { slot: 3 }]);
    assert_eq!(bench.connect(200, false), 3);
    let answered = bench.ask(104, 4, Command::Disconnect, &[]);
    let [Output::Detach { slot: 4 }, Output::Answer { control, .. }] = &answered[..] else {
        panic!("{answered:?}")
    };
    assert_eq!(control.command, Command::Disconnect);
    assert_eq!(bench.connect(201, false), 4);
    assert_eq!(bench.begin(201, false), Some(4), "a process number that comes again is another process");
}

#[test]
fn every_question_about_the_port_is_answered_by_the_node() {
    let mut bench = Bench::new();
    let slot = bench.connect(100, false);
    let info = PortInfo {
        lid: Lid(0x1234),
        port_state: PortState::Armed,
        gid_prefix: 0xfe80_0000_0000_0001.into(),
        ..PortInfo::decode(&[0; PortInfo::SIZE])
    };
    let mut asked = |command, bytes: &[u8]| {
        let [Output::Send { mad, .. }] = bench.ask(100, slot, command, bytes)[..] else {
            panic!("{command:?}")
        };
        bench.server.received(slot, &response(&mad, &info.encode()));
        let [Output::Answer { control, .. }] = &bench.outputs()[..] else { panic!("{command:?}") };
        assert_eq!(control.command, command);
        (mad.mad, control.data)
    };
    let (_, port) = asked(Command::GetPort, &[]);
    assert_eq!(port[..3], [&0x1234u16.to_ne_bytes()[..], &[3]].concat());
    let (_, gid) = asked(Command::GetGid, &[]);
    assert_eq!(gid[..16], [0xfe80_0000_0000_0001u64.to_be_bytes(), 0x11u64.to_be_bytes()].concat());
    for (port, wanted) in [(0, 1), (1, 1), (2, 2), (3, 1), (255, 1)] {
        let (mad, answer) = asked(Command::GetPortInfo, &[port]);
        assert_eq!((mad.attribute_id(), mad.attribute_modifier()), (AttributeId::PortInfo, wanted));
        assert_eq!(answer, info.encode());
    }
    assert_eq!(asked(Command::GetPKeys, &[]).0.attribute_id(), AttributeId::PKeyTable);
    assert_eq!(asked(Command::GetNodeInfo, &[]).0.attribute_id(), AttributeId::NodeInfo);
    let mut told = |command| {
        let [Output::Answer { control, .. }] = &bench.ask(100, slot, command, &[])[..] else { panic!() };
        control.clone()
    };
    assert_eq!(told(Command::GetGuid).data[..8], 0x10u64.to_be_bytes());
    let words = [0x2c9u32, 4099, 7].map(u32::to_ne_bytes).concat();
    assert_eq!(told(Command::GetVendor).data[..12], words);
    assert_eq!(told(Command::Other(11)).command, Command::Error);
}

#[test]
fn requests_reach_only_managers_whose_library_takes_them() {
    let mut bench = Bench::new();
    let slot = bench.connect(100, false);
    let smp = AddressedMad::smp(Lid(9), mad(MgmtClass::SubnLid, Method::Get, AttributeId::SmInfo, 0xabc));
    let ping =
        AddressedMad::smp(Lid(9), mad(MgmtClass::OpenIbPing, Method::Get, AttributeId::from_code(0), 0xabc));
    bench.server.received(slot, &smp);
    assert_eq!((bench.outputs(), bench.server.counts().unwanted), (vec![], 1), "it is no manager yet");
    let register = bench.ask(100, slot, Command::SetIssm, &[1, 0, 0, 0]);
    assert_eq!(register, [Output::Register { slot, role: Some(Role::Manager) }]);
    bench.server.registered(slot, Some(Role::Manager), true);
    assert!(
        matches!(&bench.outputs()[..], [Output::Answer { control, .. }] if control.command == Command::SetIssm)
    );
    bench.server.received(slot, &smp);
    let got = bench.delivered();
    assert_eq!((got.slid, got.mad.transaction_id()), (Lid(9), TransactionId(0xabc)));
    bench.server.received(slot, &ping);
    assert_eq!(bench.outputs(), [], "OpenSM's library crashes by a class that is not open");
    let service = bench.connect(101, true);
    bench.server.received(service, &ping);
    assert_eq!(bench.delivered().mad.class(), MgmtClass::OpenIbPing);
    bench.send(service, Lid(1), get(1));
    bench.server.received(service, &ping);
    assert_eq!(bench.outputs(), [], "who asks is no mere service");
}

#[test]
fn a_repression_has_the_transaction_of_its_trap() {
    let mut bench = Bench::new();
    let slot = bench.connect(100, true);
    let trap = mad(MgmtClass::SubnLid, Method::Trap, AttributeId::Notice, 0xffff_ffff_0000_0007);
    bench.server.received(slot, &AddressedMad::smp(Lid(9), trap));
    let mut repressed = bench.delivered().mad;
    Smp::method.set(&mut repressed.0, Method::TrapRepress);
    Smp::transaction_id.set(&mut repressed.0, TransactionId(0xffff_0003_0000_0007));
    let sent = bench.send(slot, Lid(9), repressed);
    assert_eq!(sent.mad.transaction_id(), TransactionId(0xffff_ffff_0000_0007));
    assert_eq!(bench.server.poll_timeout(), None, "nobody answers it");
}

#[test]
fn nobody_speaks_for_another() {
    let mut bench = Bench::new();
    let slot = bench.connect(100, false);
    let [Output::Answer { control, .. }] = &bench.ask(666, slot, Command::Disconnect, &[])[..] else {
        panic!()
    };
    assert_eq!((control.command, bench.server.counts().foreign), (Command::Error, 1));
    bench.server.data(bench.now, 5, &data(Lid(1), get(1))).unwrap();
    assert_eq!(bench.server.counts().unconnected, 1);
    assert!(bench.server.data(bench.now, slot, &[0; 100]).is_err());
    assert_eq!(bench.server.counts().malformed, 1);
}

#[test]
fn a_failed_or_silent_attach_frees_the_slot() {
    let mut bench = Bench::new();
    let slot = bench.begin(100, false).unwrap();
    bench.server.attached(bench.now, slot, None);
    assert!(matches!(&bench.outputs()[..], [Output::Answer { .. }, Output::Detach { .. }]));
    let slot = bench.begin(101, false).unwrap();
    bench.server.attached(bench.now, slot, Some(("H-1".into(), PortNum(1))));
    bench.outputs();
    for _ in 0..2 {
        bench.now += OPTIONS.timeout;
        bench.server.handle_timeout(bench.now);
    }
    let outputs = bench.outputs();
    let answer = outputs
        .iter()
        .any(|o| matches!(o, Output::Answer { control, .. } if control.command == Command::Error));
    assert!(answer && outputs.contains(&Output::Detach { slot }), "{outputs:?}");
}

proptest! {
    /// Whatever programs and nodes say: no panic, no slot that is lost, and no more than is asked for.
    #[test]
    fn anything_may_be_said(steps in prop::collection::vec((0u8..6, any::<u8>(), any::<[u8; 24]>()), 1..200)) {
        let mut bench = Bench::new();
        let mut sent: Vec<(u8, AddressedMad)> = Vec::new();
        for (kind, slot, bytes) in steps {
            let slot = slot % 12;
            let pid = u32::from(bytes[0] % 14);
            match kind {
                0 => {
                    let command = Command::from_code(u32::from(bytes[1] % 13));
                    let client = if command == Command::Connect { 0 } else { u32::from(slot) };
                    let connect = Connect { id: pid, qp: 0, issm: bytes[2] & 1 == 1, node: String::new() };
                    let control = Control::new(client, command, &connect.encode());
                    let _ = bench.server.control(bench.now, &own(pid), &control.encode());
                }
                1 => {
                    let mut any = get(u64::from(bytes[3]));
                    any.0[..24].copy_from_slice(&bytes);
                    let _ = bench.server.data(bench.now, slot, &data(Lid(1), any));
                }
                2 => {
                    if let Some((slot, mad)) = sent.pop() {
                        bench.server.received(slot, &response(&mad, &bytes));
                    }
                }
                3 => {
                    let mut any = Mad::default();
                    any.0[..24].copy_from_slice(&bytes);
                    bench.server.received(slot, &AddressedMad::smp(Lid(1), any));
                }
                4 => {
                    bench.now += Duration::from_millis(u64::from(bytes[4]));
                    bench.server.handle_timeout(bench.now);
                }
                _ => bench.server.gone(slot),
            }
            for output in bench.outputs() {
                match output {
                    Output::Attach { slot, .. } => {
                        let to = (bytes[5] & 7 != 0).then(|| ("n".to_owned(), PortNum(1)));
                        bench.server.attached(bench.now, slot, to);
                    }
                    Output::Register { slot, role } => bench.server.registered(slot, role, bytes[6] & 1 == 0),
                    Output::Send { slot, mad } => sent.push((slot, mad)),
                    _ => {}
                }
            }
        }
    }
}
