//! A process's latest events, remembered once for all who want to hear of them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use weft_control::event::ProcessEvent;
use weft_control::process::Subscribed;
use weft_control::{Event, EventFilter, EventKind, Since};

use crate::{Clock, utc_now};

/// The most events that a process remembers.
pub const EVENTS_MAX: usize = 16_384;
/// The most bytes of JSON that a process remembers.
pub const EVENT_BYTES_MAX: usize = 8 << 20;
/// The most events of all sources that a merging log remembers.
pub const MERGED_EVENTS_MAX: usize = 131_072;
/// The most bytes of JSON that a merging log remembers.
pub const MERGED_BYTES_MAX: usize = 64 << 20;
/// Events that a reader takes at once.
const BATCH: usize = 64;

/// The events of one process, or of many. Clones are the same log; a driver publishes, and connections read, in any
/// thread.
///
/// A log that merges ([`EventLog::merging`]) gives each event its place in the stream of all sources, beside the number
/// that its source gave it.
#[derive(Clone, Debug)]
pub struct EventLog(Arc<Shared>);

/// Where an event that a merging log passes on is from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The process.
    pub source: Arc<str>,
    /// How many nanoseconds its wall clock is ahead of the log's.
    pub ahead_ns: i64,
}

#[derive(Debug)]
struct Shared {
    source: Arc<str>,
    clock: Clock,
    ring: Mutex<Ring>,
    changed: Notify,
}

#[derive(Debug)]
struct Ring {
    merges: bool,
    events_max: usize,
    bytes_max: usize,
    /// The place of the next event.
    next: u64,
    /// The number of the next event of this process itself; the same as its place where nothing is merged.
    own_next: u64,
    remembered: VecDeque<Remembered>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Remembered {
    name: Cow<'static, str>,
    source: Arc<str>,
    json: Arc<str>,
}

impl Ring {
    fn new(merges: bool, events_max: usize, bytes_max: usize) -> Self {
        let remembered = VecDeque::new();
        Self { merges, events_max, bytes_max, next: 0, own_next: 0, remembered, bytes: 0 }
    }

    fn first(&self) -> u64 {
        self.next - self.remembered.len() as u64
    }

    fn push(&mut self, event: Remembered) {
        self.bytes += event.json.len();
        self.remembered.push_back(event);
        self.next += 1;
        while self.remembered.len() > self.events_max || self.bytes > self.bytes_max {
            let Some(forgotten) = self.remembered.pop_front() else { break };
            self.bytes -= forgotten.json.len();
        }
    }
}

impl EventLog {
    /// An empty log of the process with this name.
    pub fn new(source: &str, clock: Clock) -> Self {
        Self::with(source, clock, Ring::new(false, EVENTS_MAX, EVENT_BYTES_MAX))
    }

    /// An empty log of a process that also passes on the events of others.
    pub fn merging(source: &str, clock: Clock) -> Self {
        Self::with(source, clock, Ring::new(true, MERGED_EVENTS_MAX, MERGED_BYTES_MAX))
    }

    fn with(source: &str, clock: Clock, ring: Ring) -> Self {
        let (source, changed) = (source.into(), Notify::new());
        Self(Arc::new(Shared { source, clock, ring: Mutex::new(ring), changed }))
    }

    /// Notes that something happened; also gives its JSON back for other uses.
    pub fn publish(&self, kind: EventKind) -> Arc<str> {
        let mut ring = self.ring();
        let place = ring.merges.then_some(ring.next);
        let event = self.event(ring.own_next, place, kind);
        let json = event.to_json();
        let json: Arc<str> = weft_wire::printable_json(&json).into();
        let source = self.0.source.clone();
        ring.own_next += 1;
        ring.push(Remembered { name: event.kind.name().into(), source, json: json.clone() });
        drop(ring);
        self.0.changed.notify_waiters();
        json
    }

    /// Passes on an event of another process in a log that merges: its name, where it is from, and the event itself as a JSON
    /// object in one line. Of kinds that this version does not know no more is needed.
    pub fn pass_on(&self, name: String, from: Origin, object: &str) {
        let Origin { source, ahead_ns } = from;
        let mut ring = self.ring();
        let rest = object.trim_start().strip_prefix('{').unwrap_or_default();
        let ahead = if ahead_ns == 0 { String::new() } else { format!("\"ahead_ns\":{ahead_ns},") };
        let json = format!("{{\"place\":{},{ahead}{rest}", ring.next);
        ring.push(Remembered { name: name.into(), source, json: weft_wire::printable_json(&json).into() });
        drop(ring);
        self.0.changed.notify_waiters();
    }

    /// How many events there have been.
    pub fn published(&self) -> u64 {
        self.ring().next
    }

    /// Begins to read.
    pub fn subscribe(&self, filter: &EventFilter) -> (Reader, Subscribed) {
        let ring = self.ring();
        let (first, next) = (ring.first(), ring.next);
        let wanted = match filter.from {
            Since::Now => next,
            Since::Start => 0,
            Since::After { incarnation, sequence } if incarnation == self.0.clock.incarnation() => {
                sequence.saturating_add(1).min(next)
            }
            Since::After { .. } => 0,
        };
        let cursor = wanted.max(first);
        let subscribed =
            Subscribed { incarnation: self.0.clock.incarnation(), next: cursor, forgotten: cursor - wanted };
        drop(ring);
        let (kinds, sources) = (filter.kinds.clone(), filter.sources.clone());
        let end = filter.past_only.then_some(next);
        (Reader { log: self.clone(), cursor, end, kinds, sources }, subscribed)
    }

    fn event(&self, sequence: u64, place: Option<u64>, kind: EventKind) -> Event {
        let Shared { source, clock, .. } = &*self.0;
        Event {
            time: utc_now(),
            source: source.to_string(),
            incarnation: clock.incarnation(),
            sequence,
            place,
            ahead_ns: None,
            monotonic_ns: clock.monotonic_ns(),
            kind,
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // A panic while it was held leaves a ring that is whole: it is changed by single pushes.
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One subscription: a place in the log.
#[derive(Debug)]
pub struct Reader {
    log: EventLog,
    cursor: u64,
    /// Behind the last event that it tells, if it does not go on for ever.
    end: Option<u64>,
    kinds: Vec<String>,
    sources: Vec<String>,
}

/// Some events, oldest first.
#[derive(Debug, Default)]
pub struct Batch {
    /// Their JSON.
    pub events: Vec<Arc<str>>,
    /// Events that were forgotten before they were read.
    pub skipped: u64,
    /// Nothing comes after these.
    pub is_last: bool,
}

impl Reader {
    /// Waits until there are events, and takes some. Cancelling loses none.
    pub async fn next(&mut self) -> Batch {
        let log = self.log.clone();
        loop {
            let changed = log.0.changed.notified();
            tokio::pin!(changed);
            // Listening before looking: what is published between the two is not missed.
            changed.as_mut().enable();
            let batch = self.take();
            if !batch.events.is_empty() || batch.skipped > 0 || batch.is_last {
                return batch;
            }
            changed.await;
        }
    }

    /// Takes some events that are there.
    fn take(&mut self) -> Batch {
        let ring = self.log.ring();
        let first = ring.first();
        let skipped = first.saturating_sub(self.cursor);
        let mut batch = Batch { events: Vec::new(), skipped, is_last: false };
        if skipped > 0 {
            self.cursor = first;
            let lost = EventKind::Process(ProcessEvent::EventsLost { count: skipped });
            // Its number is that of the last one lost; among events of many sources only the place is.
            let (sequence, place) =
                if ring.merges { (ring.own_next, Some(first - 1)) } else { (first - 1, None) };
            let lost = self.log.event(sequence, place, lost);
            batch
                .events
                .extend(serde_json::to_string(&lost).ok().map(|json| Arc::<str>::from(json.as_str())));
        }
        let end = self.end.unwrap_or(u64::MAX);
        while batch.events.len() < BATCH
            && self.cursor < end
            && let Some(event) = ring.remembered.get((self.cursor - first) as usize)
        {
            self.cursor += 1;
            if wants(&self.kinds, &event.name) && wants(&self.sources, &event.source) {
                batch.events.push(event.json.clone());
            }
        }
        batch.is_last = self.cursor >= end;
        batch
    }
}

/// An empty list wants everything.
fn wants(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|wanted| wanted == name)
}

#[cfg(test)]
mod tests {
    use weft_control::Incarnation;
    use weft_control::event::LabEvent;

    use super::*;

    fn log() -> EventLog {
        EventLog::new("a0", Clock::start())
    }

    fn ready() -> EventKind {
        EventKind::Process(ProcessEvent::Ready)
    }

    fn from(source: &str, ahead_ns: i64) -> Origin {
        Origin { source: source.into(), ahead_ns }
    }

    fn sequences(batch: &Batch) -> Vec<u64> {
        let sequence = |json: &Arc<str>| Event::parse(json).unwrap().sequence;
        batch.events.iter().map(sequence).collect()
    }

    #[test]
    fn a_reader_goes_on_where_it_was() {
        let log = log();
        (0..5).for_each(|_| drop(log.publish(ready())));
        let from = |from| log.subscribe(&EventFilter { from, ..EventFilter::default() });
        let incarnation = from(Since::Now).1.incarnation;
        assert_eq!(from(Since::Now).1.next, 5);
        assert_eq!(sequences(&from(Since::Start).0.take()), [0, 1, 2, 3, 4]);
        let after = Since::After { incarnation, sequence: 2 };
        assert_eq!(sequences(&from(after).0.take()), [3, 4]);
        let earlier_life = Since::After { incarnation: Incarnation(1), sequence: 2 };
        assert_eq!(sequences(&from(earlier_life).0.take()), [0, 1, 2, 3, 4]);
        let beyond = Since::After { incarnation, sequence: u64::MAX };
        assert!(from(beyond).0.take().events.is_empty());
    }

    #[test]
    fn only_wanted_kinds_are_told() {
        let log = log();
        log.publish(ready());
        log.publish(EventKind::Lab(LabEvent::ProgramDied { slot: 1 }));
        let filter =
            EventFilter { from: Since::Start, kinds: vec!["program-died".into()], ..EventFilter::default() };
        let (mut reader, _) = log.subscribe(&filter);
        assert_eq!(sequences(&reader.take()), [1]);
        assert!(reader.take().events.is_empty());
    }

    #[test]
    fn a_reader_of_the_past_comes_to_an_end() {
        let log = log();
        let filter = EventFilter { from: Since::Start, past_only: true, ..EventFilter::default() };
        assert!(log.subscribe(&filter).0.take().is_last);
        (0..BATCH as u64 + 5).for_each(|_| drop(log.publish(ready())));
        let (mut reader, _) = log.subscribe(&filter);
        log.publish(ready());
        let (first, second) = (reader.take(), reader.take());
        assert_eq!((first.is_last, first.events.len()), (false, BATCH));
        assert_eq!((second.is_last, second.events.len()), (true, 5), "what came later is not of the past");
        // One whose whole past is forgotten before it reads gets an event about that, and ends.
        let (mut slow, _) = log.subscribe(&filter);
        (0..2 * EVENTS_MAX).for_each(|_| drop(log.publish(ready())));
        let batch = slow.take();
        assert_eq!((batch.is_last, batch.events.len()), (true, 1));
        assert!(batch.skipped > 0);
        // Events of kinds that are not wanted are not sent, and the end is.
        let filter = EventFilter { kinds: vec!["program-died".into()], ..filter };
        let (mut reader, _) = log.subscribe(&filter);
        assert!(reader.take().is_last);
    }

    #[test]
    fn dropped_events_are_counted_and_the_rest_is_complete() {
        let log = log();
        log.publish(ready());
        let (mut reader, _) = log.subscribe(&EventFilter { from: Since::Start, ..EventFilter::default() });
        let all = EVENTS_MAX as u64 + 10;
        (1..all).for_each(|_| drop(log.publish(ready())));
        let batch = reader.take();
        assert_eq!(batch.skipped, 10);
        let lost = Event::parse(&batch.events[0]).unwrap();
        assert_eq!(lost.kind, EventKind::Process(ProcessEvent::EventsLost { count: 10 }));
        let mut seen = sequences(&batch);
        loop {
            let batch = reader.take();
            if batch.events.is_empty() {
                break;
            }
            seen.extend(sequences(&batch));
        }
        assert_eq!(seen, (9..all).collect::<Vec<_>>(), "the gap's number, and every event behind it once");
        let (_, late) = log.subscribe(&EventFilter { from: Since::Start, ..EventFilter::default() });
        assert_eq!((late.next, late.forgotten), (10, 10));
    }

    #[test]
    fn long_events_are_forgotten_by_their_length() {
        let log = log();
        let target = "x".repeat(1 << 20);
        for _ in 0..20 {
            log.publish(EventKind::Process(ProcessEvent::Failed { reason: target.clone() }));
        }
        let ring = log.ring();
        assert!(ring.bytes <= EVENT_BYTES_MAX && ring.remembered.len() == 7, "{}", ring.remembered.len());
        assert_eq!(ring.bytes, ring.remembered.iter().map(|event| event.json.len()).sum::<usize>());
    }

    #[test]
    fn a_merging_log_tells_how_far_a_sources_clock_is_ahead() {
        let log = EventLog::merging("hub", Clock::start());
        let sm = EventLog::new("sm", Clock::start());
        for ahead_ns in [0, 3_600, -7] {
            log.pass_on("process-ready".into(), from("sm", ahead_ns), &sm.publish(ready()));
        }
        let (mut reader, _) = log.subscribe(&EventFilter { from: Since::Start, ..EventFilter::default() });
        let told: Vec<Event> =
            reader.take().events.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
        let ahead: Vec<Option<i64>> = told.iter().map(|event| event.ahead_ns).collect();
        assert_eq!(ahead, [None, Some(3_600), Some(-7)]);
        let moved = |event: &Event| event.time.as_nanos() as i64 - event.moment().as_nanos() as i64;
        assert_eq!(told.iter().map(moved).collect::<Vec<_>>(), [0, 3_600, -7]);
    }

    #[test]
    fn a_merging_log_tells_places_beside_the_sources_own_numbers() {
        let log = EventLog::merging("hub", Clock::start());
        let sm = EventLog::new("sm", Clock::start());
        log.publish(ready());
        for _ in 0..2 {
            log.pass_on("process-ready".into(), from("sm", 0), &sm.publish(ready()));
        }
        log.publish(ready());
        let unknown = "{\"source\":\"x\",\"event\":\"news\"}";
        log.pass_on("news".into(), from("x", 0), unknown);
        let read = |sources: &[&str], from| {
            let sources = sources.iter().map(|&source| source.into()).collect();
            let (mut reader, _) = log.subscribe(&EventFilter { from, sources, ..EventFilter::default() });
            let told = |json: &Arc<str>| {
                let event: serde_json::Value = serde_json::from_str(json).unwrap();
                (
                    event["place"].as_u64(),
                    event["source"].as_str().unwrap().to_owned(),
                    event["sequence"].as_u64(),
                )
            };
            reader.take().events.iter().map(told).collect::<Vec<_>>()
        };
        let (hub, sm, x) = ("hub".to_owned(), "sm".to_owned(), "x".to_owned());
        let all = [
            (Some(0), hub.clone(), Some(0)),
            (Some(1), sm.clone(), Some(0)),
            (Some(2), sm.clone(), Some(1)),
            (Some(3), hub.clone(), Some(1)),
            (Some(4), x, None),
        ];
        assert_eq!(read(&[], Since::Start), all);
        assert_eq!(read(&["sm"], Since::Start), all[1..3]);
        let incarnation = log.0.clock.incarnation();
        assert_eq!(read(&[], Since::After { incarnation, sequence: 2 }), all[3..]);
    }
}
