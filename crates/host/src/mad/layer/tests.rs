//! The layer as a program sees it, one scenario each.

use weft_mgmt::TransferTimer;
use weft_wire::{
    DirectedSmp, Lid, Mad, MadHeader, MethodMask, MgmtClass, Oui, QKey, QpNum, RmppHeader, ServiceLevel,
};

use super::*;

const PEER: Address =
    Address { lid: Lid(9), qp: QpNum::GSI, qkey: QKey::GSI, service_level: ServiceLevel(0), pkey_index: 0 };

fn asked(class: MgmtClass, methods: impl Into<MethodMask>) -> AgentRequest {
    let smp = matches!(class, MgmtClass::SubnLid | MgmtClass::SubnDirected);
    AgentRequest {
        qp: if smp { QpNum::SMI } else { QpNum::GSI },
        class,
        class_version: if class == MgmtClass::SubnAdm { 2 } else { 1 },
        oui: if class.has_oui() { Oui(0x1405) } else { Oui(0) },
        methods: methods.into(),
        rmpp_version: u8::from(class.has_rmpp()),
    }
}

fn mad(class: MgmtClass, method: Method, id: u64) -> Mad {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: class,
        class_version: if class == MgmtClass::SubnAdm { 2 } else { 1 },
        method,
        transaction_id: TransactionId(id),
        ..MadHeader::default()
    });
    if class.has_oui() {
        mad.0[36..40].copy_from_slice(&0x1405u32.to_be_bytes());
    }
    mad
}

fn id_of(mad: &Mad) -> u64 {
    mad.transaction_id().0
}

/// A MAD that comes from the peer.
fn from_peer(mad: Mad) -> Input {
    Input::Receive(PEER.with(QpNum::GSI, mad))
}

struct Bench {
    layer: MadLayer,
    now: Time,
}

impl Bench {
    fn new() -> Self {
        Self { layer: MadLayer::default(), now: Time::ZERO }
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.layer.poll_output()).collect()
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.layer.handle_input(self.now, input);
        self.outputs()
    }

    /// Lets all time pass up to a moment, a millisecond being the smallest part of it.
    fn until(&mut self, ms: u64) -> Vec<(u64, Output)> {
        let mut all = Vec::new();
        while let Some(due) = self.layer.poll_timeout().filter(|due| *due <= Time::from_millis(ms)) {
            assert!(due > self.now, "time moves on");
            self.now = due;
            self.layer.handle_timeout(due);
            all.extend(self.outputs().into_iter().map(|output| (due.as_millis(), output)));
        }
        self.now = Time::from_millis(ms);
        all
    }

    /// Registers with a device that grants everything.
    fn register(&mut self, registration: AgentRequest) -> Result<AgentId, RegisterError> {
        let mut outputs = self.input(Input::Register { request: 7, registration });
        if let [Output::Claim { agent, registration: claim }] = outputs[..] {
            assert_eq!((claim.class, claim.methods), (registration.class, registration.methods));
            outputs = self.input(Input::Claimed { agent, granted: true });
        }
        match outputs[..] {
            [Output::Registered { request: 7, agent }] => Ok(agent),
            [Output::Refused { request: 7, reason }] => Err(reason),
            _ => panic!("{outputs:?}"),
        }
    }

    fn agent(&mut self, class: MgmtClass) -> AgentId {
        self.register(asked(class, [])).unwrap()
    }

    fn send(&mut self, agent: AgentId, timeout_ms: u32, retries: u32, data: &[u8]) -> Vec<Output> {
        self.input(Input::Send { agent, address: PEER, timeout_ms, retries, data: data.to_vec() })
    }

    /// Sends what is to be accepted, and says what went out.
    fn sent(&mut self, agent: AgentId, timeout_ms: u32, retries: u32, data: &[u8]) -> Mad {
        only_transmit(&self.send(agent, timeout_ms, retries, data))
    }
}

fn only_transmit(outputs: &[Output]) -> Mad {
    match outputs {
        [Output::Transmit(sent)] => {
            assert_eq!(Address::from(sent), PEER);
            sent.mad
        }
        other => panic!("{other:?}"),
    }
}

fn refused(outputs: &[Output]) -> SendError {
    match outputs {
        [Output::SendRefused { reason, .. }] => *reason,
        // A program that waits for an answer gets its header back.
        [Output::SendRefused { reason, .. }, Output::Deliver { status, data, .. }] => {
            assert_eq!((*status, data.len()), (reason.errno().unsigned_abs(), MadHeader::SIZE));
            *reason
        }
        other => panic!("{other:?}"),
    }
}

/// The only thing delivered: to whom, with what status, and what.
fn delivered(outputs: &[Output]) -> Option<(AgentId, u32, &[u8])> {
    let mut found = outputs.iter().filter_map(|output| match output {
        Output::Deliver { agent, status, data, .. } => Some((*agent, *status, data.as_slice())),
        _ => None,
    });
    let first = found.next();
    assert_eq!(found.next(), None);
    first
}

fn answer_to(request: &Mad, method: Method) -> Mad {
    let mut answer = *request;
    Smp::method.set(&mut answer.0, method);
    answer
}

#[test]
fn valid_mad_agents_register_and_invalid_ones_fail() {
    let ping = asked(MgmtClass::OpenIbPing, [Method::Get]);
    let lid = asked(MgmtClass::SubnLid, [Method::Trap]);
    let code = MgmtClass::from_code;
    let cases = [
        (Ok(()), ping),
        (Ok(()), lid),
        (Ok(()), AgentRequest { class: code(0), ..lid }),
        (Ok(()), AgentRequest { class: code(0x4f), ..ping }),
        (Ok(()), AgentRequest { rmpp_version: 0, ..ping }),
        (Err(RegisterError::BadQueuePair), AgentRequest { qp: QpNum(2), ..ping }),
        (Err(RegisterError::BadQueuePair), AgentRequest { qp: QpNum::SMI, ..ping }),
        (Err(RegisterError::BadQueuePair), AgentRequest { qp: QpNum::GSI, ..lid }),
        (Err(RegisterError::BadClass), AgentRequest { class: code(0x50), ..ping }),
        (Err(RegisterError::BadClass), AgentRequest { class: code(0x82), ..ping }),
        (Err(RegisterError::BadVersion), AgentRequest { class_version: 8, ..ping }),
        (Err(RegisterError::NoOui), AgentRequest { oui: Oui(0), ..ping }),
        (Err(RegisterError::BadRmppVersion), AgentRequest { rmpp_version: 2, ..ping }),
        (Err(RegisterError::BadRmppVersion), AgentRequest { rmpp_version: 1, ..lid }),
    ];
    for (outcome, registration) in cases {
        assert_eq!(Bench::new().register(registration).map(|_| ()), outcome, "{registration:?}");
    }
}

#[test]
fn numbers_are_the_lowest_free_and_there_are_32() {
    let mut bench = Bench::new();
    for number in 0..32 {
        assert_eq!(bench.agent(MgmtClass::Perf), AgentId(number));
    }
    assert_eq!(bench.register(asked(MgmtClass::Perf, [])), Err(RegisterError::TooMany));
    assert_eq!(bench.input(Input::Unregister { agent: AgentId(5) }), [], "it had claimed nothing");
    assert_eq!(bench.agent(MgmtClass::Perf), AgentId(5));
}

#[test]
fn a_registration_refused_by_the_device_is_undone() {
    let mut bench = Bench::new();
    let registration = asked(MgmtClass::SubnLid, [Method::Trap]);
    let [Output::Claim { agent, .. }] = bench.input(Input::Register { request: 3, registration })[..] else {
        panic!("a claim");
    };
    let trap = mad(MgmtClass::SubnLid, Method::Trap, 5);
    assert_eq!(bench.input(from_peer(trap)), [], "not yet");
    assert_eq!(refused(&bench.send(agent, 0, 0, &trap.0)), SendError::NoSuchAgent);
    let answer = bench.input(Input::Claimed { agent, granted: false });
    assert_eq!(answer, [Output::Refused { request: 3, reason: RegisterError::Taken }]);
    assert_eq!(bench.input(Input::Claimed { agent, granted: true }), [], "it is decided");
    assert_eq!(bench.input(from_peer(trap)), []);
    assert_eq!(bench.layer.stats().requests_unmatched, 2);
    let again = bench.register(registration).unwrap();
    assert_eq!(bench.input(Input::Unregister { agent: again }), [Output::Release { agent: again }]);
}

#[test]
fn answers_go_to_the_registration_that_asked() {
    let mut bench = Bench::new();
    let agents = [bench.agent(MgmtClass::Perf), bench.agent(MgmtClass::Perf)];
    // The same lower half: only the upper one, which is the layer's, tells them apart.
    let request = mad(MgmtClass::Perf, Method::Get, 0xdead_beef_0000_0042);
    let sent = agents.map(|agent| bench.sent(agent, 100, 0, &request.0));
    for sent in &sent {
        assert_eq!(id_of(sent) & 0xffff_ffff, 0x42);
        assert!((1..0x1_0000).contains(&(id_of(sent) >> 32)));
    }
    assert_ne!(id_of(&sent[0]), id_of(&sent[1]));
    for at in [1, 0] {
        let answer = answer_to(&sent[at], Method::GetResp);
        let outputs = bench.input(from_peer(answer));
        assert_eq!(delivered(&outputs), Some((agents[at], 0, &answer.0[..])));
        assert_eq!(bench.input(from_peer(answer)), [], "the second answer is one too many");
    }
    let stranger = mad(MgmtClass::Perf, Method::GetResp, 0x77_0000_0042);
    assert_eq!(bench.input(from_peer(stranger)), []);
    let other_class = answer_to(&mad(MgmtClass::SubnAdm, Method::Get, id_of(&sent[0])), Method::GetResp);
    assert_eq!(bench.input(from_peer(other_class)), []);
    let stats = bench.layer.stats();
    assert_eq!((stats.delivered, stats.answers_unmatched, bench.layer.outstanding()), (2, 4, 0));
    assert_eq!(bench.layer.poll_timeout(), None);
}

#[test]
fn its_timer_says_what_it_then_does() {
    let ms = Time::from_millis;
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::Perf);
    let sent = bench.sent(agent, 100, 1, &mad(MgmtClass::Perf, Method::Get, 5).0);
    let timer = weft_machine::Timer { at: ms(100), reason: MadTimer::Answer };
    assert_eq!(bench.layer.next_timer(), Some(timer));
    let [(100, again)] = &bench.until(100)[..] else { panic!("it is sent again") };
    assert_eq!(only_transmit(std::slice::from_ref(again)), sent);
    let timer = weft_machine::Timer { at: ms(200), reason: MadTimer::Answer };
    assert_eq!(bench.layer.next_timer(), Some(timer));
    let [(200, Output::Deliver { status: TIMED_OUT, .. })] = &bench.until(200)[..] else {
        panic!("it is given back")
    };
    assert_eq!(bench.layer.next_timer(), None);

    // A message of several segments, whose first one is not acknowledged.
    let agent = bench.agent(MgmtClass::SubnAdm);
    let mut data = mad(MgmtClass::SubnAdm, Method::Get, 6).0.to_vec();
    data.resize(1000, 0);
    let mut message = first_mad(&data);
    message.set_rmpp(&RmppHeader { active: true, ..RmppHeader::default() });
    data[..MAD_SIZE].copy_from_slice(&message.0);
    let first = bench.sent(agent, 50, 1, &data);
    let reason = MadTimer::Transfer(TransferTimer::Acknowledgement);
    assert_eq!(bench.layer.next_timer(), Some(weft_machine::Timer { at: ms(250), reason }));
    let [(250, again)] = &bench.until(250)[..] else { panic!("the segment is sent again") };
    assert_eq!(only_transmit(std::slice::from_ref(again)), first);
}

#[test]
fn directed_answers_are_matched_too() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::SubnDirected);
    let sent = bench.sent(agent, 100, 3, &mad(MgmtClass::SubnDirected, Method::Get, 1).0);
    let mut answer = answer_to(&sent, Method::GetResp);
    DirectedSmp::direction.set(&mut answer.0, true);
    let from = AddressedMad::smp(Lid::PERMISSIVE, answer);
    assert_eq!(delivered(&bench.input(Input::Receive(from))), Some((agent, 0, &answer.0[..])));
}

#[test]
fn nobody_answers() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::Perf);
    let sent = bench.sent(agent, 100, 2, &mad(MgmtClass::Perf, Method::Get, 5).0);
    let happened = bench.until(1000);
    let times: Vec<u64> = happened.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [100, 200, 300]);
    for (_, output) in &happened[..2] {
        assert_eq!(only_transmit(std::slice::from_ref(output)), sent, "the same again");
    }
    let timed_out = Output::Deliver { agent, status: TIMED_OUT, address: PEER, data: sent.0[..24].to_vec() };
    assert_eq!(happened[2].1, timed_out);
    assert_eq!(bench.input(from_peer(answer_to(&sent, Method::GetResp))), [], "too late");
    let stats = bench.layer.stats();
    assert_eq!((stats.retries, stats.timeouts, stats.answers_unmatched, stats.delivered), (2, 1, 1, 0));
}

#[test]
fn an_answer_to_a_retry_is_an_answer() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::Perf);
    let sent = bench.sent(agent, 100, 2, &mad(MgmtClass::Perf, Method::Get, 5).0);
    assert_eq!(bench.until(150).len(), 1);
    assert!(delivered(&bench.input(from_peer(answer_to(&sent, Method::GetResp)))).is_some());
    assert_eq!(bench.until(1000), []);
}

#[test]
fn a_send_without_timeout_expects_nothing() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::Perf);
    let request = mad(MgmtClass::Perf, Method::Get, 5);
    let sent = bench.sent(agent, 0, 3, &request.0);
    assert_eq!((bench.layer.outstanding(), bench.layer.poll_timeout()), (0, None));
    assert_eq!(bench.input(from_peer(answer_to(&sent, Method::GetResp))), []);
    bench.sent(agent, 0, 3, &request.0);
}

#[test]
fn an_answer_that_is_sent_keeps_its_transaction() {
    let mut bench = Bench::new();
    let agent = bench.register(asked(MgmtClass::OpenIbPing, [Method::Get])).unwrap();
    let request = mad(MgmtClass::OpenIbPing, Method::Get, 0xabcd_0123_0000_0009);
    let outputs = bench.input(from_peer(request));
    assert_eq!(delivered(&outputs), Some((agent, 0, &request.0[..])), "as it came");
    let answer = answer_to(&request, Method::GetResp);
    assert_eq!(bench.sent(agent, 0, 0, &answer.0), answer);
    let heard = mad(MgmtClass::OpenIbPing, Method::TrapRepress, 0xabcd_0123_0000_0009);
    assert_eq!(bench.sent(agent, 0, 0, &heard.0), heard);
}

#[test]
fn requests_go_where_class_version_method_and_vendor_fit() {
    let mut bench = Bench::new();
    let ping = bench.register(asked(MgmtClass::OpenIbPing, [Method::Get])).unwrap();
    let traps = bench.register(asked(MgmtClass::SubnLid, [Method::Trap])).unwrap();
    let whose =
        |bench: &mut Bench, mad: Mad| delivered(&bench.input(from_peer(mad))).map(|(agent, ..)| agent);
    let request = mad(MgmtClass::OpenIbPing, Method::Get, 1);
    assert_eq!(whose(&mut bench, request), Some(ping));
    assert_eq!(whose(&mut bench, mad(MgmtClass::SubnLid, Method::Trap, 1)), Some(traps));
    let mut others = [request; 4];
    others[0].0[1] = 0x33;
    others[1].0[2] = 2;
    others[2].0[3] = Method::Set.code();
    others[3].0[39] ^= 1;
    for other in others {
        assert_eq!(whose(&mut bench, other), None, "{other:?}");
    }
    assert_eq!(bench.layer.stats().requests_unmatched, 4);
    let own = answer_to(&request, Method::TrapRepress);
    assert_eq!(whose(&mut bench, own), None, "TrapRepress answers, though its response bit is clear");
    assert_eq!(bench.layer.stats().answers_unmatched, 1);
}

#[test]
fn a_trap_that_was_heard() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::SubnLid);
    let sent = bench.sent(agent, 100, 1, &mad(MgmtClass::SubnLid, Method::Trap, 4).0);
    let heard = answer_to(&sent, Method::TrapRepress);
    assert_eq!(delivered(&bench.input(from_peer(heard))), Some((agent, 0, &heard.0[..])));
    assert_eq!(bench.until(1000), []);
}

#[test]
fn invalid_sends_are_refused() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::Perf);
    let request = mad(MgmtClass::Perf, Method::Get, 5);
    assert_eq!(refused(&bench.send(AgentId(9), 0, 0, &request.0)), SendError::NoSuchAgent);
    assert_eq!(refused(&bench.send(agent, 0, 0, &request.0[..35])), SendError::BadLength);
    assert_eq!(refused(&bench.send(agent, 0, 0, &[request.0, request.0].concat())), SendError::BadLength);
    let mut short = Mad::default();
    short.0[..36].copy_from_slice(&request.0[..36]);
    let sent = bench.sent(agent, 100, 0, &request.0[..36]);
    assert_eq!(sent.0[24..], short.0[24..], "filled up with zeros");
    assert_eq!(refused(&bench.send(agent, 100, 0, &request.0)), SendError::Duplicate);
    assert_eq!(refused(&bench.send(agent, 0, 0, &request.0)), SendError::Duplicate);
    bench.sent(agent, 100, 0, &mad(MgmtClass::Perf, Method::Get, 6).0);
    assert_eq!((bench.layer.stats().sends, bench.layer.stats().sends_refused), (2, 5));
}

#[test]
fn no_more_sends_than_allowed() {
    let mut bench = Bench::new();
    bench.layer = MadLayer::new(Limits { sends: 3, ..Limits::default() });
    let agent = bench.agent(MgmtClass::Perf);
    let request = |id| mad(MgmtClass::Perf, Method::Get, id);
    for id in 0..3 {
        bench.sent(agent, 100, 0, &request(id).0);
    }
    assert_eq!(refused(&bench.send(agent, 100, 0, &request(3).0)), SendError::TooMany);
    bench.sent(agent, 0, 0, &request(4).0);
    bench.until(100);
    bench.sent(agent, 100, 0, &request(3).0);
}

#[test]
fn an_unregistered_agent_receives_nothing_more() {
    let mut bench = Bench::new();
    let (agent, other) = (bench.agent(MgmtClass::Perf), bench.agent(MgmtClass::SubnAdm));
    let sent = bench.sent(agent, 100, 3, &mad(MgmtClass::Perf, Method::Get, 5).0);
    let kept = bench.sent(other, 100, 0, &mad(MgmtClass::SubnAdm, Method::Get, 5).0);
    assert_eq!(bench.input(Input::Unregister { agent }), []);
    assert_eq!((bench.layer.outstanding(), bench.layer.stats().cancelled), (1, 1));
    let successor = bench.agent(MgmtClass::Perf);
    assert_eq!(successor, agent, "the number is free again");
    assert_eq!(bench.input(from_peer(answer_to(&sent, Method::GetResp))), [], "it did not ask");
    assert_eq!(delivered(&bench.input(from_peer(answer_to(&kept, Method::GetResp)))).unwrap().0, other);
    assert_eq!(bench.until(1000), []);
    bench.input(Input::Unregister { agent: AgentId(20) });
    assert_eq!(bench.layer.stats().unregistrations_unmatched, 1);
}

/// Whoever asked for `rmpp_version` 0 does RMPP itself.
#[test]
fn segments_are_mads_to_who_wants_them_so() {
    let mut bench = Bench::new();
    let raw = AgentRequest { rmpp_version: 0, ..asked(MgmtClass::SubnAdm, []) };
    let agent = bench.register(raw).unwrap();
    let sent = bench.sent(agent, 100, 0, &mad(MgmtClass::SubnAdm, Method::GetTable, 5).0);
    for segment in 1..4 {
        let mut data = answer_to(&sent, Method::GetTableResp);
        let header =
            RmppHeader { version: 1, kind: RmppType::Data, segment, active: true, ..Default::default() };
        data.set_rmpp(&header);
        assert_eq!(delivered(&bench.input(from_peer(data))), Some((agent, 0, &data.0[..])), "{segment}");
        let mut ack = mad(MgmtClass::SubnAdm, Method::GetTable, 5);
        ack.set_rmpp(&RmppHeader { kind: RmppType::Ack, ..header });
        bench.sent(agent, 0, 0, &ack.0);
    }
    assert_eq!(bench.until(1000), [], "the first segment was the answer");
}

/// OpenSM answers so: active, and everything else of the RMPP header left empty, as the kernel takes it.
#[test]
fn an_active_message_needs_no_other_rmpp_header() {
    let mut bench = Bench::new();
    let agent = bench.agent(MgmtClass::SubnAdm);
    let mut first = mad(MgmtClass::SubnAdm, Method::GetTableResp, 0x0009_0001_0000_0005);
    first.set_rmpp(&RmppHeader { active: true, ..Default::default() });
    let mut data = first.0.to_vec();
    data.resize(952, 7);
    let outputs = bench.send(agent, 0, 3, &data);
    let Some(Output::Transmit(segment)) = outputs.first() else { panic!("{outputs:?}") };
    let header = segment.mad.rmpp();
    assert_eq!((header.version, header.kind, header.segment), (1, RmppType::Data, 1));
    assert_eq!(id_of(&segment.mad), 0x0009_0001_0000_0005);
}
