//! A hub over real sockets, among processes that are threads here and can be killed at any moment.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::{Folder, PATIENCE, events_from, is_end_of, ready};
use weft_control::event::{PmEvent, ProcessEvent};
use weft_control::hub::{EndKind, ProcessState};
use weft_control::{
    Answer, ErrorCode, EventFilter, EventKind, NamePage, Page, REQUEST_BYTES_MAX, ReplyBody, ReplyLine,
    Request, RequestLine, Since,
};
use weft_hub::Trace;
use weft_process::{CLIENTS_OF_ONE_MAX, Client, ClientError, EVENTS_MAX};

use crate::common;

#[test]
fn a_hub_finds_processes_that_were_there_and_those_that_come() {
    let folder = Folder::new();
    let early = folder.process("sm");
    early.publish(ready());
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Ready);
    let late = folder.process("a0");
    hub.wait_for_state("a0", ProcessState::Starting);
    late.publish(ready());
    hub.wait_for_state("a0", ProcessState::Ready);
    let status = hub.status();
    assert_eq!((status.expected, status.alive, status.states["ready"]), (2, 1, 2));
    let names: Vec<_> =
        status.processes.iter().map(|process| (process.name.as_str(), process.is_expected)).collect();
    assert_eq!(names, [("a0", false), ("pm", true), ("sm", true)]);
    let page = hub.page(NamePage { after: Some("a0".into()), limit: Some(1) });
    assert_eq!((page.processes[0].name.as_str(), page.more), ("pm", true));
}

#[test]
fn an_end_is_told_at_once_with_how_it_came() {
    let folder = Folder::new();
    let hub = folder.hub();
    let mut events =
        hub.listen(EventFilter { kinds: vec!["process-ended".into()], ..EventFilter::default() });
    for how in [EndKind::InOrder, EndKind::KilledOnPurpose, EndKind::Failed] {
        let process = folder.process("sm");
        process.publish(ready());
        hub.wait_for_state("sm", ProcessState::Ready);
        let killed = Instant::now();
        process.end(how);
        let event = events.next_event(PATIENCE).unwrap().unwrap();
        assert!(is_end_of(&event, "sm", how), "{event:?}");
        assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
        assert_eq!(hub.line("sm").last_end.unwrap().how, how);
    }
}

#[test]
fn sockets_of_the_dead_are_left_alone_until_they_listen_again() {
    let folder = Folder::new();
    folder.process("sm").kill();
    assert!(folder.socket("sm").exists());
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Ended);
    let again = folder.process("sm");
    again.publish(ready());
    hub.wait_for_state("sm", ProcessState::Ready);
}

#[test]
fn events_of_all_sources_are_merged_and_filtered() {
    let folder = Folder::new();
    let (sm, pm) = (folder.process("sm"), folder.process("pm"));
    (0..3).for_each(|_| sm.publish(ready()));
    let hub = folder.hub();
    hub.wait_for_events(3);
    pm.publish(EventKind::Pm(PmEvent::Forgotten));
    hub.wait_for_events(4);
    let all = events_from(&mut hub.listen(EventFilter { from: Since::Start, ..EventFilter::default() }), 6);
    let places: Vec<_> = all.iter().map(|event| event.place.unwrap()).collect();
    assert_eq!(places, (0..6).collect::<Vec<_>>(), "the hub's own two are among them");
    let of = |source: &str| {
        let own = all.iter().filter(|event| event.source == source);
        own.map(|event| event.sequence).collect::<Vec<_>>()
    };
    assert_eq!((of("sm"), of("pm")), (vec![0, 1, 2], vec![0]));
    let sources = EventFilter { from: Since::Start, sources: vec!["pm".into()], ..EventFilter::default() };
    assert_eq!(events_from(&mut hub.listen(sources), 1)[0].source, "pm");
    let kinds = EventFilter { from: Since::Start, kinds: vec!["forgotten".into()], ..EventFilter::default() };
    assert_eq!(events_from(&mut hub.listen(kinds), 1)[0].sequence, 0);
    // After the hub's own place.
    let incarnation = all.iter().find(|event| event.source == "hub").unwrap().incarnation;
    let filter = EventFilter { from: Since::After { incarnation, sequence: 3 }, ..EventFilter::default() };
    assert_eq!(events_from(&mut hub.listen(filter), 2), all[4..]);
}

#[test]
fn a_new_hub_is_told_all_that_processes_remember() {
    let folder = Folder::new();
    let sm = folder.process("sm");
    let first = folder.hub();
    (0..100).for_each(|_| sm.publish(ready()));
    first.wait_for_events(100);
    first.kill();
    (0..50).for_each(|_| sm.publish(ready()));
    let second = folder.hub();
    second.wait_for_events(150);
    let line = second.line("sm");
    assert_eq!((line.events, line.events_lost), (150, 0));
    let from = EventFilter { from: Since::Start, sources: vec!["sm".into()], ..EventFilter::default() };
    let told = events_from(&mut second.listen(from), 150);
    assert!(told.iter().map(|event| event.sequence).eq(0..150));
}

#[test]
fn events_lost_without_a_hub_are_counted_and_reported() {
    let folder = Folder::new();
    let sm = folder.process("sm");
    let all = EVENTS_MAX as u64 + 1000;
    (0..all).for_each(|_| sm.publish(ready()));
    let hub = folder.hub();
    hub.wait_for_events(EVENTS_MAX as u64);
    let line = hub.line("sm");
    assert_eq!((line.events, line.events_lost, line.state), (EVENTS_MAX as u64, 1000, ProcessState::Ready));
    let filter =
        EventFilter { from: Since::Start, kinds: vec!["events-lost".into()], ..EventFilter::default() };
    let lost = &events_from(&mut hub.listen(filter), 1)[0];
    assert_eq!((lost.source.as_str(), lost.sequence), ("sm", 999));
    assert_eq!(lost.kind, EventKind::Process(ProcessEvent::EventsLost { count: 1000 }));
    assert!(hub.metrics().contains("weft_hub_events_lost_total 1000\n"), "{}", hub.metrics());
}

#[test]
fn requests_are_passed_on_within_the_clients_role() {
    let folder = Folder::new();
    let _sm = folder.process("sm");
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Starting);
    let mut client = hub.client();
    let relay =
        |process: &str, request| Request::Relay { process: process.into(), request: Box::new(request) };
    let Answer::Hello(hello) = client.ask(relay("sm", Request::Hello), PATIENCE).unwrap() else {
        panic!("a hello")
    };
    assert_eq!(hello.identity.name, "sm");
    assert_eq!(client.ask(relay("sm", Request::SmSweep), PATIENCE).unwrap(), Answer::Done);
    let mut refused = |request: Request| match client.ask(request, PATIENCE) {
        Err(ClientError::Refused(error)) => error,
        other => panic!("{other:?}"),
    };
    // What the process itself refuses comes back as it is.
    assert_eq!(refused(relay("sm", Request::Ports(Page::default()))).code, ErrorCode::NotHere);
    assert_eq!(refused(relay("nobody", Request::Hello)).code, ErrorCode::NotFound);
    assert_eq!(refused(relay("pm", Request::Hello)).code, ErrorCode::Conflict);
    let inner = relay("sm", Request::Hello);
    for streamed in [Request::Events(EventFilter::default()), Request::Cancel { request: 1 }, inner] {
        let error = refused(relay("sm", streamed));
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert!(error.hint.is_some(), "{error:?}");
    }
    assert!(refused(relay("hub", Request::Health)).hint.unwrap().contains("without `relay`"));
    assert_eq!(refused(Request::SmStatus).code, ErrorCode::NotHere);
}

#[test]
fn processes_of_other_versions_are_shown_as_such() {
    let folder = Folder::new();
    let hub = folder.hub();
    let later = folder.raw_process(
        "a1",
        r#"{"v":2,"id":1,"error":{"code":"unknown-version","message":"version 1 is not spoken here"}}"#,
    );
    hub.wait_for_state("a1", ProcessState::OtherProtocol);
    assert!(hub.line("a1").problem.unwrap().contains("version 2"));
    let odd = folder.raw_process(
        "a2",
        concat!(
            r#"{"v":1,"id":1,"answer":{"type":"hello","lab":"","name":"a2","kind":"oracle","version":"9.0.0","pid":9,"#,
            r#""incarnation":"0000000000000009","protocols":[1,2],"role":"operator","time":"","monotonic_ns":0}}"#,
            "\n",
            r#"{"v":1,"id":2,"event":{"time":"?","source":"a2","incarnation":"0000000000000009","sequence":0,"event":"rain"}}"#,
            "\nnonsense"
        ),
    );
    hub.wait_for_events(1);
    let line = hub.line("a2");
    assert_eq!(
        (line.version.as_deref(), line.kind, line.state),
        (Some("9.0.0"), None, ProcessState::Starting)
    );
    // A reader that knows no such event gets it all the same.
    let mut raw = UnixStream::connect(folder.socket("hub")).unwrap();
    let filter = EventFilter { from: Since::Start, kinds: vec!["rain".into()], ..EventFilter::default() };
    raw.write_all(RequestLine { id: 5, request: Request::Events(filter) }.to_line().as_bytes()).unwrap();
    let told = common::read_until(&mut raw, "rain");
    assert!(told.contains("\"source\":\"a2\"") && told.contains("\"place\":"), "{told}");
    hub.wait_until("the nonsense is noticed", || {
        hub.line("a2").problem.is_some_and(|problem| problem.contains("no sense"))
    });
    drop((later, odd));
    hub.wait_for_state("a2", ProcessState::Ended);
}

#[test]
fn a_hub_serves_a_thousand_clients_half_lines_and_long_ones() {
    let folder = Folder::new();
    let sm = folder.process("sm");
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Starting);
    let mut clients: Vec<Client> = (1..CLIENTS_OF_ONE_MAX).map(|_| hub.client()).collect();
    for client in &mut clients {
        let filter = EventFilter { sources: vec!["sm".into()], ..EventFilter::default() };
        client.ask(Request::Events(filter), PATIENCE).unwrap();
    }
    // One that asks and never reads.
    let mut mute = UnixStream::connect(folder.socket("hub")).unwrap();
    let from = EventFilter { from: Since::Start, ..EventFilter::default() };
    mute.write_all(RequestLine { id: 1, request: Request::Events(from) }.to_line().as_bytes()).unwrap();
    (0..200).for_each(|_| sm.publish(ready()));
    for client in &mut clients {
        assert!(events_from(client, 200).iter().map(|event| event.sequence).eq(0..200));
    }
    clients.truncate(1);
    for wrong in [&b"{\"v\":1,\"id\":1,\"requ"[..], &vec![b'x'; 16 << 20], b"\xff\n", b"\n\n\n"] {
        let mut stream = UnixStream::connect(folder.socket("hub")).unwrap();
        stream.write_all(wrong).unwrap();
    }
    let mut long = UnixStream::connect(folder.socket("hub")).unwrap();
    long.write_all(&vec![b'x'; REQUEST_BYTES_MAX + 10]).unwrap();
    assert!(common::read_until(&mut long, "line-too-long").contains("\"id\":null"));
    let later = "{\"v\":7,\"id\":3,\"request\":{\"type\":\"hello\"}}\n";
    long.write_all(format!("\n{later}").as_bytes()).unwrap();
    assert!(common::read_until(&mut long, "unknown-version").contains("version 7"));
    assert!(matches!(hub.client().ask(Request::Hello, PATIENCE), Ok(Answer::Hello(_))));
}

#[test]
fn a_second_reader_of_a_slow_process_finds_the_gap_counted() {
    let folder = Folder::new();
    let sm = folder.process("sm");
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Starting);
    // Far more than the way to the hub holds, at once: what the process forgets before the hub has read it is counted.
    let all = 4 * EVENTS_MAX as u64;
    (0..all).for_each(|_| sm.publish(ready()));
    hub.wait_until("all is heard or lost", || {
        let line = hub.line("sm");
        let gaps = u64::from(line.events_lost > 0);
        line.events + line.events_lost >= all + gaps || line.events + line.events_lost == all
    });
    let line = hub.line("sm");
    let from = EventFilter { from: Since::Start, sources: vec!["sm".into()], ..EventFilter::default() };
    let told = events_from(&mut hub.listen(from), line.events as usize);
    let lost: u64 = told
        .iter()
        .map(|event| match event.kind {
            EventKind::Process(ProcessEvent::EventsLost { count }) => count,
            _ => 0,
        })
        .sum();
    let real = told.iter().filter(|event| event.kind == ready()).count() as u64;
    assert_eq!((real + lost, lost), (all, line.events_lost));
}

#[test]
fn a_hub_that_is_told_to_stop_stops() {
    let folder = Folder::new();
    let hub = folder.hub();
    assert_eq!(hub.client().ask(Request::Shutdown, PATIENCE).unwrap(), Answer::Done);
    hub.join();
    assert!(!folder.socket("hub").exists());
    // The folder's end is the hub's.
    let hub = folder.hub();
    std::fs::remove_dir_all(folder.control()).unwrap();
    hub.join();
}

#[test]
fn a_process_without_a_socket_is_known_by_its_lock() {
    let folder = Folder::new();
    folder.leave("pm", Trace::Alive);
    let hub = folder.hub();
    hub.wait_for_state("pm", ProcessState::Silent);
    folder.leave("pm", Trace::Ended(EndKind::Failed));
    hub.wait_for_state("pm", ProcessState::Ended);
}

/// Processes and hubs are killed at any moment; the last hub knows every process as it is, and has each event that the
/// processes remember once.
#[test]
fn the_last_hub_knows_everything_after_random_kills() {
    use rand::{RngExt, SeedableRng};
    for seed in 0..8 {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
        let folder = Folder::new();
        let mut hub = folder.hub();
        let names = ["a0", "a1", "pm", "sm"];
        let mut processes: Vec<_> = names.iter().map(|name| Some((folder.process(name), 0))).collect();
        for _ in 0..40 {
            let at = rng.random_range(0..names.len());
            match rng.random_range(0..10) {
                0 => {
                    hub = {
                        hub.kill();
                        folder.hub()
                    }
                }
                1..3 => processes[at].take().into_iter().for_each(|(process, _)| process.kill()),
                3 => processes[at].take().into_iter().for_each(|(process, _)| process.end(EndKind::InOrder)),
                4..6 => {
                    let _ = processes[at].get_or_insert_with(|| (folder.process(names[at]), 0));
                }
                _ => {
                    if let Some((process, published)) = &mut processes[at] {
                        let count = rng.random_range(0..20);
                        (0..count).for_each(|_| process.publish(ready()));
                        *published += count;
                    }
                }
            }
        }
        for (name, process) in names.iter().zip(&processes) {
            let Some((process, published)) = process else {
                hub.wait_until(&format!("seed {seed}: {name} is dead"), || {
                    hub.find(name).is_none_or(|line| !line.state.is_alive())
                });
                continue;
            };
            hub.wait_until(&format!("seed {seed}: {name} lives"), || {
                hub.find(name).is_some_and(|line| line.incarnation == Some(process.incarnation()))
            });
            if *published == 0 {
                continue;
            }
            let filter =
                EventFilter { from: Since::Start, sources: vec![(*name).into()], ..EventFilter::default() };
            let mut client = hub.listen(filter);
            let mut next = 0;
            while next < *published {
                let event = client.next_event(PATIENCE).unwrap().unwrap();
                if event.incarnation == process.incarnation() {
                    assert_eq!(event.sequence, next, "seed {seed}: {name}");
                    next += 1;
                }
            }
        }
    }
}

#[test]
fn replies_of_a_hub_are_lines_of_the_protocol() {
    let folder = Folder::new();
    let hub = folder.hub();
    let mut stream = UnixStream::connect(folder.socket("hub")).unwrap();
    let line = RequestLine { id: 9, request: Request::LabStatus(NamePage::default()) }.to_line();
    stream.write_all(line.as_bytes()).unwrap();
    let mut text = String::new();
    while !text.ends_with('\n') {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    let reply = ReplyLine::parse(text.trim_end().as_bytes()).unwrap();
    assert_eq!(reply.id, Some(9));
    assert!(matches!(reply.body, ReplyBody::Answer(_)), "{text}");
    drop(hub);
}

/// A list of revoked identities reaches the processes that run and those that come back, also under the next hub. One that could
/// not be kept is not forgotten: giving it again keeps it.
#[test]
fn revocations_outlive_processes_and_hubs() {
    let folder = Folder::new();
    let told = |process: &str, list: &str| {
        let book = folder.book.lock().unwrap();
        book.told.iter().filter(|(name, of)| (name.as_str(), of.as_str()) == (process, list)).count()
    };
    let sm = folder.process("sm");
    let hub = folder.hub();
    hub.wait_for_state("sm", ProcessState::Starting);
    let revoke = || hub.client().ask(Request::Revoke { list: "first".into() }, PATIENCE);
    folder.book.lock().unwrap().is_full = true;
    let refused = revoke().unwrap_err().to_string();
    assert!(refused.contains("cannot keep the list: no space left"), "{refused}");
    hub.wait_until("the process is told all the same", || told("sm", "first") > 0);
    folder.book.lock().unwrap().is_full = false;
    revoke().unwrap();
    assert_eq!(folder.book.lock().unwrap().revoked.as_deref(), Some("first"));

    sm.kill();
    hub.wait_for_state("sm", ProcessState::Ended);
    let before = told("sm", "first");
    let _sm = folder.process("sm");
    hub.wait_until("it is told when it is back", || told("sm", "first") > before);
    hub.kill();
    let _pm = folder.process("pm");
    let next = folder.hub();
    next.wait_until("the next hub tells it, too", || told("pm", "first") > 0);
}

/// A hub that has lost its folder, or begins on another machine, takes the newest list from the processes and tells the others.
/// What it cannot verify it does not believe.
#[test]
fn a_hub_learns_from_processes_which_identities_are_revoked() {
    let folder = Folder::new();
    let told = |process: &str, list: &str| {
        folder.book.lock().unwrap().told.contains(&(process.to_owned(), list.to_owned()))
    };
    let _pm = folder.process_that_knows("pm", "first");
    let _sm = folder.process_that_knows("sm", "forged");
    let hub = folder.hub();
    hub.wait_until("the list is kept", || folder.book.lock().unwrap().revoked.as_deref() == Some("first"));
    let _other = folder.process("a0");
    hub.wait_until("another process is told", || told("a0", "first"));
    // A newer one comes with a process that had another hub.
    let _newer = folder.process_that_knows("a1", "first, second");
    hub.wait_until("the newer one is kept", || {
        folder.book.lock().unwrap().revoked.as_deref() == Some("first, second")
    });
    hub.wait_until("all are told", || told("a0", "first, second") && told("pm", "first, second"));
    let told = folder.book.lock().unwrap().told.clone();
    assert!(!told.iter().any(|(_, list)| list.contains("forged")), "{told:?}");
    assert_eq!(folder.book.lock().unwrap().met.len(), 4);
}

#[test]
fn a_hub_keeps_no_list_that_it_cannot_verify() {
    let folder = Folder::new();
    let hub = folder.hub();
    let refused = hub.client().ask(Request::Revoke { list: "forged".into() }, PATIENCE).unwrap_err();
    assert!(refused.to_string().contains("not the authority's"), "{refused}");
    assert_eq!(folder.book.lock().unwrap().revoked, None);
}
