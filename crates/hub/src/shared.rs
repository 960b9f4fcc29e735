//! State that the hub's tasks share: the roster, the starts that are due, and the stream of all events.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use weft_control::event::{EventHead, LabEvent, ProcessEvent};
use weft_control::hub::{EndKind, LabStatus, ProcessEnd, ProcessState};
use weft_control::process::{Identity, Subscribed};
use weft_control::{Answer, Error, ErrorCode, Event, EventKind, NamePage, Utc};
use weft_process::{EventLog, Origin, Papers, utc_now};

use crate::gone::GoneVms;
use crate::heard::{Greeting, Heard, LINKS, READY, links_of, nodes_of, progress_of, read, vm_of};
use crate::restarts::Restarts;
use crate::roster::{Novelty, Roster, end_without_code};
use crate::start::{Start, Step};
use crate::{Lab, Trace};

/// The hub's work after a line of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing.
    Nothing,
    /// It may have said more of its start, which was forgotten: it is asked to begin again.
    Again,
    /// It knew of revoked identities that the hub did not know: all others get the list.
    Revoked,
}

/// Everything behind one lock; it is held for the length of a look-up, never across a wait.
pub(crate) struct Shared {
    pub(crate) lab: Arc<dyn Lab>,
    pub(crate) identity: Identity,
    pub(crate) log: EventLog,
    /// What the hub proves itself with, and verifies lists of revoked identities with.
    pub(crate) papers: Arc<dyn Papers>,
    began: Instant,
    state: Mutex<State>,
    /// Rings when a restart may be due earlier than thought.
    pub(crate) due: Notify,
    /// Rings when the laboratory's start got further.
    pub(crate) start_moved: Notify,
}

/// A conversation with a process, for as long as its connection.
pub(crate) struct Talk {
    source: Arc<str>,
    /// When the hub asked who it is.
    asked: Utc,
    /// How many nanoseconds its wall clock is ahead of the hub's, once it has said what that shows.
    ahead_ns: i64,
}

impl Talk {
    /// The hub asks now.
    pub(crate) fn begin(source: Arc<str>) -> Self {
        Self { source, asked: utc_now(), ahead_ns: 0 }
    }

    fn origin(&self) -> Origin {
        Origin { source: self.source.clone(), ahead_ns: self.ahead_ns }
    }
}

pub(crate) struct State {
    pub(crate) roster: Roster,
    pub(crate) restarts: Restarts,
    pub(crate) start: Start,
    /// Processes that this hub has started, and so has to wait for.
    pub(crate) children: BTreeMap<String, Child>,
    /// Virtual machines that have ended.
    pub(crate) gone_vms: GoneVms,
    /// The identities that are revoked, as PEM text: processes that come back get it.
    pub(crate) revoked: Option<Arc<str>>,
}

impl Shared {
    pub(crate) fn new(
        lab: Arc<dyn Lab>,
        identity: Identity,
        log: EventLog,
        papers: Arc<dyn Papers>,
        state: State,
    ) -> Self {
        let state = Mutex::new(state);
        let (due, start_moved) = (Notify::new(), Notify::new());
        Self { lab, identity, log, papers, began: Instant::now(), state, due, start_moved }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since the hub began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// An event of the hub's own.
    pub(crate) fn tell(&self, kind: EventKind) {
        self.log.publish(kind);
    }

    /// A process said something in a conversation.
    pub(crate) fn hear(&self, process: &str, talk: &mut Talk, line: &[u8]) -> Said {
        let now = utc_now();
        match read(line) {
            Heard::Hello(greeting) => {
                talk.ahead_ns = greeting.time.map_or(0, |time| time.ahead_of(talk.asked, now));
                self.meet(process, greeting, now);
            }
            Heard::Subscribed(told) => self.subscribed(process, talk, told, now),
            Heard::Early(head, _) if head.lost().is_some() => {
                self.surely_ready(process, now);
                return Said::Again;
            }
            // The event comes again, and is refused then.
            Heard::Early(head, _) if !self.is_its_own(process, &head) => {}
            Heard::Early(head, json) => {
                if head.event == READY {
                    self.state().roster.ready(process, now);
                }
                self.hear_of_start(process, &head, json);
            }
            // What a process has forgotten has the word that it is ready.
            Heard::EarlySubscribed(told) if told.forgotten > 0 => self.surely_ready(process, now),
            Heard::EarlySubscribed(_) => {}
            Heard::Revoked(Some(list)) => return self.learn_revoked(process, &list),
            Heard::Ordered | Heard::Revoked(None) => {}
            Heard::Event(head, json) => self.take_event(process, talk, head, json, now),
            Heard::OtherProtocol(version) => self.state().roster.other_protocol(process, version, now),
            Heard::Refused(why) => {
                self.state().roster.problem(process, &format!("it refuses the hub: {why}"));
            }
            Heard::Nonsense(why) => {
                self.state().roster.problem(process, &format!("it says what makes no sense: {why}"));
            }
        }
        Said::Nothing
    }

    /// Something happened to a process, as it says.
    fn take_event(&self, process: &str, talk: &Talk, head: EventHead, json: &str, now: Utc) {
        let novelty = self.state().roster.hear(process, &head, now);
        if novelty == Novelty::Known {
            return;
        }
        if let Novelty::NewAfterGap(lost) = novelty {
            let sequence = head.sequence.saturating_sub(1);
            let time = head.time().unwrap_or(now.less(-talk.ahead_ns));
            self.tell_lost(talk, &Event::lost(time, &talk.source, head.incarnation, sequence, lost));
        }
        if !self.is_its_own(process, &head) {
            return self.refuse(process, &head);
        }
        self.hear_of_start(process, &head, json);
        self.hear_of_vms(talk, &head, json, now);
        self.log.pass_on(head.event, talk.origin(), json);
    }

    /// Whether a process may tell an event: one of its own, and of an agent one about its own nodes.
    fn is_its_own(&self, process: &str, head: &EventHead) -> bool {
        let kind = self.state().roster.kind(process);
        let (node, description) = head.about();
        head.is_said_by(process, kind)
            && (head.area != "agent" || self.lab.may_tell_of(process, node, description))
    }

    /// Takes note of an event that is not the process's own. The first is logged, and every doubling.
    fn refuse(&self, process: &str, head: &EventHead) {
        let EventHead { source, event, guid, .. } = head;
        let count = self.state().roster.refuse_event(process);
        if count.is_power_of_two() {
            // A value of JSON escapes what is not text.
            let guid = guid.as_ref().map(tracing::field::display);
            let (source, event) = (source.as_str(), event.as_str());
            tracing::warn!(process, source, event, guid, count, "refused an event about another process");
        }
    }

    /// A process has a list of revoked identities. Where it is news it counts as if a client had brought it.
    fn learn_revoked(&self, process: &str, list: &str) -> Said {
        match self.papers.revoke(list) {
            Ok(true) => {}
            Ok(false) => return Said::Nothing,
            Err(error) => {
                tracing::warn!(process, %error, "its list of revoked identities is of no use");
                return Said::Nothing;
            }
        }
        self.state().revoked = Some(list.into());
        self.tell(EventKind::Process(ProcessEvent::IdentitiesRevoked));
        if let Err(error) = self.lab.keep_revoked(list) {
            tracing::warn!(%error, "cannot keep the list of revoked identities");
        }
        Said::Revoked
    }

    /// Takes what an event says of the laboratory's start.
    fn hear_of_start(&self, process: &str, head: &EventHead, json: &str) {
        let now = self.elapsed();
        match head.event.as_str() {
            READY => self.state().start.ready(process, now),
            LINKS => {
                let Some(links) = links_of(json) else { return };
                let mut state = self.state();
                state.roster.links(process, links);
                state.start.links(process, links, now);
            }
            "progress" if head.area == "sm" => {
                let Some(far) = progress_of(json) else { return };
                self.state().start.swept(far, now);
            }
            "subnet-up" if head.area == "sm" => {
                let Some(nodes) = nodes_of(json) else { return };
                self.state().start.subnet_up(nodes);
            }
            _ => return,
        }
        self.start_moved.notify_one();
    }

    /// Takes note of virtual machines that have ended, as their manager says.
    fn hear_of_vms(&self, talk: &Talk, head: &EventHead, json: &str, now: Utc) {
        if head.area != "vm" || !["vm-gone", "vm-lost"].contains(&head.event.as_str()) {
            return;
        }
        let Some(vm) = vm_of(json) else { return };
        let at = head.time().map_or(now, |time| time.less(talk.ahead_ns).min(now));
        self.state().gone_vms.ended(vm, at);
    }

    fn meet(&self, process: &str, greeting: Greeting, now: Utc) {
        let elapsed = self.elapsed();
        let mut state = self.state();
        let unnoticed = state.roster.met(process, greeting, now);
        state.restarts.alive(process, elapsed);
        drop(state);
        self.lab.met(process);
        if unnoticed {
            // Its lock is another life's by now: how this one ended is not known any more.
            self.tell_end(process, end_without_code(EndKind::Failed, now));
        }
    }

    fn subscribed(&self, process: &str, talk: &Talk, told: Subscribed, now: Utc) {
        let forgotten = self.state().roster.subscribed(process, told, now);
        if let Some((lost, last)) = forgotten {
            // Before all that it remembers: nothing of this life is older than the life.
            let time = Utc::from_nanos(told.incarnation.0);
            self.tell_lost(talk, &Event::lost(time, &talk.source, told.incarnation, last, lost));
        }
    }

    /// A process is ready, although it has not been heard to say so.
    fn surely_ready(&self, process: &str, now: Utc) {
        let elapsed = self.elapsed();
        let mut state = self.state();
        state.roster.ready(process, now);
        state.start.ready(process, elapsed);
        drop(state);
        self.start_moved.notify_one();
    }

    /// Says in a process's place that events of it were lost, and which was the last of them.
    fn tell_lost(&self, talk: &Talk, event: &Event) {
        self.log.pass_on(event.kind.name().to_owned(), talk.origin(), &event.to_json());
    }

    fn tell_end(&self, process: &str, end: ProcessEnd) {
        let (process, ProcessEnd { how, code, signal, .. }) = (process.to_owned(), end);
        self.tell(EventKind::Lab(LabEvent::ProcessEnded { process, how, code, signal }));
    }

    /// A process of a laboratory that starts cannot be started, or not be heard.
    pub(crate) fn start_fails(&self, process: &str, reason: &str) {
        if self.state().start.step() == Step::Done {
            return;
        }
        let (process, reason) = (process.to_owned(), reason.to_owned());
        self.tell(EventKind::Lab(LabEvent::StartFailed { process, reason }));
    }

    /// Whether a process that this hub started has not been waited for yet.
    pub(crate) fn is_unreaped(&self, process: &str) -> bool {
        let mut state = self.state();
        let child = state.children.get_mut(process);
        child.is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// A process does not run any more, as what it left says.
    pub(crate) fn gone(&self, process: &str, trace: Trace) {
        use std::os::unix::process::ExitStatusExt as _;
        let now = utc_now();
        let elapsed = self.elapsed();
        let mut state = self.state();
        let how = match trace {
            Trace::Ended(how) => how,
            Trace::Alive => return state.roster.fell_silent(process, now),
            Trace::NeverStarted if state.roster.dismiss(process) => return,
            Trace::NeverStarted => EndKind::Failed,
        };
        let status = state.children.remove(process).and_then(|mut child| child.try_wait().ok().flatten());
        let end = ProcessEnd {
            time: now,
            how,
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
        };
        let is_news = state.roster.ended(process, end);
        if is_news {
            state.restarts.ended(process, how, elapsed);
        } else if how != EndKind::Failed {
            state.restarts.cancel(process);
        }
        state.start.ended(process, elapsed);
        drop(state);
        self.start_moved.notify_one();
        if is_news {
            self.due.notify_one();
            self.tell_end(process, end);
        }
    }

    /// Waits for processes that this hub started and that have ended, so that the system forgets them; gives their names.
    pub(crate) fn reap(&self) -> Vec<String> {
        let mut state = self.state();
        // The status is kept until the process is taken note of.
        let ended = state.children.iter_mut().filter_map(|(name, child)| match child.try_wait() {
            Ok(Some(_)) => Some(name.clone()),
            _ => None,
        });
        ended.collect()
    }

    /// How the laboratory is.
    pub(crate) fn status(&self, page: &NamePage) -> LabStatus {
        let elapsed = self.elapsed();
        let state = self.state();
        let (mut processes, more) = state.roster.page(page);
        for line in &mut processes {
            let due = state.restarts.due(&line.name).map(|due| due.saturating_sub(elapsed));
            line.restart_in_ms = due.map(|due| u64::try_from(due.as_millis()).unwrap_or(u64::MAX));
        }
        let (expected, alive) = state.roster.expected();
        let totals = state.roster.totals();
        LabStatus {
            starting: state.start.step() != Step::Done,
            lab: self.identity.lab.clone(),
            version: self.identity.version.clone(),
            restart: state.restarts.policy(),
            expected,
            alive,
            states: state.roster.states().map(|(state, count)| (state.name().to_owned(), count)).into(),
            restarts: totals.restarts,
            events: totals.events,
            events_lost: totals.events_lost,
            processes,
            more,
        }
    }

    /// Counts by what the laboratory consists of now.
    pub(crate) fn read_plan(&self) -> Result<Answer, Error> {
        let planned = self.lab.plan().map_err(|error| Error::new(ErrorCode::Failed, error.to_string()))?;
        let mut state = self.state();
        for gone in state.roster.plan(&planned, utc_now()) {
            state.restarts.cancel(&gone);
        }
        Ok(Answer::Done)
    }

    /// Whether a process runs, as far as the hub knows.
    pub(crate) fn is_alive(&self, process: &str) -> Option<bool> {
        self.state().roster.state(process).map(ProcessState::is_alive)
    }
}
