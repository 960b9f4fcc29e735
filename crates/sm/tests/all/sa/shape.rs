//! Shapes of answers, requests without an answer, and refusals.

use super::client::*;
use super::fake::{Fake, World};
use weft_machine::Time;
use weft_sm::{Activity, GuidToLid, Input, KeyOptions, Options};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::*;

#[test]
fn class_port_info_promises_what_is_kept() {
    let mut world = tree();
    let (head, bytes) = exchange(&mut world, &Asked::new(Method::Get, AttributeId::ClassPortInfo));
    assert_eq!((head.method(), head.status()), (Method::GetResp, status::OK));
    let info = ClassPortInfo::decode(bytes.first_chunk().unwrap());
    assert_eq!((info.base_version, info.class_version), (1, 2));
    assert_eq!(info.capability_mask, sa_capability::IS_PORT_INFO_CAP_MASK_MATCH_SUPPORTED);
    assert_eq!(info.redirect_lid, Lid(0), "nobody is sent elsewhere");
}

#[test]
fn unserved_sa_attributes_and_methods_are_refused() {
    let mut world = tree();
    let (bad_attribute, bad_method) = (status::BAD_METHOD_ATTRIBUTE, status::BAD_METHOD);
    for (method, attribute, answer, want) in [
        (Method::GetTable, sa_attribute::MC_MEMBER_RECORD, Method::GetTableResp, bad_attribute),
        (Method::Set, sa_attribute::MC_MEMBER_RECORD, Method::GetResp, bad_attribute),
        (Method::Delete, sa_attribute::MC_MEMBER_RECORD, Method::DeleteResp, bad_attribute),
        (Method::GetMulti, sa_attribute::MULTI_PATH_RECORD, Method::GetMultiResp, bad_attribute),
        (Method::GetTraceTable, AttributeId::from_code(0x39), Method::GetTableResp, bad_attribute),
        (Method::Set, sa_attribute::NODE_RECORD, Method::GetResp, bad_attribute),
        (Method::Delete, sa_attribute::PATH_RECORD, Method::DeleteResp, bad_attribute),
        (Method::GetTable, AttributeId::ClassPortInfo, Method::GetTableResp, bad_attribute),
        (Method::Get, AttributeId::from_code(0xffff), Method::GetResp, bad_attribute),
        (Method::from_code(0x44), sa_attribute::NODE_RECORD, Method::from_code(0xc4), bad_method),
    ] {
        let (head, _) = exchange(&mut world, &Asked::new(method, attribute));
        assert_eq!((head.method(), head.status()), (answer, want), "{method} {attribute}");
        assert!(!head.is_rmpp_active());
    }
}

/// A request that comes by RMPP is acknowledged, and then answered like any other.
#[test]
fn a_request_in_segments() {
    let mut world = tree();
    let mut request = Asked::new(Method::GetMulti, sa_attribute::MULTI_PATH_RECORD).mad();
    let header = RmppHeader {
        version: 1,
        kind: RmppType::Data,
        resp_time: 31,
        active: true,
        first: true,
        last: true,
        segment: 1,
        length: 220,
        ..RmppHeader::default()
    };
    request.mad.set_rmpp(&header);
    world.command(Input::Receive(request));
    let sent: Vec<Mad> = world.administration.drain(..).map(|mad| mad.mad).collect();
    let [ack, answer] = sent[..] else { panic!("{sent:?}") };
    assert_eq!((ack.rmpp().kind, ack.rmpp().segment, ack.is_rmpp_active()), (RmppType::Ack, 1, true));
    assert_eq!((answer.method(), answer.status()), (Method::GetMultiResp, status::BAD_METHOD_ATTRIBUTE));
    assert!(!answer.is_rmpp_active());
    // Marked as RMPP, but without anything that RMPP needs: that is how one client library sends it.
    request.mad.set_rmpp(&RmppHeader { active: true, ..RmppHeader::default() });
    SaMad::transaction_id.set(&mut request.mad.0, TransactionId(2));
    world.command(Input::Receive(request));
    let sent: Vec<Mad> = world.administration.drain(..).map(|mad| mad.mad).collect();
    let [answer] = sent[..] else { panic!("{sent:?}") };
    assert_eq!((answer.method(), answer.status()), (Method::GetMultiResp, status::BAD_METHOD_ATTRIBUTE));
}

#[test]
fn one_record_none_or_too_many() {
    let mut world = tree();
    let everything = Asked::all::<NodeRecord>();
    assert_eq!(one::<NodeRecord>(&mut world, &everything), Err(sa_status::TOO_MANY_RECORDS));
    let nobody = everything.with(1, &NodeRecord { lid: Lid(0x1234), ..NodeRecord::default() });
    assert_eq!(one::<NodeRecord>(&mut world, &nobody), Err(sa_status::NO_RECORDS));
    assert_eq!(table::<NodeRecord>(&mut world, &nobody), Ok(Vec::new()), "an empty table is a table");
    let first = everything.with(1, &NodeRecord { lid: Lid(1), ..NodeRecord::default() });
    assert_eq!(one::<NodeRecord>(&mut world, &first).unwrap().lid, Lid(1));
}

#[test]
fn keys_open_what_they_fit() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut world = up(
        fabric,
        Options::from(KeyOptions {
            m_key: MKey(0x77),
            sm_key: SmKey(6),
            sa_key: SmKey(5),
            ..KeyOptions::default()
        }),
    );
    let with = |key| Asked { key: SmKey(key), ..Asked::all::<PortInfoRecord>() };
    let trusted: Vec<PortInfoRecord> = table(&mut world, &with(5)).unwrap();
    assert!(trusted.iter().any(|record| record.port_info.m_key == MKey(0x77)));
    let stranger: Vec<PortInfoRecord> = table(&mut world, &with(0)).unwrap();
    assert!(stranger.iter().all(|record| record.port_info.m_key == MKey(0)));
    assert_eq!(stranger.len(), trusted.len());
    assert_eq!(table::<PortInfoRecord>(&mut world, &with(6)), Err(sa_status::REQ_DENIED));
    let keys = |key| Asked { key: SmKey(key), ..Asked::all::<PKeyTableRecord>() };
    assert_eq!(table::<PKeyTableRecord>(&mut world, &keys(0)), Err(sa_status::REQ_INVALID));
    assert_eq!(table::<PKeyTableRecord>(&mut world, &keys(5)).unwrap().len(), 8);
}

#[test]
fn before_the_first_sweep_has_ended_everything_is_busy() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let own = PortRef::new(fabric.hosts().next().unwrap().0, PortNum(1));
    let mut world = World::new(Fake::new(fabric, own), Options::default(), &GuidToLid::default());
    let asked = Asked::all::<NodeRecord>();
    world.command(Input::Receive(asked.mad()));
    let answer = world.administration.pop_front().unwrap();
    assert_eq!(answer.mad.status(), status::BUSY);
    world.run_until(Activity::Up);
    assert_eq!(table::<NodeRecord>(&mut world, &asked).unwrap().len(), 8);
    world.command(Input::Detached);
    world.attach();
    world.command(Input::Receive(asked.mad()));
    assert_eq!(world.administration.pop_front().unwrap().mad.status(), status::BUSY);
    let counts = world.sm.sa_counts();
    assert_eq!((counts.requests, counts.limited.busy, counts.answered), (3, 2, 1));
}

/// While a sweep is on, answers come from what the one before it found.
#[test]
fn a_sweep_does_not_keep_anybody_waiting() {
    let mut world = tree();
    world.command(Input::Resweep { heavy: true });
    assert_ne!(world.sm.progress().activity, Activity::Up);
    let found: Vec<LinkRecord> = table(&mut world, &Asked::all::<LinkRecord>()).unwrap();
    assert_eq!(found.len(), 16);
    assert_ne!(world.sm.progress().activity, Activity::Up, "no time has passed");
}

/// A request that is repeated while its table is on its way is not answered twice.
#[test]
fn impatience_changes_nothing() {
    let mut world = tree();
    let request = Asked::all::<NodeRecord>().mad();
    for _ in 0..3 {
        world.command(Input::Receive(request));
    }
    assert_eq!(world.administration.len(), 1, "the first segment waits for its acknowledgement");
    world.administration.clear();
    let mut waiting = Asked { id: 7, ..Asked::all::<GuidInfoRecord>() };
    for _ in 0..3 {
        world.command(Input::Receive(waiting.mad()));
    }
    waiting.from = Lid(4);
    world.command(Input::Receive(waiting.mad()));
    world.run_for(Time::from_millis(50));
    assert_eq!(world.administration.len(), 2, "one each");
    assert_eq!(world.sm.sa_counts().ignored, 4);
}

/// Tables that no one acknowledges are sent again, given up and counted.
#[test]
fn unacknowledged_tables_are_resent_and_given_up() {
    let mut world = tree();
    world.command(Input::Receive(Asked::all::<NodeRecord>().mad()));
    world.run_for(Time::from_secs(600));
    let sent: Vec<_> = world.administration.drain(..).map(|mad| mad.mad.rmpp()).collect();
    assert!(sent.len() > 1 && sent.len() < 20, "{sent:?}");
    assert_eq!(sent.last().unwrap().kind, RmppType::Abort);
    assert_eq!(world.sm.sa_counts().transfers_failed, 1);
}

/// What no one asked for: answers, acknowledgements, and bytes without meaning.
#[test]
fn noise_is_counted_and_forgotten() {
    let mut world = tree();
    let mut response = Asked::all::<NodeRecord>().mad();
    SaMad::method.set(&mut response.mad.0, Method::ReportResp);
    world.command(Input::Receive(response));
    let mut ack = Asked::all::<NodeRecord>().mad();
    ack.mad.set_rmpp(&RmppHeader { version: 1, kind: RmppType::Ack, active: true, ..RmppHeader::default() });
    world.command(Input::Receive(ack));
    assert!(world.administration.is_empty());
    assert_eq!(world.sm.sa_counts().requests, 0);
    assert_eq!(world.sm.progress().activity, Activity::Up);
}
