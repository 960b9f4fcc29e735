//! Two layers that talk to each other: a program that asks, and a server that answers with tables.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weft_host::mad::{Address, AgentId, AgentRequest, Input, Limits, MadLayer, Output, TIMED_OUT};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, Lid, Mad, MadHeader, Method, MethodMask, MgmtClass, Oui, QKey, QpNum, RmppHeader, RmppType,
    ServiceLevel, TransactionId,
};

const HEADERS: usize = 56;

/// A small generator, so that a case is one number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn address(lid: u16) -> Address {
    Address { lid: Lid(lid), qp: QpNum::GSI, qkey: QKey::GSI, service_level: ServiceLevel(0), pkey_index: 0 }
}

fn rmpp() -> RmppHeader {
    RmppHeader { version: 1, kind: RmppType::Data, active: true, resp_time: 31, ..RmppHeader::default() }
}

fn message(method: Method, id: u64, data: usize) -> Vec<u8> {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnAdm,
        class_version: 2,
        method,
        transaction_id: TransactionId(id),
        ..MadHeader::default()
    });
    if method != Method::GetTable {
        mad.set_rmpp(&rmpp());
    }
    let mut bytes = mad.0[..HEADERS].to_vec();
    bytes.extend((0..data).map(|at| (at as u64 * 31 + id) as u8));
    bytes
}

/// The table that answers the request with this number.
fn table(id: u64, size: usize) -> Vec<u8> {
    message(Method::GetTableResp, id, size)[HEADERS..].to_vec()
}

/// Layer 0 asks and has lid 1; layer 1 answers and has lid 2.
struct World {
    layers: [MadLayer; 2],
    dice: Dice,
    loss: u64,
    flying: BTreeMap<(Time, u64), (usize, AddressedMad)>,
    serial: u64,
    now: Time,
    size: usize,
    /// What the asker was delivered: status, lower half of the transaction, data.
    answers: Vec<(u32, u64, Vec<u8>)>,
    /// Requests that the server was delivered.
    asked: usize,
    /// Statuses of answers that the server got back.
    returned: Vec<u32>,
}

impl World {
    fn new(seed: u64, loss: u64, size: usize) -> Self {
        let mut world = Self {
            layers: [MadLayer::new(Limits::default()), MadLayer::new(Limits::default())],
            dice: Dice(seed),
            loss,
            flying: BTreeMap::new(),
            serial: 0,
            now: Time::ZERO,
            size,
            answers: Vec::new(),
            asked: 0,
            returned: Vec::new(),
        };
        let methods = [MethodMask::default(), [Method::GetTable, Method::GetMulti].into()];
        for (at, methods) in methods.into_iter().enumerate() {
            let registration = AgentRequest {
                qp: QpNum::GSI,
                class: MgmtClass::SubnAdm,
                class_version: 2,
                oui: Oui(0),
                methods,
                rmpp_version: 1,
            };
            world.feed(at, Input::Register { request: 0, registration });
        }
        world
    }

    fn ask(&mut self, method: Method, id: u64, size: usize, timeout_ms: u32, retries: u32) {
        let data = message(method, id, size);
        self.feed(0, Input::Send { agent: AgentId(0), address: address(2), timeout_ms, retries, data });
    }

    fn feed(&mut self, at: usize, input: Input) {
        self.layers[at].handle_input(self.now, input);
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.layers[at].poll_output() {
            match output {
                Output::Claim { agent, .. } => {
                    self.layers[at].handle_input(self.now, Input::Claimed { agent, granted: true });
                }
                Output::Transmit(mut mad) => {
                    assert_eq!(usize::from(mad.lid.0), 2 - at, "to the other end");
                    mad.lid = Lid(at as u16 + 1);
                    if self.dice.roll(100) >= self.loss {
                        let delay = Time::from_micros(10 + self.dice.roll(2000));
                        self.flying.insert((self.now + delay, self.serial), (1 - at, mad));
                        self.serial += 1;
                    }
                }
                Output::Deliver { status, data, .. } if at == 0 => {
                    let id = MadHeader::decode(data.first_chunk().expect("a header")).transaction_id.0;
                    self.answers.push((status, id & 0xffff_ffff, data));
                }
                Output::Deliver { status: 0, data, address, .. } => self.serve(&data, address),
                Output::Deliver { status, .. } => self.returned.push(status),
                Output::Registered { .. } => {}
                // The same request again, while its answer is on its way.
                Output::SendRefused { .. } if at == 1 => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn serve(&mut self, request: &[u8], address: Address) {
        self.asked += 1;
        let header = MadHeader::decode(request.first_chunk().expect("a header"));
        let method =
            if header.method == Method::GetMulti { Method::GetMultiResp } else { Method::GetTableResp };
        let data = message(method, header.transaction_id.0, self.size);
        self.feed(1, Input::Send { agent: AgentId(0), address, timeout_ms: 0, retries: 20, data });
    }

    fn run(&mut self, until: Time) {
        loop {
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let timers = [self.layers[0].poll_timeout(), self.layers[1].poll_timeout()];
            let Some(next) = timers.into_iter().chain([arrival]).flatten().min().filter(|at| *at <= until)
            else {
                return;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (at, mad)) = self.flying.pop_first().expect("it was there");
                self.feed(at, Input::Receive(mad));
            } else {
                for at in [0, 1] {
                    self.layers[at].handle_timeout(self.now);
                    self.drain(at);
                }
            }
        }
    }
}

#[test]
fn a_table_of_many_segments() {
    for size in [0, 1, 144, 200, 201, 12_800, 13_000, 1_000_000] {
        let mut world = World::new(1, 0, size);
        world.ask(Method::GetTable, 5, 200, 1000, 0);
        world.run(Time::from_secs(60));
        let [(0, 5, data)] = world.answers.as_slice() else { panic!("{size}: {:?}", world.answers.len()) };
        assert_eq!(data.len(), HEADERS + size, "its length is that of the data, not of whole segments");
        assert_eq!(data[HEADERS..], table(1 << 32 | 5, size));
        let [asker, server] = [0, 1].map(|at| world.layers[at].stats());
        assert_eq!((server.rmpp_sent.sent, server.rmpp_sent.resent), (1, 0));
        assert_eq!(server.rmpp_sent.segments as usize, size.div_ceil(200).max(1));
        assert_eq!((asker.rmpp_received.received, asker.retries, asker.timeouts), (1, 0, 0));
        assert_eq!([0, 1].map(|at| world.layers[at].outstanding()), [0, 0]);
    }
}

/// Some programs number all their requests alike.
#[test]
fn the_same_transaction_twice() {
    let mut world = World::new(1, 0, 5000);
    for answers in 1..4 {
        world.ask(Method::GetTable, 5, 200, 1000, 0);
        world.run(world.now + Time::from_secs(1));
        assert_eq!((world.answers.len(), world.asked), (answers, answers));
        assert_eq!(world.answers[answers - 1].0, 0);
    }
}

#[test]
fn both_ways_at_once() {
    let mut world = World::new(1, 0, 30_000);
    world.ask(Method::GetMulti, 5, 25_000, 1000, 0);
    world.run(Time::from_secs(60));
    let [(0, 5, data)] = world.answers.as_slice() else { panic!("{:?}", world.answers.len()) };
    assert_eq!((world.asked, data.len()), (1, HEADERS + 30_000));
    let [asker, server] = [0, 1].map(|at| world.layers[at].stats());
    assert_eq!((asker.rmpp_sent.sent, server.rmpp_received.received), (1, 1));
    assert_eq!((server.rmpp_sent.sent, asker.rmpp_received.received), (1, 1));
}

/// A table that takes longer than the time-out of the request comes all the same, and is asked for once.
#[test]
fn an_answer_under_way_is_not_asked_for_again() {
    let mut world = World::new(1, 0, 500_000);
    world.ask(Method::GetTable, 5, 200, 10, 3);
    world.run(Time::from_secs(60));
    assert!(world.now > Time::from_millis(20));
    assert_eq!((world.asked, world.answers.len(), world.answers[0].0), (1, 1, 0));
}

#[test]
fn an_asker_that_is_gone_is_told_to_the_server_at_once() {
    let mut world = World::new(1, 0, 500_000);
    world.ask(Method::GetTable, 5, 200, 1000, 3);
    world.run(Time::from_millis(10));
    assert_eq!(world.layers[1].outstanding(), 1);
    world.feed(0, Input::Unregister { agent: AgentId(0) });
    world.run(Time::from_secs(1));
    assert_eq!((world.answers.len(), world.layers[1].outstanding()), (0, 0));
    assert_eq!(world.layers[0].poll_timeout(), None, "what had come of it is forgotten");
    assert_eq!(world.layers[1].stats().rmpp_sent.failed, 1);
    assert_eq!(world.returned, Vec::<u32>::new(), "it need not wait for a time-out");
}

#[test]
fn an_answer_too_late_is_turned_away() {
    let mut world = World::new(1, 0, 5000);
    world.ask(Method::GetTable, 5, 200, 1, 0);
    // The request is on its way, and its time runs out before the answer can be here.
    world.layers[0].handle_timeout(Time::from_millis(1));
    world.drain(0);
    world.run(Time::from_secs(60));
    assert_eq!(world.answers.iter().map(|(status, ..)| *status).collect::<Vec<_>>(), [TIMED_OUT]);
    assert_eq!(world.layers[0].stats().answers_unmatched, 1);
    assert_eq!(world.layers[1].outstanding(), 0);
    assert_eq!(world.returned, Vec::<u32>::new(), "an abort is not a time-out");
}

#[test]
fn nobody_there() {
    let mut world = World::new(1, 100, 0);
    world.ask(Method::GetMulti, 5, 5000, 500, 2);
    world.ask(Method::GetTable, 6, 200, 500, 2);
    world.run(Time::from_secs(100));
    let mut statuses: Vec<_> =
        world.answers.iter().map(|(status, id, data)| (*status, *id, data.len())).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [(TIMED_OUT, 5, 24), (TIMED_OUT, 6, 24)]);
    assert_eq!(world.layers[0].outstanding(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every request ends, with the right table or with a time-out; nothing is left behind.
    #[test]
    fn every_request_ends(seed: u64, loss in 0u64..40, size in 0usize..20_000, requests in 1u64..12) {
        let mut world = World::new(seed, loss, size);
        for id in 0..requests {
            let (method, own) = if id % 3 == 0 { (Method::GetMulti, 900) } else { (Method::GetTable, 200) };
            world.ask(method, id, own, 300, 4);
        }
        world.run(Time::from_secs(1000));
        let mut ids: Vec<u64> = world.answers.iter().map(|(_, id, _)| *id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..requests).collect::<Vec<_>>(), "each once");
        for (status, id, data) in &world.answers {
            if *status == 0 {
                prop_assert_eq!(&data[HEADERS..], &table(1 << 32 | id, size)[..]);
            } else {
                prop_assert_eq!((*status, data.len()), (TIMED_OUT, 24));
                prop_assert!(loss > 0);
            }
        }
        prop_assert_eq!([0, 1].map(|at| world.layers[at].outstanding()), [0, 0]);
        prop_assert_eq!([0, 1].map(|at| world.layers[at].poll_timeout()), [None, None]);
    }
}
