//! Restarts by a hub: what it starts again, when, and what it leaves alone.

use std::time::{Duration, Instant};

use common::{Folder, Hub, PATIENCE, ready};
use rustix::process::{Pid, Signal, kill_process};
use weft_control::event::LabEvent;
use weft_control::hub::{EndKind, ProcessState, RestartPolicy};
use weft_control::{EventFilter, EventKind};
use weft_hub::Trace;
use weft_hub::restarts::DELAY_MIN;

use crate::common;

/// Longer than the first pauses, and short for a test: what was to be started would have been.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

fn starts(folder: &Folder) -> usize {
    folder.book.lock().unwrap().starts.len()
}

fn kill_started(folder: &Folder, name: &str) {
    let pid = *folder.book.lock().unwrap().pids.last().unwrap();
    folder.leave(name, Trace::Ended(EndKind::Failed));
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

fn running(folder: &Folder, hub: &Hub) -> common::Process {
    let process = folder.process("sm");
    process.publish(ready());
    hub.wait_for_state("sm", ProcessState::Ready);
    process
}

/// Nothing is started for long enough: a condition that must not come has no event to wait for.
fn nothing_starts(folder: &Folder, hub: &Hub, before: usize) {
    let mut events =
        hub.listen(EventFilter { kinds: vec!["process-restarted".into()], ..EventFilter::default() });
    assert_eq!(events.next_event(LONG_ENOUGH).unwrap(), None);
    assert_eq!(starts(folder), before);
}

#[test]
fn a_failed_process_is_restarted_and_its_end_recorded() {
    let folder = Folder::new();
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    let mut events = hub.listen(EventFilter::default());
    let process = running(&folder, &hub);
    let killed = Instant::now();
    process.kill();
    hub.wait_until("it is started", || starts(&folder) == 1);
    let (name, at) = folder.book.lock().unwrap().starts[0].clone();
    assert_eq!(name, "sm");
    assert!(at - killed >= DELAY_MIN, "{:?}", at - killed);
    hub.wait_for_state("sm", ProcessState::Silent);
    assert_eq!((hub.line("sm").restarts, hub.status().restarts), (1, 1));
    kill_started(&folder, "sm");
    hub.wait_until("it is started again", || starts(&folder) == 2);
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let event = events.next_event(PATIENCE).unwrap().unwrap();
        if let EventKind::Lab(LabEvent::ProcessEnded { how, signal, .. }) = event.kind {
            ends.push((how, signal));
        }
    }
    // The first was no child of the hub.
    assert_eq!(ends, [(EndKind::Failed, None), (EndKind::Failed, Some(9))]);
    kill_started(&folder, "sm");
}

#[test]
fn only_failures_are_started_again() {
    let folder = Folder::new();
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    for how in [EndKind::InOrder, EndKind::KilledOnPurpose] {
        running(&folder, &hub).end(how);
        hub.wait_for_state("sm", ProcessState::Ended);
        nothing_starts(&folder, &hub, 0);
    }
    drop(hub);
    let never = folder.hub();
    running(&folder, &never).kill();
    never.wait_for_state("sm", ProcessState::Ended);
    nothing_starts(&folder, &never, 0);
}

#[test]
fn nothing_is_started_while_the_laboratory_goes_down() {
    let folder = Folder::new();
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    let process = running(&folder, &hub);
    folder.book.lock().unwrap().goes_down = true;
    process.kill();
    hub.wait_for_state("sm", ProcessState::Ended);
    nothing_starts(&folder, &hub, 0);
}

#[test]
fn a_kill_that_is_noted_late_still_holds() {
    let folder = Folder::new();
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    let process = running(&folder, &hub);
    // However late that is noted, no start succeeds before.
    folder.book.lock().unwrap().broken.insert("sm".to_owned());
    process.kill();
    folder.leave("sm", Trace::Ended(EndKind::KilledOnPurpose));
    hub.wait_until("it is known to be meant", || {
        hub.line("sm").last_end.is_some_and(|end| end.how == EndKind::KilledOnPurpose)
    });
    folder.book.lock().unwrap().broken.remove("sm");
    nothing_starts(&folder, &hub, 0);
    // The user starts it again, and from then on it is as any other.
    running(&folder, &hub).kill();
    hub.wait_until("it is started", || starts(&folder) == 1);
    hub.wait_for_state("sm", ProcessState::Silent);
    kill_started(&folder, "sm");
}

#[test]
fn a_failing_start_is_retried_with_growing_pauses() {
    let folder = Folder::new();
    folder.book.lock().unwrap().broken.insert("sm".to_owned());
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    let mut events =
        hub.listen(EventFilter { kinds: vec!["restart-failed".into()], ..EventFilter::default() });
    running(&folder, &hub).kill();
    for retry in [2, 4] {
        let event = events.next_event(PATIENCE).unwrap().unwrap();
        let EventKind::Lab(LabEvent::RestartFailed { process, reason, retry_ms }) = event.kind else {
            panic!("{event:?}")
        };
        let pause = DELAY_MIN.as_millis() as u64 * retry;
        assert_eq!((process.as_str(), reason.as_str(), retry_ms), ("sm", "no such luck", pause));
    }
    folder.book.lock().unwrap().broken.clear();
    hub.wait_until("it is started", || hub.line("sm").restarts == 1);
    let starts = folder.book.lock().unwrap().starts.clone();
    let pauses: Vec<_> = starts.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(pauses.iter().zip([2, 4]).all(|(pause, times)| *pause >= DELAY_MIN * times), "{pauses:?}");
    assert!(hub.metrics().contains("weft_hub_restarts_failed_total 2\n"), "{}", hub.metrics());
    kill_started(&folder, "sm");
}

/// A process that failed while no hub was there is started by the next one.
#[test]
fn the_next_hub_restarts_processes_that_failed_meanwhile() {
    let folder = Folder::new();
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    let process = running(&folder, &hub);
    hub.kill();
    process.kill();
    folder.leave("pm", Trace::Ended(EndKind::KilledOnPurpose));
    let hub = folder.hub_that_restarts(RestartPolicy::OnFailure);
    hub.wait_until("it is started", || starts(&folder) == 1);
    assert_eq!(folder.book.lock().unwrap().starts[0].0, "sm");
    hub.wait_for_state("sm", ProcessState::Silent);
    nothing_starts(&folder, &hub, 1);
    kill_started(&folder, "sm");
}
