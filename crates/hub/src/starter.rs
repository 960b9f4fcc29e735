//! Starts the laboratory as [`Start`](crate::start::Start) says, and tells how far that is.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;
use weft_control::event::LabEvent;
use weft_control::{Answer, Error, ErrorCode, EventKind};
use weft_process::utc_now;

use crate::shared::Shared;
use crate::start::{Progress, Step};
use crate::tend::Tender;
use crate::{Lab, LabError, Trace};

/// Progress within this time is reported as one.
const GATHER: Duration = Duration::from_millis(10);

/// The progress that was reported last.
struct Told {
    progress: Progress,
    step: Step,
    at: Duration,
}

/// Starts what has not been started, and has processes begin when it is their turn. Ends with the start.
pub(crate) async fn run(shared: Arc<Shared>, tender: Rc<Tender>) {
    let mut told = Told { progress: Progress::default(), step: Step::Agents, at: Duration::ZERO };
    loop {
        while let Some(name) = { shared.state().start.next_start() } {
            start(&shared, &tender, &name).await;
            have_begin(&shared, &tender);
            tell(&shared, &mut told);
            // What has started meanwhile is heard, and clients are served.
            tokio::task::yield_now().await;
        }
        have_begin(&shared, &tender);
        let untold = tell(&shared, &mut told);
        if told.step == Step::Done {
            break;
        }
        let due = shared.state().start.poll_timeout().into_iter().chain(untold).min();
        let pause = due.unwrap_or(Duration::MAX).saturating_sub(shared.elapsed());
        tokio::select! {
            () = shared.start_moved.notified() => {}
            () = sleep(pause) => {}
        }
        shared.state().start.handle_timeout(shared.elapsed());
    }
    shared.lab.note_start();
    shared.tell(EventKind::Lab(LabEvent::LabStarted));
    // All that happens is heard from now on.
    tender.ring_all();
}

/// The looks whether a laboratory still goes down: who takes it down ends the hub first.
const GOES_DOWN_LOOK: Duration = Duration::from_millis(100);

/// Waits while the laboratory goes down, or only looks so because somebody asks whether it is dead.
pub(crate) async fn stays_up(shared: &Shared) -> &dyn Lab {
    while shared.lab.is_going_down() {
        sleep(GOES_DOWN_LOOK).await;
    }
    &*shared.lab
}

/// Starts a process that has ended, in a thread of its own, which does not keep the hub from ending while the process takes its time. The
/// event that tells of it.
pub(crate) async fn again(shared: &Arc<Shared>, process: &str) -> Result<LabEvent, LabError> {
    let (sender, outcome) = oneshot::channel();
    let (lab, name) = (shared.lab.clone(), process.to_owned());
    let spawned = std::thread::Builder::new().name("start".into()).spawn(move || {
        let _ = sender.send(lab.start(&name));
    });
    let child = match spawned {
        Ok(_) => outcome.await.unwrap_or_else(|_| Err("the thread that starts it has panicked".into()))?,
        Err(error) => return Err(format!("no thread: {error}").into()),
    };
    let process = process.to_owned();
    let mut state = shared.state();
    state.children.insert(process.clone(), child);
    // From here on its end is news again, whether or not it has been heard.
    state.roster.silent(&process, utc_now());
    Ok(LabEvent::ProcessRestarted { restarts: state.roster.restarted(&process), process })
}

/// Starts a process because a client wants it; one that runs is left alone.
pub(crate) async fn on_order(shared: &Arc<Shared>, process: &str) -> Result<Answer, Error> {
    match shared.is_alive(process) {
        Some(true) => return Ok(Answer::Done),
        Some(false) => {}
        None => {
            let error = Error::new(ErrorCode::NotFound, format!("no process is called `{process}`"));
            return Err(error.hint("`lab-status` lists them"));
        }
    }
    if !shared.lab.starts_processes() {
        let error = Error::new(ErrorCode::InvalidRequest, "the hub starts no processes here");
        return Err(error.hint("start it where it ran"));
    }
    if shared.lab.is_going_down() {
        return Err(Error::new(ErrorCode::Conflict, "the laboratory is being taken down"));
    }
    // What the hub itself would start is started now.
    shared.state().restarts.cancel(process);
    match again(shared, process).await {
        Ok(restarted) => shared.tell(EventKind::Lab(restarted)),
        // Somebody else was faster.
        Err(_) if shared.lab.trace(process) == Trace::Alive => {}
        Err(reason) => {
            let error = format!("`{process}` cannot be started: {reason}");
            return Err(Error::new(ErrorCode::Failed, error));
        }
    }
    Ok(Answer::Done)
}

/// Starts a process, unless it runs or has run.
async fn start(shared: &Shared, tender: &Tender, name: &str) {
    if tender.is_tended(name) {
        return shared.state().start.started(name, shared.elapsed());
    }
    match shared.lab.trace(name) {
        Trace::NeverStarted => match stays_up(shared).await.spawn(name) {
            Ok(child) => {
                let now = shared.elapsed();
                let mut state = shared.state();
                state.children.insert(name.to_owned(), child);
                // From here on its end is news, whether or not it has been heard.
                state.roster.silent(name, utc_now());
                state.start.started(name, now);
            }
            Err(reason) => {
                shared.start_fails(name, &reason.to_string());
                shared.state().start.ended(name, shared.elapsed());
            }
        },
        trace => {
            // One that lives and has no socket yet is looked after from now on.
            shared.gone(name, trace);
            shared.state().start.started(name, shared.elapsed());
        }
    }
}

fn have_begin(shared: &Shared, tender: &Tender) {
    while let Some(name) = { shared.state().start.next_begin() } {
        tender.ring(&name);
    }
}

/// Reports how far the start is, if that is news; returns when to do so if it is too early.
fn tell(shared: &Shared, told: &mut Told) -> Option<Duration> {
    let now = shared.elapsed();
    let (progress, step) = {
        let state = shared.state();
        (state.start.progress(), state.start.step())
    };
    if (progress, step) == (told.progress, told.step) {
        return None;
    }
    let due = told.at + GATHER;
    if step == told.step && now < due {
        return Some(due);
    }
    let Progress { agents_ready, agents, links_up, cable_ends } = progress;
    shared.tell(EventKind::Lab(LabEvent::StartProgress { agents_ready, agents, links_up, cable_ends }));
    *told = Told { progress, step, at: now };
    None
}
