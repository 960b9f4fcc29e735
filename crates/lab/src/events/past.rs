//! Past events that processes remember, oldest first.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::hub::{LabStatus, ProcessLine, ProcessState};
use weft_control::process::Subscribed;
use weft_control::{Answer, EventFilter, Incarnation, Request, Since, Utc};
use weft_process::{Client, ClientError, MERGED_BYTES_MAX, MERGED_EVENTS_MAX, poll_for, utc_now};

use crate::agents::{PATIENCE, WIDTH};
use crate::events::talk::Talk;
use crate::events::told::{Line, Seen, Told};
use crate::site::status::lab_status;

/// The source of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// The hub, for all.
    Hub,
    /// Every process for itself, as no hub answers.
    Processes,
}

/// The events that were read.
#[derive(Debug, Default)]
pub struct Past {
    /// Oldest first.
    pub told: Vec<Told>,
    /// Processes that run and did not tell.
    pub silent: Vec<String>,
    /// Behind the last event of each that sent its events.
    pub(crate) reached: BTreeMap<String, (Incarnation, u64)>,
}

/// What the laboratory remembers of these kinds, or of all if none is named; and who sent it.
///
/// # Errors
/// When the laboratory has no folder of control sockets, or the system refuses to wait.
pub fn remembered(lab: &LabFolder, kinds: &[&str]) -> anyhow::Result<(Past, Teller)> {
    if let Some(mut past) = of_hub(lab, kinds, Since::Start)? {
        if !has_heard_all(lab) {
            let own = of_processes(lab, kinds, |_| Since::Start)?;
            past.merge(own);
        }
        return Ok((past, Teller::Hub));
    }
    Ok((of_processes(lab, kinds, |_| Since::Start)?, Teller::Processes))
}

/// A hub that is younger may still be reading what processes remember.
const HEARS_FOR: Duration = Duration::from_secs(2);

/// Whether the hub has had the time to hear what happened before it began, and has met all that run.
fn has_heard_all(lab: &LabFolder) -> bool {
    let hello = Client::connect(&lab.control(HUB)).and_then(|mut hub| hub.ask(Request::Hello, PATIENCE));
    let is_old = |age: u64| Duration::from_nanos(age) >= HEARS_FOR;
    let is_old = matches!(hello, Ok(Answer::Hello(hello)) if is_old(hello.monotonic_ns));
    let unheard = |line: &ProcessLine| matches!(line.state, ProcessState::Starting | ProcessState::Silent);
    let has_all = |status: LabStatus| !status.starting && !status.processes.iter().any(unheard);
    is_old && lab_status(lab).is_some_and(has_all)
}

impl Past {
    /// Adds what others tell, of which much may be known.
    fn merge(&mut self, own: Self) {
        let mut all = std::mem::take(&mut self.told);
        all.extend(own.told);
        all.sort_by_key(|told| told.moment);
        let mut seen = Seen::default();
        self.told = all.into_iter().filter(|told| seen.takes(told)).collect();
        self.silent.extend(own.silent);
    }
}

/// What the hub remembers; `None` where none answers.
pub(crate) fn of_hub(lab: &LabFolder, kinds: &[&str], from: Since) -> anyhow::Result<Option<Past>> {
    let past = ask(lab, vec![HUB.to_owned()], kinds, |_| from)?;
    Ok(Some(past).filter(|past| past.reached.contains_key(HUB)))
}

/// What all processes that have a control socket remember, each for itself.
pub(crate) fn of_processes(
    lab: &LabFolder,
    kinds: &[&str],
    from: impl Fn(&str) -> Since,
) -> anyhow::Result<Past> {
    ask(lab, processes(lab)?, kinds, from)
}

/// The processes that have a control socket, all but the hub.
fn processes(lab: &LabFolder) -> anyhow::Result<Vec<String>> {
    let folder = lab.control_folder();
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name != HUB && !name.starts_with('.')).collect())
}

fn ask(
    lab: &LabFolder,
    names: Vec<String>,
    kinds: &[&str],
    from: impl Fn(&str) -> Since,
) -> anyhow::Result<Past> {
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let wants_all = kinds.is_empty();
    let mut waiting = VecDeque::from(names);
    let (total, mut work) = (waiting.len(), lab.front().listener.work());
    let (mut asked, mut past, mut kept) = (Vec::<Asked>::new(), Past::default(), Kept::default());
    loop {
        while asked.len() < WIDTH
            && let Some(name) = waiting.pop_front()
        {
            let (kinds, from) = (kinds.clone(), from(&name));
            let filter = EventFilter { from, kinds, past_only: true, ..EventFilter::default() };
            match Talk::begin(lab, &name, filter) {
                Ok(talk) => asked.push(Asked::new(name, talk, wants_all)),
                // It does not run.
                Err(ClientError::Connect { .. }) => {}
                Err(_) => past.silent.push(name),
            }
        }
        let Some(until) = asked.iter().map(|asked| asked.until).min() else { break };
        work.is_at(&|| format!("asking processes: {} of {total}", total - waiting.len() - asked.len()));
        let mut fds: Vec<PollFd<'_>> =
            asked.iter().map(|asked| PollFd::new(&asked.talk, PollFlags::IN)).collect();
        poll_for(&mut fds, Some(until.saturating_duration_since(Instant::now())))?;
        asked.retain_mut(|asked| match asked.hear(&mut kept) {
            Progress::Tells => true,
            Progress::Told(reached) => {
                past.reached.insert(asked.name.clone(), reached);
                false
            }
            Progress::Ended => false,
            Progress::Silent => {
                past.silent.push(asked.name.clone());
                false
            }
        });
    }
    past.told = kept.into_ordered();
    Ok(past)
}

/// One process that has been asked and has not sent everything.
struct Asked {
    name: String,
    talk: Talk,
    until: Instant,
    /// Whether gaps are wanted, too.
    wants_gaps: bool,
    subscribed: Option<Subscribed>,
    /// Behind the last event.
    reached: Option<(Incarnation, u64)>,
}

/// How far a process is.
enum Progress {
    Tells,
    /// It has sent all, up to here.
    Told((Incarnation, u64)),
    /// It ended before it had sent all.
    Ended,
    Silent,
}

impl Asked {
    fn new(name: String, talk: Talk, wants_gaps: bool) -> Self {
        let until = Instant::now() + PATIENCE;
        Self { name, talk, until, wants_gaps, subscribed: None, reached: None }
    }

    /// Takes what has come.
    fn hear(&mut self, kept: &mut Kept) -> Progress {
        loop {
            let line = match self.talk.next() {
                Ok(Some(line)) => line,
                Ok(None) if self.until <= Instant::now() => return Progress::Silent,
                Ok(None) => return Progress::Tells,
                Err(ClientError::Closed | ClientError::Io(_)) => return Progress::Ended,
                Err(_) => return Progress::Silent,
            };
            self.until = Instant::now() + PATIENCE;
            match line {
                Line::Subscribed(told) => {
                    self.reached = Some((told.incarnation, told.next));
                    self.subscribed = Some(told).filter(|told| told.forgotten > 0 && self.wants_gaps);
                }
                Line::Event(told) => self.take(*told, kept),
                Line::Ended => {
                    self.tell_gap(utc_now(), kept);
                    return self.reached.map_or(Progress::Silent, Progress::Told);
                }
                Line::Refused(_) => return Progress::Silent,
                Line::Hello(_) | Line::Nonsense => {}
            }
        }
    }

    fn take(&mut self, told: Told, kept: &mut Kept) {
        self.tell_gap(told.moment, kept);
        if let Some((_, next)) = &mut self.reached {
            // The hub numbers the events of all by their places.
            *next = told.head.place().unwrap_or(told.head.sequence).saturating_add(1);
        }
        kept.put(told);
    }

    /// What it has forgotten comes before the first that it remembers.
    fn tell_gap(&mut self, time: Utc, kept: &mut Kept) {
        if let Some(told) = self.subscribed.take() {
            kept.put(Told::lost(time, &self.name, told, told.forgotten));
        }
    }
}

/// Events in order of time, no more of them than a hub remembers.
#[derive(Default)]
struct Kept {
    by_time: BTreeMap<(Utc, u64), Told>,
    arrived: u64,
    bytes: usize,
    left_out: u64,
}

impl Kept {
    fn put(&mut self, told: Told) {
        self.bytes += told.json.len();
        self.by_time.insert((told.moment, self.arrived), told);
        self.arrived += 1;
        while self.by_time.len() > MERGED_EVENTS_MAX || self.bytes > MERGED_BYTES_MAX {
            let Some((_, oldest)) = self.by_time.pop_first() else { break };
            self.bytes -= oldest.json.len();
            self.left_out += 1;
        }
    }

    /// All of them; those that are left out are reported as lost.
    fn into_ordered(self) -> Vec<Told> {
        let first = self.by_time.first_key_value().map(|((time, _), _)| *time);
        let lost = first.filter(|_| self.left_out > 0);
        let lost = lost.map(|time| Told::lost(time, "weft", Subscribed::default(), self.left_out));
        lost.into_iter().chain(self.by_time.into_values()).collect()
    }
}

#[cfg(test)]
mod tests {
    use weft_control::event::ProcessEvent;
    use weft_control::{EventKind, ReplyLine};

    use super::*;

    fn told(nanos: u64, source: &str) -> Told {
        Told::lost(Utc::from_nanos(nanos), source, Subscribed::default(), 1)
    }

    /// A process that answers the first line with these, and then neither goes nor says more.
    fn process(lab: &LabFolder, name: &str, says: &[String]) {
        use std::io::{BufRead as _, Write as _};
        let listener = std::os::unix::net::UnixListener::bind(lab.control(name)).unwrap();
        let says = says.concat();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                std::io::BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                (&stream).write_all(says.as_bytes()).unwrap();
                kept.push(stream);
            }
        });
    }

    fn event(source: &str, sequence: u64, second: u64) -> String {
        format!(
            "{{\"v\":1,\"id\":1,\"event\":{{\"time\":\"2030-01-01T00:00:0{second}.000000000Z\",\"source\":\"{source}\",\
             \"incarnation\":\"0000000000000007\",\"sequence\":{sequence},\"event\":\"x\"}}}}\n"
        )
    }

    fn subscribed(next: u64, forgotten: u64) -> String {
        let answer = Subscribed { incarnation: Incarnation(7), next, forgotten };
        ReplyLine::new(Some(1), Ok(Answer::Subscribed(answer))).to_line()
    }

    #[test]
    fn with_a_hub_of_another_version_processes_are_asked() {
        let base = tempfile::tempdir().unwrap();
        let lab = LabFolder::of_run(&base.path().join("lab"), "x").unwrap();
        lab.prepare_for("sm").unwrap();
        let refusal = "{\"v\":2,\"id\":1,\"error\":{\"code\":\"unknown-version\",\"message\":\"no\"}}\n";
        process(&lab, HUB, &[refusal.to_owned()]);
        let odd = "{\"v\":1,\"id\":1,\"event\":{\"time\":\"noon\"}}\n".to_owned();
        let ended = ReplyLine::new(Some(1), Ok(Answer::EventsEnded)).to_line();
        process(&lab, "sm", &[subscribed(3, 3), event("sm", 3, 2), odd, event("sm", 4, 5), ended.clone()]);
        process(&lab, "pm", &[subscribed(0, 0), event("pm", 0, 4), ended]);
        // One that is dead has left its socket.
        drop(std::os::unix::net::UnixListener::bind(lab.control("a0")).unwrap());
        let (past, teller) = remembered(&lab, &[]).unwrap();
        assert_eq!((teller, past.silent), (Teller::Processes, Vec::<String>::new()));
        let told: Vec<_> =
            past.told.iter().map(|told| (told.head.source.as_str(), told.head.sequence)).collect();
        assert_eq!(told, [("sm", 2), ("sm", 3), ("pm", 0), ("sm", 4)]);
        let lost = EventKind::Process(ProcessEvent::EventsLost { count: 3 });
        assert_eq!(past.told[0].kind(), Some(lost), "what the process has forgotten");
        assert_eq!(past.reached["sm"], (Incarnation(7), 5));
    }

    #[test]
    fn a_process_whose_clock_is_ahead_tells_no_later() {
        let base = tempfile::tempdir().unwrap();
        let lab = LabFolder::of_run(&base.path().join("lab"), "x").unwrap();
        lab.prepare_for("sm").unwrap();
        let hour = 3_600_000_000_000;
        let now = utc_now();
        let tells = |source: &str, ahead_ns: i64, ago: u64| {
            let clock = |moment: Utc| moment.less(-ahead_ns).rfc3339(9);
            let time = clock(Utc::from_nanos(now.as_nanos() - ago * hour as u64 / 60));
            let hello = format!(
                "{{\"v\":1,\"id\":1,\"answer\":{{\"type\":\"hello\",\"time\":\"{}\"}}}}\n",
                clock(now)
            );
            let event = event(source, 0, 0).replace("2030-01-01T00:00:00.000000000Z", &time);
            [hello, subscribed(0, 0), event, ReplyLine::new(Some(1), Ok(Answer::EventsEnded)).to_line()]
        };
        process(&lab, "sm", &tells("sm", hour, 3));
        process(&lab, "pm", &tells("pm", -hour, 1));
        process(&lab, "a0", &tells("a0", 0, 2));
        let (past, _) = remembered(&lab, &[]).unwrap();
        let order: Vec<&str> = past.told.iter().map(|told| told.head.source.as_str()).collect();
        assert_eq!(order, ["sm", "a0", "pm"]);
    }

    #[test]
    fn events_are_put_in_order_and_the_oldest_are_left_out() {
        let mut kept = Kept::default();
        for (nanos, source) in [(5, "a"), (3, "b"), (5, "c"), (4, "d")] {
            kept.put(told(nanos, source));
        }
        let order: Vec<String> = kept.into_ordered().into_iter().map(|told| told.head.source).collect();
        assert_eq!(order, ["b", "d", "a", "c"], "what happened at one time stays as it came");
        let mut kept = Kept::default();
        let all = MERGED_EVENTS_MAX as u64 + 7;
        (0..all).for_each(|nanos| kept.put(told(all - nanos, "a")));
        let ordered = kept.into_ordered();
        assert_eq!(ordered.len(), MERGED_EVENTS_MAX + 1);
        let lost = EventKind::Process(ProcessEvent::EventsLost { count: 7 });
        assert_eq!((ordered[0].head.source.as_str(), ordered[0].kind()), ("weft", Some(lost)));
        assert_eq!(ordered[1].moment, Utc::from_nanos(8));
    }
}
