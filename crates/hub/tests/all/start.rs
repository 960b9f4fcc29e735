//! The start of a laboratory by a hub, and by another one that finds it half started.

use common::{Folder, Hub, PATIENCE, Process, is_end_of, ready};
use rustix::process::{Pid, Signal, kill_process};
use weft_control::event::{AgentEvent, LabEvent, SmEvent};
use weft_control::hub::{EndKind, Links, ProcessState};
use weft_control::sm::Summary;
use weft_control::{Event, EventFilter, EventKind, Since};
use weft_hub::Trace;

use crate::common;

fn spawned(folder: &Folder) -> Vec<String> {
    folder.book.lock().unwrap().spawned.clone()
}

fn begun(folder: &Folder) -> Vec<String> {
    let mut begun = folder.book.lock().unwrap().begun.clone();
    begun.sort();
    begun
}

fn has_started(folder: &Folder) -> bool {
    folder.book.lock().unwrap().has_started
}

fn linked(up: u32) -> EventKind {
    EventKind::Agent(AgentEvent::Links { up, total: 1, to_dial: 1 - up })
}

fn subnet_up() -> EventKind {
    EventKind::Sm(SmEvent::SubnetUp(Summary { switches: 1, hosts: 1, complete: true, ..Summary::default() }))
}

/// A process that listens and says so.
fn listening(folder: &Folder, name: &str) -> Process {
    let process = folder.process(name);
    process.publish(ready());
    process
}

/// All events of the hub itself, to the end of the start.
fn told_by(hub: &Hub) -> Vec<Event> {
    let sources = vec!["hub".to_owned()];
    let mut client = hub.listen(EventFilter { from: Since::Start, sources, ..EventFilter::default() });
    let mut all = Vec::new();
    loop {
        let event = client.next_event(PATIENCE).unwrap().unwrap();
        let is_last = event.kind == EventKind::Lab(LabEvent::LabStarted);
        all.push(event);
        if is_last {
            return all;
        }
    }
}

#[test]
fn agents_first_then_links_then_the_manager() {
    let folder = Folder::new();
    let hub = folder.hub_that_starts(&["a0", "a1"]);
    hub.wait_until("all are started", || spawned(&folder) == ["a0", "a1", "sm"]);
    let first = listening(&folder, "a0");
    let manager = listening(&folder, "sm");
    hub.wait_for_state("a0", ProcessState::Ready);
    hub.wait_for_state("sm", ProcessState::Ready);
    assert!(begun(&folder).is_empty(), "not before all agents listen");
    let second = listening(&folder, "a1");
    hub.wait_until("the agents begin", || begun(&folder) == ["a0", "a1"]);
    first.publish(linked(0));
    first.publish(linked(1));
    hub.wait_until("links are known", || hub.line("a0").links == Some(Links { up: 1, total: 1, to_dial: 0 }));
    assert_eq!(begun(&folder).len(), 2);
    second.publish(linked(1));
    hub.wait_until("the manager begins", || begun(&folder) == ["a0", "a1", "sm"]);
    assert!(!has_started(&folder));
    manager.publish(subnet_up());
    hub.wait_until("it has started", || has_started(&folder));
    let progress = told_by(&hub).into_iter().filter_map(|event| match event.kind {
        EventKind::Lab(LabEvent::StartProgress { agents_ready, agents, links_up, cable_ends }) => {
            Some((agents_ready, agents, links_up, cable_ends))
        }
        _ => None,
    });
    let progress: Vec<_> = progress.collect();
    assert!(progress.is_sorted(), "{progress:?}");
    assert_eq!(progress.last(), Some(&(2, 2, 2, 2)));
    // What happened before is heard now, and once.
    hub.wait_until("all is heard", || hub.line("a0").events == 3 && hub.line("a1").events == 2);
    assert_eq!(hub.status().events_lost, 0);
    assert_eq!(begun(&folder).len(), 3, "none is told twice");
}

#[test]
fn another_hub_goes_on_where_the_start_stood() {
    let folder = Folder::new();
    let first = folder.hub_that_starts(&["a0", "a1"]);
    first.wait_until("all are started", || spawned(&folder).len() == 3);
    first.kill();
    // As if the first had not come to the manager.
    folder.leave("sm", Trace::NeverStarted);
    let (a0, a1) = (listening(&folder, "a0"), listening(&folder, "a1"));
    let second = folder.hub_that_starts(&["a0", "a1"]);
    second.wait_until("the agents begin", || begun(&folder) == ["a0", "a1"]);
    second.wait_until("the manager is started", || spawned(&folder) == ["a0", "a1", "sm", "sm"]);
    a0.publish(linked(1));
    a1.publish(linked(1));
    second.wait_until("links are known", || second.line("a1").links.is_some());
    second.kill();
    let manager = listening(&folder, "sm");
    let third = folder.hub_that_starts(&["a0", "a1"]);
    third.wait_until("the manager begins", || begun(&folder).contains(&"sm".to_owned()));
    manager.publish(subnet_up());
    third.wait_until("it has started", || has_started(&folder));
    third.kill();
    // A hub that comes after the start tells each process to begin, too.
    let told = begun(&folder).len();
    let fourth = folder.hub_that_starts(&["a0", "a1"]);
    fourth.wait_until("all are told again", || begun(&folder).len() == told + 3);
    assert_eq!(spawned(&folder).len(), 4);
}

#[test]
fn a_process_that_fails_at_the_start_is_told_of_and_not_awaited() {
    let folder = Folder::new();
    folder.book.lock().unwrap().broken.insert("a1".into());
    let hub = folder.hub_that_starts(&["a0", "a1", "a2"]);
    let mut events = hub.listen(EventFilter {
        from: Since::Start,
        kinds: vec!["start-failed".into(), "process-ended".into()],
        ..EventFilter::default()
    });
    let failed = events.next_event(PATIENCE).unwrap().unwrap();
    let wanted = LabEvent::StartFailed { process: "a1".into(), reason: "no such luck".into() };
    assert_eq!(failed.kind, EventKind::Lab(wanted));
    hub.wait_until("all are started", || spawned(&folder).len() == 4);
    // It ends before it has a socket.
    let pid = folder.book.lock().unwrap().pids[1];
    folder.leave("a2", Trace::NeverStarted);
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    let ended = events.next_event(PATIENCE).unwrap().unwrap();
    assert!(is_end_of(&ended, "a2", EndKind::Failed), "{ended:?}");
    assert_eq!(hub.line("a2").last_end.unwrap().signal, Some(9));
    let _agent = listening(&folder, "a0");
    hub.wait_until("the one that is left begins", || begun(&folder) == ["a0"]);
}
