//! A process's latest events, remembered once for all who want to hear of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use weft_control::event::ProcessEvent;
use weft_control::process::Subscribed;
use weft_control::{Event, EventFilter, EventKind, Since};

use crate::{Clock, utc_now};

/// The most events that are remembered.
pub const EVENTS_MAX: usize = 16_384;
/// The most bytes of JSON that are remembered.
pub const EVENT_BYTES_MAX: usize = 8 << 20;
/// Events that a reader takes at once.
const BATCH: usize = 64;

/// The events of one process. Clones are the same log; a driver publishes, and connections read, in any thread.
#[derive(Clone, Debug)]
pub struct EventLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    source: String,
    clock: Clock,
    ring: Mutex<Ring>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    /// The number of the next event.
    next: u64,
    remembered: VecDeque<Remembered>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Remembered {
    name: &'static str,
    json: Arc<str>,
}

impl Ring {
    fn first(&self) -> u64 {
        self.next - self.remembered.len() as u64
    }

    fn push(&mut self, event: Remembered) {
        self.bytes += event.json.len();
        self.remembered.push_back(event);
        self.next += 1;
        while self.remembered.len() > EVENTS_MAX || self.bytes > EVENT_BYTES_MAX {
            let Some(forgotten) = self.remembered.pop_front() else { break };
            self.bytes -= forgotten.json.len();
        }
    }
}

impl EventLog {
    /// An empty log of the process with this name.
    pub fn new(source: &str, clock: Clock) -> Self {
        let (ring, changed) = (Mutex::default(), Notify::new());
        Self(Arc::new(Shared { source: source.to_owned(), clock, ring, changed }))
    }

    /// Notes that something happened; also gives its JSON back for other uses.
    pub fn publish(&self, kind: EventKind) -> Arc<str> {
        let mut ring = self.ring();
        let event = self.event(ring.next, kind);
        let json = serde_json::to_string(&event).expect("an event holds nothing that JSON cannot say");
        let json: Arc<str> = weft_wire::printable_json(&json).into();
        ring.push(Remembered { name: event.kind.name(), json: json.clone() });
        drop(ring);
        self.0.changed.notify_waiters();
        json
    }

    /// How many events there have been.
    pub fn published(&self) -> u64 {
        self.ring().next
    }

    /// Begins to read.
    pub(crate) fn subscribe(&self, filter: &EventFilter) -> (Reader, Subscribed) {
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
        (Reader { log: self.clone(), cursor, kinds: filter.kinds.clone() }, subscribed)
    }

    fn event(&self, sequence: u64, kind: EventKind) -> Event {
        let Shared { source, clock, .. } = &*self.0;
        Event {
            time: utc_now(),
            source: source.clone(),
            incarnation: clock.incarnation(),
            sequence,
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
pub(crate) struct Reader {
    log: EventLog,
    cursor: u64,
    kinds: Vec<String>,
}

/// Some events, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Their JSON.
    pub(crate) events: Vec<Arc<str>>,
    /// Events that were forgotten before they were read.
    pub(crate) skipped: u64,
}

impl Reader {
    /// Waits until there are events, and takes some. Cancelling loses none.
    pub(crate) async fn next(&mut self) -> Batch {
        let log = self.log.clone();
        loop {
            let changed = log.0.changed.notified();
            tokio::pin!(changed);
            // Listening before looking: what is published between the two is not missed.
            changed.as_mut().enable();
            let batch = self.take();
            if !batch.events.is_empty() || batch.skipped > 0 {
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
        let mut batch = Batch { events: Vec::new(), skipped };
        if skipped > 0 {
            self.cursor = first;
            let lost = EventKind::Process(ProcessEvent::EventsLost { count: skipped });
            let lost = self.log.event(first - 1, lost);
            batch
                .events
                .extend(serde_json::to_string(&lost).ok().map(|json| Arc::<str>::from(json.as_str())));
        }
        while batch.events.len() < BATCH
            && let Some(event) = ring.remembered.get((self.cursor - first) as usize)
        {
            self.cursor += 1;
            if self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == event.name) {
                batch.events.push(event.json.clone());
            }
        }
        batch
    }
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

    fn sequences(batch: &Batch) -> Vec<u64> {
        let sequence = |json: &Arc<str>| serde_json::from_str::<Event>(json).unwrap().sequence;
        batch.events.iter().map(sequence).collect()
    }

    #[test]
    fn a_reader_goes_on_where_it_was() {
        let log = log();
        (0..5).for_each(|_| drop(log.publish(ready())));
        let from = |from| log.subscribe(&EventFilter { from, kinds: Vec::new() });
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
        let filter = EventFilter { from: Since::Start, kinds: vec!["program-died".into()] };
        let (mut reader, _) = log.subscribe(&filter);
        assert_eq!(sequences(&reader.take()), [1]);
        assert!(reader.take().events.is_empty());
    }

    #[test]
    fn what_is_forgotten_is_counted_and_the_rest_is_whole() {
        let log = log();
        log.publish(ready());
        let (mut reader, _) = log.subscribe(&EventFilter { from: Since::Start, kinds: Vec::new() });
        let all = EVENTS_MAX as u64 + 10;
        (1..all).for_each(|_| drop(log.publish(ready())));
        let batch = reader.take();
        assert_eq!(batch.skipped, 10);
        let lost: Event = serde_json::from_str(&batch.events[0]).unwrap();
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
        let (_, late) = log.subscribe(&EventFilter { from: Since::Start, kinds: Vec::new() });
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
}
