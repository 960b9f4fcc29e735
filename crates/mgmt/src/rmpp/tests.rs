//! Tables of the two state machines: every distinguishable packet, in every distinguishable state.

use weft_machine::{Time, Timer};
use weft_wire::{
    AddressedMad, Lid, Mad, MadHeader, Method, MgmtClass, RMPP_END, RmppHeader, RmppType, ServiceLevel,
    rmpp_status as status,
};

use super::receiver::{Receiver, Step};
use super::sender::{Sender, State};
use super::*;
use crate::TransferTimer;

const SEGMENTS: u32 = 4;

fn message(class: MgmtClass, method: Method, data: usize) -> Vec<u8> {
    let header =
        MadHeader { base_version: 1, mgmt_class: class, class_version: 2, method, ..Default::default() };
    let mut bytes: Vec<u8> = (0..class.data_offset() + data).map(|at| (at % 251) as u8).collect();
    bytes[..MadHeader::SIZE].copy_from_slice(&header.encode());
    bytes
}

fn sender(segments: u32) -> Sender {
    let bytes = message(MgmtClass::SubnAdm, Method::GetTableResp, segments as usize * 200 - 60);
    Sender::new(Time::ZERO, bytes, 1, &Timing::default(), 16)
}

fn ack_header(segment: u32, length: u32) -> RmppHeader {
    RmppHeader { version: 1, kind: RmppType::Ack, active: true, segment, length, ..Default::default() }
}

fn drain(sender: &mut Sender) -> Vec<Mad> {
    std::iter::from_fn(|| sender.poll(Time::ZERO)).map(|(mad, _)| mad).collect()
}

/// The numbers of the segments among the packets.
fn numbers(packets: &[Mad]) -> Vec<u32> {
    let data = packets.iter().map(Mad::rmpp).filter(|header| header.kind == RmppType::Data);
    data.map(|header| header.segment).collect()
}

/// A sender of four segments that has sent up to `window` and heard of `acked`.
fn sender_at(acked: u32, window: u32) -> Sender {
    let mut sender = sender(SEGMENTS);
    assert_eq!(numbers(&drain(&mut sender)), [1]);
    if window > 1 {
        sender.handle(Time::ZERO, &ack_header(1, window));
        drain(&mut sender);
        sender.handle(Time::ZERO, &ack_header(acked, window));
    }
    sender
}

#[test]
fn every_ack_in_every_state_of_a_sender() {
    for (acked, window) in [(0, 1), (1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (1, 9), (2, 9), (3, 9)] {
        for segment in 0..12 {
            for length in 0..12 {
                let mut sender = sender_at(acked, window);
                let sent = window.min(SEGMENTS);
                let said = sender.handle(Time::from_millis(1), &ack_header(segment, length));
                let packets = drain(&mut sender);
                let case = format!("at {acked}/{window}: ack {segment}, {length}");
                let broken = |status| (State::Failed(Failure::Protocol(status)), true, vec![]);
                let wanted = if length < segment {
                    broken(status::WINDOW_TOO_SMALL)
                } else if segment > sent {
                    broken(status::SEGMENT_TOO_BIG)
                } else if segment < acked || length < sent {
                    (State::Sending, false, vec![])
                } else if segment == SEGMENTS {
                    (State::Done, true, vec![])
                } else {
                    let news = segment > acked || length > window;
                    (State::Sending, news, (sent + 1..=length.min(SEGMENTS)).collect())
                };
                assert_eq!((sender.state(), said, numbers(&packets)), wanted, "{case}");
                if let State::Failed(Failure::Protocol(status)) = sender.state() {
                    let [told] = packets.as_slice() else { panic!("{case}: {packets:?}") };
                    let RmppHeader { kind, status: said, active, version, .. } = told.rmpp();
                    assert_eq!((kind, said, active, version), (RmppType::Abort, status, true, 1));
                    assert_eq!(told.method(), Method::GetTableResp, "{case}");
                }
            }
        }
    }
}

#[test]
fn every_other_packet_ends_a_sending() {
    for kind in 0..8 {
        for code in 0..=255 {
            let kind = RmppType::from_code(kind);
            let header = RmppHeader { kind, status: code, ..ack_header(1, 2) };
            let mut sender = sender_at(0, 1);
            sender.handle(Time::ZERO, &header);
            let wanted = match kind {
                RmppType::Ack if code == 0 => State::Sending,
                RmppType::Stop if code == 1 => State::Failed(Failure::Stopped(1)),
                RmppType::Abort if (118..=127).contains(&code) => State::Failed(Failure::Aborted(code)),
                RmppType::Ack | RmppType::Stop | RmppType::Abort => {
                    State::Failed(Failure::Protocol(status::BAD_STATUS))
                }
                _ => State::Failed(Failure::Protocol(status::BAD_TYPE)),
            };
            assert_eq!(sender.state(), wanted, "{kind} {code}");
            let told = matches!(wanted, State::Failed(Failure::Protocol(_)));
            assert_eq!(drain(&mut sender).len(), usize::from(told || wanted == State::Sending));
            assert!(!told || sender.poll(Time::ZERO).is_none(), "it is said once");
        }
    }
    let mut sender = sender_at(0, 1);
    sender.handle(Time::ZERO, &RmppHeader { version: 2, ..ack_header(1, 2) });
    assert_eq!(sender.state(), State::Failed(Failure::Protocol(status::BAD_VERSION)));
}

#[test]
fn an_rmpp_sender_resumes_after_the_ack_then_gives_up() {
    let mut sender = sender_at(2, 4);
    for _ in 0..Timing::default().retries {
        let due = sender.due();
        sender.handle_timeout(due - Time::from_nanos(1));
        assert_eq!(drain(&mut sender), [], "too early");
        sender.handle_timeout(due);
        let again: Vec<_> = std::iter::from_fn(|| sender.poll(due)).collect();
        assert!(again.iter().all(|(_, again)| *again));
        assert_eq!(again.iter().map(|(mad, _)| mad.rmpp().segment).collect::<Vec<_>>(), [3, 4]);
    }
    sender.handle_timeout(sender.due());
    assert_eq!(sender.state(), State::Failed(Failure::TimedOut));
    assert_eq!(drain(&mut sender)[0].rmpp().status, status::RETRIES);
}

/// What the other end grants is not sent all at once: whoever drives this gathers it in memory.
#[test]
fn a_window_without_end_is_used_bit_by_bit() {
    let mut outbox = Outbox::new(OutboxLimits::default());
    let bytes = message(MgmtClass::SubnAdm, Method::GetTableResp, 200_000);
    outbox.offer(Time::ZERO, &addressed(Mad::default()), bytes, &Timing::default()).unwrap();
    let drain = |outbox: &mut Outbox, now| std::iter::from_fn(|| outbox.poll_transmit(now)).count();
    assert_eq!(drain(&mut outbox, Time::ZERO), 1);
    let mut ack = segments(0)[0];
    ack.0[3] = Method::GetTable.code();
    ack.set_rmpp(&ack_header(1, u32::MAX));
    assert!(outbox.handle(Time::ZERO, &addressed(ack)));
    let mut bursts = vec![drain(&mut outbox, Time::ZERO)];
    for ms in 1..4 {
        let now = Time::from_millis(ms);
        assert_eq!(outbox.next_timer(), Some(Timer { at: now, reason: TransferTimer::Pause }));
        outbox.handle_timeout(now);
        bursts.push(drain(&mut outbox, now));
    }
    assert_eq!(bursts, [256, 256, 256, 231]);
    let timer = outbox.next_timer().unwrap();
    assert!(timer.at > Time::from_secs(1), "now the acknowledgement is waited for");
    assert_eq!(timer.reason, TransferTimer::Acknowledgement);
    assert_eq!((outbox.stats().segments, outbox.stats().resent), (1000, 0));
    ack.set_rmpp(&ack_header(1000, u32::MAX));
    outbox.handle(Time::from_secs(1), &addressed(ack));
    assert_eq!(outbox.poll_finished().unwrap().failure, None);
}

#[test]
fn progress_gives_new_tries_but_not_new_time() {
    let timing = Timing { retries: 1, total: Time::from_secs(7), ..Timing::default() };
    let bytes = message(MgmtClass::SubnAdm, Method::GetTableResp, 2000);
    let mut sender = Sender::new(Time::ZERO, bytes, 1, &timing, 16);
    let mut now = Time::ZERO;
    for segment in 1..4 {
        while sender.poll(now).is_some() {}
        now = sender.due();
        sender.handle_timeout(now);
        while sender.poll(now).is_some() {}
        let unknown = RmppHeader { resp_time: RESP_TIME_UNKNOWN, ..ack_header(segment, segment + 1) };
        assert!(sender.handle(now, &unknown));
        assert_eq!(sender.state(), State::Sending);
    }
    while sender.poll(now).is_some() {}
    assert_eq!(sender.due(), Time::from_secs(7), "not a whole time-out more");
    sender.handle_timeout(Time::from_secs(7));
    assert_eq!(sender.state(), State::Failed(Failure::TimedOut));
    assert_eq!(sender.poll(now).map(|(mad, _)| mad.rmpp().status), Some(status::TOTAL_TIME));
}

#[test]
fn a_receiver_that_says_how_long_it_takes_is_believed() {
    let mut sender = sender(3);
    sender.poll(Time::ZERO);
    assert_eq!(sender.due(), Time::from_secs(2));
    sender.handle(Time::ZERO, &RmppHeader { resp_time: 18, ..ack_header(1, 2) });
    assert_eq!(sender.due(), Time::from_secs(1) + Time::from_nanos(4096 << 18));
}

#[test]
fn lengths_are_those_of_the_architecture() {
    let lengths = |class, data| {
        let bytes = message(class, Method::GetTableResp, data);
        let mut sender = Sender::new(Time::ZERO, bytes, 1000, &Timing::default(), 16);
        drain(&mut sender)
            .iter()
            .map(|mad| (mad.rmpp().length, mad.rmpp().first, mad.rmpp().last))
            .collect::<Vec<_>>()
    };
    let adm = MgmtClass::SubnAdm;
    assert_eq!(lengths(adm, 0), [(20, true, true)], "a table without records");
    assert_eq!(lengths(adm, 64), [(84, true, true)]);
    assert_eq!(lengths(adm, 200), [(220, true, true)]);
    assert_eq!(lengths(adm, 201), [(241, true, false), (21, false, true)]);
    assert_eq!(lengths(adm, 500), [(560, true, false), (0, false, false), (120, false, true)]);
    assert_eq!(lengths(MgmtClass::OpenIbPing, 217), [(225, true, false), (5, false, true)]);
    assert_eq!(lengths(MgmtClass::DevMgmt, 193), [(249, true, false), (29, false, true)]);
}

fn segments(data: usize) -> Vec<Mad> {
    let bytes = message(MgmtClass::SubnAdm, Method::GetTableResp, data);
    drain(&mut Sender::new(Time::ZERO, bytes, u32::MAX, &Timing::default(), 16))
}

/// Every order of arrival of six packets that are any of four segments: after it the message can be completed, and
/// comes out whole, once.
#[test]
fn every_order_of_arrival() {
    let whole = message(MgmtClass::SubnAdm, Method::GetTableResp, 700);
    let all = segments(700);
    for order in 0..4usize.pow(6) {
        for window in [1, 2, 64] {
            let mut receiver = Receiver::new(Time::ZERO, 1);
            let mut complete = 0;
            let arrivals = (0..6).map(|at| order / 4usize.pow(at) % 4);
            let rest = [0, 1, 2, 3, 0, 1, 2, 3];
            for at in arrivals.chain(rest) {
                let before = receiver.position();
                let step = receiver.take(&all[at], window);
                let after = receiver.position();
                let number = at as u32 + 1;
                match step {
                    Step::Complete => complete += 1,
                    Step::Acknowledge => {
                        assert!(number <= before.0 || after.0 == before.1, "{order}: dup or window end");
                    }
                    Step::Useless => assert!(number > before.0),
                    Step::Kept => assert!(number > before.0 && after.0 < after.1),
                    Step::Wrong(status) => panic!("{order}: {status}"),
                }
                assert!(after.0 >= before.0 && after.1 >= before.1, "nothing is taken back");
                assert!(receiver.bytes() <= 256 * 4 + 700);
            }
            assert_eq!(complete, 1, "order {order}, window {window}");
            assert_eq!(receiver.position().0, SEGMENTS);
            assert_eq!(receiver.into_message()[RMPP_END..], whole[RMPP_END..]);
        }
    }
}

#[test]
fn segments_that_cannot_belong_together_are_refused() {
    let patched = |at: usize, change: fn(&mut RmppHeader)| {
        let mut mad = segments(700)[at];
        let mut header = mad.rmpp();
        change(&mut header);
        mad.set_rmpp(&header);
        mad
    };
    let run = |mads: &[Mad]| {
        let mut receiver = Receiver::new(Time::ZERO, 64);
        mads.iter().map(|mad| receiver.take(mad, 64)).last().unwrap()
    };
    let all = segments(700);
    let bad_length = Step::Wrong(status::BAD_LENGTH);
    for length in [0, 19, 221, u32::MAX] {
        let mut last = all[3];
        last.set_rmpp(&RmppHeader { length, ..last.rmpp() });
        assert_eq!(run(&[all[0], all[1], all[2], last]), bad_length, "{length}");
    }
    let wrong_sum = patched(0, |header| header.length += 1);
    assert_eq!(run(&[wrong_sum, all[1], all[2], all[3]]), bad_length);
    for length in [0, 720, 780] {
        let mut first = all[0];
        first.set_rmpp(&RmppHeader { length, ..first.rmpp() });
        assert_eq!(run(&[first, all[1], all[2], all[3]]), Step::Complete, "{length} is one of the ways");
    }
    let behind_the_end = patched(3, |header| header.segment = 6);
    assert_eq!(run(&[all[0], all[3], behind_the_end]), Step::Wrong(status::BAD_SEGMENT));
    let early_end = patched(3, |header| header.segment = 2);
    assert_eq!(run(&[all[0], all[2], early_end]), Step::Wrong(status::BAD_SEGMENT));
}

fn addressed(mad: Mad) -> AddressedMad {
    AddressedMad::gmp(Lid(5), ServiceLevel(1), mad)
}

/// Every Data header that differs in what a receiver looks at, for a transfer that is not known, under way, complete.
#[test]
fn every_segment_in_every_state_of_an_inbox() {
    let all = segments(700);
    for known in [0, 2, 4] {
        for number in [0, 1, 2, 3, 5, u32::MAX] {
            for flags in 0..4 {
                for (version, code) in [(1, 0), (2, 0), (1, 1)] {
                    let mut inbox = Inbox::new(InboxLimits::default());
                    for mad in &all[..known] {
                        inbox.handle(Time::ZERO, &addressed(*mad));
                    }
                    while inbox.poll_transmit().is_some() {}
                    let (first, last) = (flags & 1 != 0, flags & 2 != 0);
                    let mut mad = all[(number as usize).clamp(1, 4) - 1];
                    mad.set_rmpp(&RmppHeader {
                        version,
                        status: code,
                        segment: number,
                        first,
                        last,
                        ..mad.rmpp()
                    });
                    let received = inbox.handle(Time::ZERO, &addressed(mad));
                    let answer = inbox.poll_transmit().map(|answer| {
                        assert_eq!(answer.mad.method(), Method::GetTable, "the response bit is turned over");
                        let header = answer.mad.rmpp();
                        (header.kind, header.status, header.segment)
                    });
                    assert_eq!(inbox.poll_transmit(), None);
                    let abort = |status| Some((RmppType::Abort, status, 0));
                    let wanted = if version != 1 {
                        abort(status::BAD_VERSION)
                    } else if code != 0 {
                        abort(status::BAD_STATUS)
                    } else if number == 0 || (number == 1) != first {
                        abort(status::BAD_SEGMENT)
                    } else {
                        match (known, number) {
                            (0, 1) if last => abort(status::BAD_LENGTH),
                            (0, 1) => Some((RmppType::Ack, 0, 1)),
                            (2, 1 | 2) => Some((RmppType::Ack, 0, 2)),
                            (2, 3) if last => abort(status::BAD_LENGTH),
                            (4, _) => Some((RmppType::Ack, 0, 4)),
                            _ => None,
                        }
                    };
                    let case = format!("{known} known: {number} {first} {last} v{version} s{code}");
                    assert_eq!(answer, wanted, "{case}");
                    assert_eq!(received, None, "{case}");
                    let goes_on = known == 2 || (known == 0 && number == 1);
                    let aborted = matches!(wanted, Some((RmppType::Abort, ..)));
                    assert_eq!(inbox.receiving(), usize::from(goes_on && !aborted), "{case}");
                }
            }
        }
    }
}

#[test]
fn an_inbox_keeps_to_its_limits_and_says_so() {
    let limits =
        InboxLimits { transfers: 2, message_bytes: 600, bytes: 900, lingering: 1, ..Default::default() };
    let mut inbox = Inbox::new(limits);
    let from = |lid, mad| AddressedMad { lid: Lid(lid), ..addressed(mad) };
    let all = segments(700);
    inbox.handle(Time::ZERO, &from(1, all[0]));
    assert_eq!(
        inbox.poll_transmit().unwrap().mad.rmpp().kind,
        RmppType::Stop,
        "it is announced to be too long"
    );
    let mut unannounced = all.clone();
    unannounced[0].set_rmpp(&RmppHeader { length: 0, ..all[0].rmpp() });
    let mut said = Vec::new();
    for mad in &unannounced {
        inbox.handle(Time::ZERO, &from(1, *mad));
        said.extend(std::iter::from_fn(|| inbox.poll_transmit()).map(|mad| mad.mad.rmpp().kind));
    }
    assert_eq!(said, [RmppType::Ack, RmppType::Stop], "it turns out to be too long");
    for lid in 1..4 {
        inbox.handle(Time::ZERO, &from(lid, segments(500)[0]));
        let kind = inbox.poll_transmit().unwrap().mad.rmpp().kind;
        assert_eq!(kind, if lid < 3 { RmppType::Ack } else { RmppType::Stop }, "{lid}");
    }
    assert_eq!((inbox.receiving(), inbox.stats().refused), (2, 3));
    let Timer { at: due, reason } = inbox.next_timer().unwrap();
    assert_eq!((due, reason), (InboxLimits::default().total, TransferTimer::Segment));
    inbox.handle_timeout(due);
    let told: Vec<_> =
        std::iter::from_fn(|| inbox.poll_transmit()).map(|mad| mad.mad.rmpp().status).collect();
    assert_eq!(told, [status::TOTAL_TIME, status::TOTAL_TIME]);
    assert_eq!((inbox.receiving(), inbox.bytes(), inbox.stats().timed_out), (0, 0, 2));
    for lid in 1..4 {
        assert!(inbox.handle(due, &from(lid, segments(10)[0])).is_some());
    }
    let linger = Timer { at: due + limits.linger, reason: TransferTimer::Linger };
    assert_eq!(inbox.next_timer(), Some(linger), "only one lingers");
    inbox.handle_timeout(due + limits.linger);
    assert_eq!(inbox.next_timer(), None);
}

#[test]
fn an_outbox_says_when_a_transfer_has_taken_too_long() {
    let mut outbox = Outbox::new(OutboxLimits::default());
    let timing = Timing { ack_timeout: Time::from_secs(2), total: Time::from_secs(3), ..Timing::default() };
    let bytes = message(MgmtClass::SubnAdm, Method::GetTableResp, 2000);
    outbox.offer(Time::ZERO, &addressed(Mad::default()), bytes, &timing).unwrap();
    assert!(outbox.poll_transmit(Time::ZERO).is_some());
    let first = Timer { at: Time::from_secs(2), reason: TransferTimer::Acknowledgement };
    assert_eq!(outbox.next_timer(), Some(first));
    outbox.handle_timeout(first.at);
    assert!(outbox.poll_transmit(first.at).is_some(), "sent again");
    let end = Timer { at: Time::from_secs(3), reason: TransferTimer::TotalTime };
    assert_eq!(outbox.next_timer(), Some(end));
    outbox.handle_timeout(end.at);
    assert_eq!(outbox.poll_finished().unwrap().failure, Some(Failure::TimedOut));
    assert_eq!(outbox.next_timer(), None);
}

#[test]
fn an_outbox_keeps_to_its_limits() {
    let limits = OutboxLimits { transfers: 2, message_bytes: 600, bytes: 900, ..Default::default() };
    let mut outbox = Outbox::new(limits);
    let to = |lid| AddressedMad { lid: Lid(lid), ..addressed(Mad::default()) };
    let of = |data| message(MgmtClass::SubnAdm, Method::GetTableResp, data);
    let mut offer = |lid, bytes| outbox.offer(Time::ZERO, &to(lid), bytes, &Timing::default()).map(|_| ());
    assert_eq!(offer(1, of(600)), Err(OfferError::TooLong));
    assert_eq!(offer(1, of(0)[..55].to_vec()), Err(OfferError::NotAMessage));
    assert_eq!(offer(1, message(MgmtClass::Perf, Method::Get, 300)), Err(OfferError::NotAMessage));
    assert_eq!(offer(1, of(400)), Ok(()));
    assert_eq!(offer(1, of(10)), Err(OfferError::Duplicate));
    assert_eq!(offer(2, of(400)), Err(OfferError::Full), "by bytes");
    assert_eq!(offer(2, of(40)), Ok(()));
    assert_eq!(offer(3, of(40)), Err(OfferError::Full), "by number");
    assert_eq!((outbox.len(), outbox.bytes(), outbox.stats().refused), (2, 456 + 96, 6));
    let id = TransferId::of_message(&AddressedMad { mad: segments(10)[0], ..to(1) });
    assert!(outbox.cancel(&id) && !outbox.cancel(&id));
    assert_eq!((outbox.len(), outbox.bytes()), (1, 96));
    assert_eq!(std::iter::from_fn(|| outbox.poll_transmit(Time::ZERO)).count(), 1);
}

#[test]
fn a_granted_window_is_used_at_once() {
    let request = message(MgmtClass::SubnAdm, Method::GetMulti, 10);
    let mut mad = Mad::default();
    mad.0[..66].copy_from_slice(&request);
    let (mut inbox, mut outbox) = (Inbox::new(InboxLimits::default()), Outbox::new(OutboxLimits::default()));
    inbox.grant(Time::ZERO, &addressed(mad), Method::GetMultiResp);
    let grant = inbox.poll_transmit().unwrap();
    assert_eq!(
        (grant.mad.method(), grant.mad.rmpp().segment, grant.mad.rmpp().length),
        (Method::GetMulti, 0, 64)
    );
    assert!(!outbox.handle(Time::ZERO, &grant), "the message is still to come");
    let answer = message(MgmtClass::SubnAdm, Method::GetMultiResp, 20_000);
    outbox.offer(Time::ZERO, &addressed(mad), answer.clone(), &Timing::default()).unwrap();
    let sent: Vec<_> = std::iter::from_fn(|| outbox.poll_transmit(Time::ZERO)).collect();
    assert_eq!(sent.len(), 64, "not one, and wait");
    for segment in &sent {
        assert_eq!(inbox.handle(Time::ZERO, segment), None);
    }
    assert_eq!(inbox.poll_transmit().unwrap().mad.rmpp().segment, 64);
    assert_eq!(inbox.receiving(), 1);
}

#[test]
fn two_ends_do_not_abort_each_other_for_ever() {
    let (mut a, mut b) =
        (Endpoint::new(Default::default(), Default::default()), Inbox::new(Default::default()));
    let mut mad = segments(700)[0];
    mad.set_rmpp(&RmppHeader { kind: RmppType::from_code(9), ..mad.rmpp() });
    b.handle(Time::ZERO, &addressed(mad));
    let abort = b.poll_transmit().unwrap();
    assert_eq!(abort.mad.rmpp().status, status::BAD_TYPE);
    a.handle(Time::ZERO, &abort);
    assert_eq!(a.poll_transmit(Time::ZERO), None);
    let mut worse = abort.mad;
    worse.set_rmpp(&RmppHeader { version: 7, ..worse.rmpp() });
    a.handle(Time::ZERO, &addressed(worse));
    assert_eq!(a.poll_transmit(Time::ZERO), None);
}
