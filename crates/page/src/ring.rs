//! The last ten minutes of what the page showed, in memory: key frames and patches, bounded in time and in bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::merge::apply;

/// How long is kept, in milliseconds.
pub const KEPT: u64 = 600_000;
/// From one key frame to the next, in milliseconds.
pub(crate) const FRAME_EVERY: u64 = 10_000;
/// What lines may take together.
const BYTES_MAX: usize = 64 << 20;
/// The part of it that key frames may take, as its divisor: large states have fewer of them.
const FRAME_SHARE: u64 = 2;
/// Marks that are kept.
const MARKS_MAX: usize = 1000;

/// A moment that a time bar shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When.
    pub at_ms: u64,
    /// The kind of event.
    pub kind: String,
    /// What happened, for people.
    pub text: String,
}

/// What can be played.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// From here.
    pub from_ms: u64,
    /// To here.
    pub to_ms: u64,
    /// Whether more comes.
    pub live: bool,
    /// What happened meanwhile.
    pub marks: Vec<Mark>,
}

/// What a line of the ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A change.
    Patch,
    /// The state as it was made by the changes before: for seeking.
    Frame,
    /// The state after a gap.
    Begin,
    /// The laboratory does not answer.
    Gone,
}

/// A line with its moment.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at_ms: u64,
    pub(crate) kind: Kind,
    pub(crate) json: Arc<str>,
}

impl Entry {
    fn is_key(&self) -> bool {
        matches!(self.kind, Kind::Frame | Kind::Begin)
    }
}

/// The lines, each with the number that it had at first.
#[derive(Debug)]
pub(crate) struct Ring {
    entries: VecDeque<Entry>,
    /// The number of the first entry that is kept.
    first: u64,
    bytes: usize,
    bytes_max: usize,
    marks: VecDeque<Mark>,
    /// Marks that there have been.
    marks_total: u64,
    last_frame_ms: u64,
    frame_every: u64,
    /// Lines dropped before their time, as they took too much room.
    pub(crate) crowded_out: u64,
}

/// The number of the first line: those that are found later to have come before have lower ones.
const FIRST: u64 = 1 << 32;

impl Default for Ring {
    fn default() -> Self {
        Self::of(BYTES_MAX)
    }
}

impl Ring {
    /// One of at most this number of bytes.
    pub(crate) fn of(bytes_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            first: FIRST,
            bytes: 0,
            bytes_max,
            marks: VecDeque::new(),
            marks_total: 0,
            last_frame_ms: 0,
            frame_every: 0,
            crowded_out: 0,
        }
    }

    /// The number of the oldest line, or of the next one where there is none.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Puts lines before all others, as far as they are older.
    pub(crate) fn recall(&mut self, mut older: Vec<Entry>) {
        if let Some(first) = self.entries.front() {
            let now_ms = first.at_ms;
            older.retain(|entry| entry.at_ms <= now_ms);
        }
        for entry in older.into_iter().rev() {
            self.bytes += entry.json.len();
            self.first -= 1;
            self.entries.push_front(entry);
        }
        let now_ms = self.entries.back().map_or(0, |entry| entry.at_ms);
        self.drop_old(now_ms);
    }

    /// The number that the next line gets.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The line of this number, unless it is gone or not there yet.
    pub(crate) fn get(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        if entry.is_key() {
            self.last_frame_ms = entry.at_ms;
            // As many frames as ten minutes may have fit into their share.
            let frames_max = self.bytes_max as u64 / FRAME_SHARE;
            let least = (entry.json.len() as u64).saturating_mul(KEPT) / frames_max.max(1);
            self.frame_every = least.max(FRAME_EVERY);
        }
        self.bytes += entry.json.len();
        let now_ms = entry.at_ms;
        self.entries.push_back(entry);
        self.drop_old(now_ms);
    }

    /// Whether a key frame is due.
    pub(crate) fn wants_frame(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.last_frame_ms) >= self.frame_every.max(FRAME_EVERY)
    }

    pub(crate) fn mark(&mut self, marks: Vec<Mark>) {
        self.marks_total += marks.len() as u64;
        self.marks.extend(marks);
        let extra = self.marks.len().saturating_sub(MARKS_MAX);
        self.marks.drain(..extra);
    }

    /// The marks behind the first `seen` of all, and how many there have been.
    pub(crate) fn marks_behind(&self, seen: u64) -> (Vec<Mark>, u64) {
        let new = usize::try_from(self.marks_total.saturating_sub(seen)).unwrap_or(usize::MAX);
        let known = self.marks.len().saturating_sub(new);
        (self.marks.iter().skip(known).cloned().collect(), self.marks_total)
    }

    /// Drops what is too old or too much, up to a key frame: what is left begins with one.
    fn drop_old(&mut self, now_ms: u64) {
        let is_old = |entry: &Entry| entry.at_ms.saturating_add(KEPT) < now_ms;
        loop {
            let crowded = self.bytes > self.bytes_max;
            let Some(second) = self.entries.iter().skip(1).position(Entry::is_key) else { return };
            let until = second + 1;
            if !(crowded || is_old(&self.entries[until])) {
                return;
            }
            for entry in self.entries.drain(..until) {
                self.bytes -= entry.json.len();
            }
            self.first += until as u64;
            self.crowded_out += if crowded { until as u64 } else { 0 };
        }
    }

    /// What can be played.
    pub(crate) fn span(&self) -> Span {
        let from_ms = self.entries.front().map_or(0, |entry| entry.at_ms);
        let to_ms = self.entries.back().map_or(0, |entry| entry.at_ms);
        let marks = self.marks.iter().filter(|mark| mark.at_ms >= from_ms).cloned().collect();
        Span { from_ms, to_ms, live: true, marks }
    }

    /// The state at a moment: of one before all others, the first. With it comes the number of the line behind.
    pub(crate) fn at(&self, ms: u64) -> Option<(Value, u64)> {
        let behind = self.entries.partition_point(|entry| entry.at_ms <= ms).max(1);
        let key = self.entries.iter().take(behind).rposition(Entry::is_key)?;
        let mut state = parsed(&self.entries[key], "key")?;
        for entry in self.entries.range(key + 1..behind).filter(|entry| entry.kind == Kind::Patch) {
            apply(&mut state, &parsed(entry, "patch")?);
        }
        Some((state, self.first + behind as u64))
    }
}

fn parsed(entry: &Entry, member: &str) -> Option<Value> {
    let mut line: Value = serde_json::from_str(&entry.json).ok()?;
    Some(line[member].take())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(at_ms: u64, kind: Kind, line: &Value) -> Entry {
        Entry { at_ms, kind, json: line.to_string().into() }
    }

    #[test]
    fn ten_minutes_are_kept_and_begin_with_a_key() {
        let mut ring = Ring::default();
        for second in 0..2000_u64 {
            let at = second * 1000;
            if ring.next() == FIRST || ring.wants_frame(at) {
                ring.push(entry(at, Kind::Frame, &json!({"key": {"n": second}})));
            } else {
                ring.push(entry(at, Kind::Patch, &json!({"patch": {"n": second}})));
            }
        }
        let span = ring.span();
        assert_eq!(span.to_ms, 1_999_000);
        assert!((KEPT..KEPT + 20_000).contains(&(span.to_ms - span.from_ms)), "{span:?}");
        for second in [span.from_ms / 1000, 1500, 1777, 1999] {
            assert_eq!(ring.at(second * 1000 + 500).unwrap().0, json!({"n": second}));
        }
        assert_eq!(ring.at(0).unwrap().0["n"], span.from_ms / 1000, "before all");
        assert_eq!(ring.at(u64::MAX).unwrap().0, json!({"n": 1999}));
        assert!(ring.get(ring.first - 1).is_none() && ring.get(ring.next()).is_none());
    }

    #[test]
    fn large_states_are_kept_for_less_long_but_bounded() {
        let mut ring = Ring::default();
        let large = "x".repeat(8 << 20);
        for second in 0..600_u64 {
            let at = second * 1000;
            if ring.next() == FIRST || ring.wants_frame(at) {
                ring.push(entry(at, Kind::Frame, &json!({"key": {"large": large}})));
            } else {
                ring.push(entry(at, Kind::Patch, &json!({"patch": {"n": second}})));
            }
            assert!(ring.bytes <= BYTES_MAX + (9 << 20), "{}", ring.bytes);
        }
        assert!(ring.frame_every > FRAME_EVERY, "frames are rarer");
        for second in 0..40 {
            let one = json!({"key": {"large": large, "n": second}});
            ring.push(entry(600_000 + second * 1000, Kind::Begin, &one));
        }
        assert!(ring.crowded_out > 0 && ring.bytes <= BYTES_MAX + (9 << 20));
    }

    #[test]
    fn marks_are_bounded() {
        let mut ring = Ring::default();
        ring.push(entry(5, Kind::Begin, &json!({"key": {}})));
        ring.mark((0..5000).map(|at_ms| Mark { at_ms, ..Mark::default() }).collect());
        assert_eq!(ring.span().marks.len(), MARKS_MAX);
        let (new, all) = ring.marks_behind(4998);
        assert_eq!((new.len(), new[0].at_ms, all), (2, 4998, 5000));
        assert_eq!(ring.marks_behind(0).0.len(), MARKS_MAX, "those that are kept");
    }

    #[test]
    fn what_is_found_later_to_have_come_before_is_put_in_front() {
        let mut ring = Ring::of(1 << 20);
        ring.push(entry(50_000, Kind::Begin, &json!({"key": {"n": 50}})));
        ring.push(entry(51_000, Kind::Patch, &json!({"patch": {"n": 51}})));
        let next = ring.next();
        ring.recall(vec![
            entry(10_000, Kind::Begin, &json!({"key": {"n": 10}})),
            entry(11_000, Kind::Patch, &json!({"patch": {"n": 11}})),
            entry(50_500, Kind::Patch, &json!({"patch": {"n": 9}})),
        ]);
        assert_eq!((ring.next(), ring.span().from_ms), (next, 10_000), "readers keep their places");
        let shown = [10_000, 11_000, 50_000, 50_900, 51_000].map(|ms| ring.at(ms).unwrap().0["n"].clone());
        assert_eq!(shown, [10, 11, 50, 50, 51].map(Value::from));
        let large = json!({"key": {"large": "x".repeat(1 << 20)}});
        ring.recall(vec![entry(1000, Kind::Begin, &large)]);
        assert_eq!(ring.span().from_ms, 10_000, "there is no room for it");
    }
}
