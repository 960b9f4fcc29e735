use weft_control::HexGuid;

use super::*;

const NOW: Utc = Utc::from_nanos(5_000_000_000);

fn guid(number: u64) -> HexGuid {
    serde_json::from_value(format!("0x{number:016x}").into()).unwrap()
}

fn end(name: &str, process: &str, number: u64) -> FlowEnd {
    let at = PortEnd::of_node(guid(number));
    FlowEnd { name: name.to_owned(), process: process.to_owned(), at, guid: guid(number), by_name: false }
}

fn order(name: Option<&str>) -> FlowOrder {
    let shape = FlowShape::default();
    let name = name.map(str::to_owned);
    FlowOrder { name, set: None, from: end("host-1", "a1", 1), to: end("vm:web", "a2", 2), shape }
}

/// What an agent says of one end.
fn said(number: u64, sender: bool, state: &str, bytes: u64) -> Vec<HostFlows> {
    let report =
        FlowReport { flow: FlowId(1), sender, state: state.to_owned(), bytes, ..FlowReport::default() };
    vec![HostFlows { end: PortEnd::of_node(guid(number)), now_ns: 0, flows: vec![report] }]
}

/// A book with one flow, `f`, that runs.
fn running(order: FlowOrder) -> Book {
    let mut book = Book::default();
    assert_eq!(
        book.begin(vec![FlowOrder { name: Some("f".into()), ..order }], NOW),
        Ok(vec!["f".to_owned()])
    );
    book.begun("f");
    book
}

/// A look at both agents.
fn look(book: &mut Book, at: u64, [sender, receiver]: [(&str, u64); 2]) -> Vec<String> {
    let now = Utc::from_nanos(NOW.as_nanos() + at * NANOS);
    book.look();
    book.hear("a1", now, said(1, true, sender.0, sender.1));
    book.hear("a2", now, said(2, false, receiver.0, receiver.1));
    book.settle(now, |_| Look::Said, &GoneVms::default())
}

#[test]
fn what_is_wrong_with_one_order_keeps_all_from_beginning() {
    let mut book = Book::default();
    let with = |change: fn(&mut FlowOrder)| {
        let mut order = order(None);
        change(&mut order);
        order
    };
    let shape = |change: fn(&mut FlowShape)| {
        let mut order = order(None);
        change(&mut order.shape);
        order
    };
    for (wrong, says) in [
        (with(|order| order.to = order.from.clone()), "from host-1 to itself"),
        (with(|order| order.name = Some(String::new())), "`` cannot name a flow"),
        (with(|order| order.name = Some("x".repeat(65))), "cannot name a flow"),
        (with(|order| order.set = Some("a\n".into())), "`a\\n` cannot name a flow"),
        (with(|order| order.name = Some("good".into())), "a flow is called `good` already"),
        (shape(|shape| shape.message_bytes = 0), "a message of 0 bytes"),
        (shape(|shape| shape.message_bytes = u32::MAX), "a message of 4294967295 bytes"),
        (shape(|shape| shape.packet_bytes = 0), "packets of 0 bytes"),
        (shape(|shape| shape.packet_bytes = 4100), "packets of 4100 bytes"),
        (shape(|shape| shape.packet_bytes = 1026), "packets of 1026 bytes"),
        (shape(|shape| shape.bytes_per_second = Some(0)), "a rate of 0"),
        (shape(|shape| shape.bytes_max = Some(0)), "a flow of 0 bytes"),
        (shape(|shape| shape.for_ms = Some(0)), "a flow of 0 ms"),
    ] {
        let error = book.begin(vec![order(Some("good")), wrong], NOW).unwrap_err();
        assert!(error.message.contains(says) && error.hint.is_some(), "{error:?}");
        assert_eq!(book.iter().count(), 0);
    }
    let many = book.begin((0..=ORDERS_MAX).map(|_| order(None)).collect(), NOW);
    assert_eq!(many.unwrap_err().code, ErrorCode::TooMany);
    for _ in 0..FLOWS_MAX / ORDERS_MAX {
        let names = book.begin((0..ORDERS_MAX).map(|_| order(None)).collect(), NOW).unwrap();
        assert_eq!(names.len(), ORDERS_MAX);
    }
    assert_eq!(book.begin(vec![order(None)], NOW).unwrap_err().code, ErrorCode::TooMany);
}

#[test]
fn a_hub_goes_on_with_what_another_wrote_down() {
    let mut book = running(order(None));
    let other = book.begin(vec![order(Some("other"))], NOW).unwrap();
    look(&mut book, 1, [("sending", 10), ("receiving", 10)]);
    let json = serde_json::to_string(&book.kept()).unwrap();
    let (mut book, starting) = Book::recall(serde_json::from_str(&json).unwrap());
    assert_eq!(starting, other, "one that had not begun is undone");
    book.remove("other");
    assert!(look(&mut book, 2, [("sending", 20), ("receiving", 20)]).is_empty());
    let line = book.line("f").unwrap();
    assert_eq!((line.flow, line.receiver.as_ref().map(|report| report.bytes)), (1, Some(20)));
    // Numbers are not given twice.
    let next = book.begin(vec![order(None)], NOW).unwrap();
    assert_eq!(book.line(&next[0]).unwrap().flow, 3);
}

#[test]
fn throughput_is_what_came_between_two_looks() {
    let mut book = running(order(None));
    for (at, bytes, rate) in [(1, 1000, 0), (2, 3000, 2000), (4, 3000, 0), (6, 9000, 3000)] {
        assert!(look(&mut book, at, [("sending", bytes), ("receiving", bytes)]).is_empty());
        assert_eq!(book.line("f").unwrap().delivered_bytes_per_second, rate, "after {at} s");
    }
}

#[test]
fn every_end_of_a_flow_has_its_reason() {
    let ended = |book: &Book| {
        let line = book.line("f").unwrap();
        (line.state, line.reason.clone().unwrap_or_default())
    };
    // All is sent: when the last of it has come, not before.
    let mut book = running(order(None));
    assert!(look(&mut book, 1, [("done", 10), ("receiving", 5)]).is_empty());
    assert!(look(&mut book, 2, [("done", 10), ("receiving", 10)]).is_empty(), "more has come");
    assert_eq!(look(&mut book, 3, [("done", 10), ("receiving", 10)]), ["f"]);
    assert_eq!(ended(&book), (FlowState::Done, "all is sent".to_owned()));
    // Its time is over.
    let shape = FlowShape { for_ms: Some(2000), ..FlowShape::default() };
    let mut book = running(FlowOrder { shape, ..order(None) });
    assert!(look(&mut book, 1, [("sending", 1), ("receiving", 1)]).is_empty());
    assert_eq!(look(&mut book, 2, [("sending", 2), ("receiving", 2)]), ["f"]);
    assert_eq!(ended(&book), (FlowState::Done, "its time is over".to_owned()));
    // An end is in error, has ended, or has begun again; one that only does not answer is no reason to end.
    let mut book = running(order(None));
    assert_eq!(look(&mut book, 1, [("error", 1), ("receiving", 1)]), ["f"]);
    assert_eq!(ended(&book).0, FlowState::Failed);
    for (how, ends, says) in [
        (Look::Gone, true, "the agent a1 of host-1 has ended"),
        (Look::Said, true, "the agent a1 of host-1 began again, and knows it no more"),
        (Look::Silent, false, "the agent a1 of host-1 does not answer"),
    ] {
        let mut book = running(order(None));
        book.look();
        let looks = |agent: &str| if agent == "a1" { how } else { Look::Said };
        assert_eq!(!book.settle(NOW, looks, &GoneVms::default()).is_empty(), ends);
        assert_eq!(ended(&book).1, says);
    }
}

#[test]
fn an_end_in_a_virtual_machine_is_looked_for_everywhere() {
    let mut book = running(order(None));
    book.look();
    book.hear("a1", NOW, said(1, true, "sending", 1));
    assert!(book.has_lost_vms());
    assert!(book.settle(NOW, |_| Look::Said, &GoneVms::default()).is_empty(), "it may be on its way");
    book.hear("a9", NOW, said(9, false, "receiving", 1));
    assert!(!book.has_lost_vms());
    let to = book.line("f").unwrap().to.clone();
    assert_eq!((to.process.as_str(), to.at.node, to.guid), ("a9", guid(9), guid(2)));
    // A host that is no machine does not move: another agent cannot claim its flows.
    book.hear("a9", NOW, said(9, true, "error", 0));
    assert_eq!(book.line("f").unwrap().from.process, "a1");
}

/// A flow is with the machine that it began with, not with the next one of its name.
#[test]
fn a_flow_ends_with_its_virtual_machine() {
    let later = |nanos| Utc::from_nanos(NOW.as_nanos() + nanos);
    for (vm, at, ends) in [("web", later(1), true), ("web", NOW, false), ("other", later(1), false)] {
        let mut gone = GoneVms::default();
        gone.ended(vm.to_owned(), at);
        let mut book = running(order(None));
        book.look();
        book.hear("a1", later(2), said(1, true, "sending", 1));
        assert_eq!(!book.settle(later(2), |_| Look::Said, &gone).is_empty(), ends, "{vm} at {at:?}");
        let reason = book.line("f").unwrap().reason.clone().unwrap();
        assert_eq!(
            reason,
            if ends { "vm:web has ended" } else { "vm:web is at no agent, as while it moves" }
        );
        // One that an agent still has did not end.
        let mut book = running(order(None));
        book.hear("a1", later(2), said(1, true, "sending", 1));
        book.hear("a2", later(2), said(2, false, "receiving", 1));
        assert!(book.settle(later(2), |_| Look::Said, &gone).is_empty());
    }
}

#[test]
fn flows_are_chosen_by_name_by_set_or_all() {
    let mut book = Book::default();
    let of = |name: &str, set: &str| FlowOrder { set: Some(set.to_owned()), ..order(Some(name)) };
    book.begin(vec![of("a", "x"), of("b", "x"), of("c", "y"), order(Some("d"))], NOW).unwrap();
    let choose = |names: &[&str], sets: &[&str], all| {
        let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
        book.chosen(&FlowChoice { names: owned(names), sets: owned(sets), all }).map(|names| names.concat())
    };
    assert_eq!(choose(&["d"], &["x"], false).as_deref(), Ok("abd"));
    assert_eq!(choose(&[], &[], true).as_deref(), Ok("abcd"));
    assert_eq!(choose(&[], &[], false).as_deref(), Ok(""));
    for (names, sets) in [(&["a", "e"][..], &[][..]), (&[], &["x", "z"])] {
        assert_eq!(choose(names, sets, false).unwrap_err().code, ErrorCode::NotFound);
    }
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let (page, more) = book.page(&NamePage { after, limit: Some(3) });
        after = page.last().map(|line| line.name.clone());
        pages.push(page.len());
        if !more {
            break;
        }
    }
    assert_eq!(pages, [3, 1]);
}

#[test]
fn what_a_silent_agent_kept_is_remembered_until_it_forgets() {
    let mut book = running(order(None));
    let close = book.ending("f", Side::Receiver, true).unwrap();
    book.owe(&close);
    book.owe(&book.ending("f", Side::Sender, false).unwrap());
    book.remove("f");
    let (mut book, _) =
        Book::recall(serde_json::from_str(&serde_json::to_string(&book.kept()).unwrap()).unwrap());
    let debts: Vec<Debt> = book.debts().cloned().collect();
    assert_eq!(debts.len(), 1, "a stop is none: the end is closed later");
    let order = debts[0].order();
    assert_eq!((order.process.as_str(), order.at, &order.command), ("a2", close.at, &close.command));
    // The number of the flow that it may still know is not given again.
    assert_eq!(book.begin(vec![self::order(Some("g"))], NOW).map(|_| book.line("g").unwrap().flow), Ok(2));
    book.settled(&debts[0]);
    assert_eq!(book.debts().count(), 0);
}

#[test]
fn the_journal_of_an_older_hub_is_read() {
    let book = running(order(None));
    let kept = serde_json::to_value(book.kept()).unwrap();
    let flows = kept["flows"].to_string();
    let (book, starting) = Book::recall(serde_json::from_str(&flows).unwrap());
    assert_eq!((book.iter().count(), starting.len(), book.debts().count()), (1, 0, 0));
}
