//! The stage that all readers look at: the state as it is, and the lines that led there. A reader has a place among the lines and no queue of its
//! own: one that falls behind gets the whole state again.

use std::sync::{Arc, Mutex, MutexGuard};

use prometheus::{IntCounter, IntGauge, Registry};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::watch;
use weft_metrics::{counter, gauge};

use crate::ring::{Entry, Kind, Mark, Ring, Span};
use crate::state::State;

/// Lines that a reader may be behind; beyond that it gets the state.
const BEHIND_MAX: u64 = 32;

/// A line for readers, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, in milliseconds as the state has them.
    pub at_ms: u64,
    /// Whether it is the whole state.
    pub is_key: bool,
    /// Its JSON.
    pub json: Arc<str>,
}

/// What the stage counts.
#[derive(Clone, Debug)]
pub struct Counts {
    pub(crate) readers: IntGauge,
    slow: IntCounter,
    crowded: IntCounter,
}

impl Counts {
    /// Registered: a registry has the counts of one stage.
    pub fn new(registry: &Registry) -> Self {
        let readers = gauge(registry, "weft_ui_readers", "Streams that are open");
        let help = "Times that a reader fell behind and got the whole state";
        let slow = counter(registry, "weft_ui_readers_slow_total", help);
        let help = "Lines of the last ten minutes dropped early, for want of room";
        let crowded = counter(registry, "weft_ui_lines_crowded_out_total", help);
        Self { readers, slow, crowded }
    }

    /// Times that a reader fell behind.
    pub fn slow(&self) -> u64 {
        self.slow.get()
    }
}

/// The state and its lines.
#[derive(Debug)]
pub struct Stage {
    inner: Mutex<Inner>,
    /// Rings with each line.
    bell: watch::Sender<()>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Inner {
    state: Option<State>,
    /// The line of the state, made when somebody wants it, and the number of the line behind it.
    key: Option<(u64, Arc<str>)>,
    gone: Option<Arc<str>>,
    ring: Ring,
    at_ms: u64,
}

impl Stage {
    /// An empty one.
    pub fn new(counts: Counts) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), bell: watch::Sender::new(()), counts })
    }

    /// An empty one whose last minutes take at most this number of bytes.
    pub fn bounded(counts: Counts, bytes_max: usize) -> Arc<Self> {
        let inner = Inner { ring: Ring::of(bytes_max), ..Inner::default() };
        Arc::new(Self { inner: Mutex::new(inner), bell: watch::Sender::new(()), counts })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a thread that panicked has left is a state as good as any.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Shows a state. Where readers had another one, they get the difference; after a gap, all of it. A clock that was set back
    /// stands still until it is over.
    pub fn show(&self, mut state: State, marks: Vec<Mark>) {
        let mut inner = self.inner();
        inner.at_ms = inner.at_ms.max(state.head.at_ms);
        state.head.at_ms = inner.at_ms;
        let at_ms = inner.at_ms;
        let is_gap = inner.gone.take().is_some();
        let patch = inner.state.as_ref().filter(|_| !is_gap).map(|before| before.patch(&state));
        inner.ring.mark(marks);
        match patch {
            Some(None) => return,
            Some(Some(patch)) => {
                inner.state = Some(state);
                inner.push(Kind::Patch, at_ms, &json!({"at_ms": at_ms, "patch": patch}).to_string());
                if inner.ring.wants_frame(at_ms) {
                    let key = inner.key();
                    inner.push(Kind::Frame, at_ms, &key);
                }
            }
            None => {
                inner.state = Some(state);
                inner.key = None;
                let key = inner.key();
                inner.push(Kind::Begin, at_ms, &key);
            }
        }
        self.told(&inner);
    }

    /// Has the laboratory gone: why, for people.
    pub fn lose(&self, why: &str) {
        let mut inner = self.inner();
        let line: Arc<str> = json!({"at_ms": inner.at_ms, "gone": why}).to_string().into();
        if inner.gone.as_ref() == Some(&line) {
            return;
        }
        inner.gone = Some(line.clone());
        let at_ms = inner.at_ms;
        inner.push(Kind::Gone, at_ms, &line);
        self.told(&inner);
    }

    fn told(&self, inner: &Inner) {
        let crowded = inner.ring.crowded_out.saturating_sub(self.counts.crowded.get());
        self.counts.crowded.inc_by(crowded);
        self.bell.send_replace(());
    }

    /// Whether anybody reads.
    pub fn is_watched(&self) -> bool {
        self.bell.receiver_count() > 0
    }

    /// A reader that begins with the state as it is.
    pub fn reader(self: &Arc<Self>) -> Reader {
        self.counts.readers.inc();
        Reader { stage: self.clone(), bell: self.bell.subscribe(), next: None, frames: false }
    }

    /// One that also gets key frames, for a tape.
    pub(crate) fn recorder(self: &Arc<Self>) -> Reader {
        let mut reader = self.reader();
        reader.frames = true;
        reader
    }

    /// The state as it is.
    pub fn state(&self) -> Option<State> {
        self.inner().state.clone()
    }

    /// What can be played.
    pub fn span(&self) -> Span {
        self.inner().ring.span()
    }

    /// The marks behind the first `seen` of all, and how many there have been.
    pub(crate) fn marks_behind(&self, seen: u64) -> (Vec<Mark>, u64) {
        self.inner().ring.marks_behind(seen)
    }

    /// A piece of the lines of the last minutes, of about `bytes`: from this line on, without its first `offset` bytes.
    pub fn piece(&self, line: u64, offset: usize, bytes: usize) -> Piece {
        let inner = self.inner();
        let is_kept = line >= inner.ring.first();
        let mut piece = match is_kept {
            true => Piece { line, offset, ..Piece::default() },
            false => Piece { line: inner.ring.first(), ..Piece::default() },
        };
        let (mut at, mut skip) = (piece.line, piece.offset);
        while let Some(entry) = inner.ring.get(at) {
            let rest = entry.json.get(skip..).unwrap_or_default();
            let room = bytes.saturating_sub(piece.text.len());
            if rest.len() > room {
                // At least a character: else it would never end.
                let end = (room.max(1)..=rest.len()).find(|end| rest.is_char_boundary(*end));
                let end = end.unwrap_or(rest.len());
                piece.text += &rest[..end];
                piece.next = Some((at, skip + end));
                return piece;
            }
            piece.text += rest;
            piece.text.push('\n');
            (at, skip) = (at + 1, 0);
            if piece.text.len() >= bytes {
                piece.next = inner.ring.get(at).map(|_| (at, 0));
                return piece;
            }
        }
        piece
    }

    /// Puts lines of another stage before all that was shown here, as far as they are older. What cannot be a line is left out.
    pub fn recall(&self, lines: &str) {
        let (mut older, mut is_new) = (Vec::new(), true);
        for line in lines.lines() {
            let Ok(shape) = serde_json::from_str::<Shape>(line) else { continue };
            let kind = match shape {
                Shape { key: Some(_), .. } if is_new => Kind::Begin,
                Shape { key: Some(_), .. } => Kind::Frame,
                Shape { patch: Some(_), .. } if !is_new => Kind::Patch,
                Shape { gone: Some(_), .. } => Kind::Gone,
                _ => continue,
            };
            is_new = kind == Kind::Gone;
            older.push(Entry { at_ms: shape.at_ms, kind, json: line.into() });
        }
        let mut inner = self.inner();
        inner.ring.recall(older);
        self.told(&inner);
    }

    /// The line of the whole state as it is.
    pub(crate) fn key_line(&self) -> Option<Line> {
        let mut inner = self.inner();
        inner.state.as_ref()?;
        let (at_ms, json) = (inner.at_ms, inner.key());
        Some(Line { at_ms, is_key: true, json })
    }

    /// The state at a moment.
    pub(crate) fn at(&self, ms: u64) -> Option<Value> {
        Some(self.inner().ring.at(ms)?.0)
    }

    /// The line of that number, if it is no later than a moment.
    pub(crate) fn line(&self, number: u64, to_ms: u64) -> Option<(u64, Line)> {
        let inner = self.inner();
        (number..inner.ring.next()).find_map(|number| {
            let entry = inner.ring.get(number).filter(|entry| entry.at_ms <= to_ms)?;
            (entry.kind != Kind::Frame).then(|| (number + 1, line_of(entry)))
        })
    }

    /// The number of the first line behind a moment.
    pub(crate) fn behind(&self, ms: u64) -> Option<u64> {
        Some(self.inner().ring.at(ms)?.1)
    }
}

/// A piece of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The line that it begins in: another than was wanted, where that is gone.
    pub line: u64,
    /// Bytes of that line which come before.
    pub offset: usize,
    /// Lines with their ends.
    pub text: String,
    /// The line and the offset of the next piece, if there is one.
    pub next: Option<(u64, usize)>,
}

/// What kind of line it is.
#[derive(Debug, Deserialize)]
struct Shape {
    at_ms: u64,
    key: Option<IgnoredAny>,
    patch: Option<IgnoredAny>,
    gone: Option<IgnoredAny>,
}

fn line_of(entry: &Entry) -> Line {
    let is_key = matches!(entry.kind, Kind::Frame | Kind::Begin);
    Line { at_ms: entry.at_ms, is_key, json: entry.json.clone() }
}

impl Inner {
    fn push(&mut self, kind: Kind, at_ms: u64, json: &str) {
        self.ring.push(Entry { at_ms, kind, json: json.into() });
    }

    /// The line of the whole state.
    fn key(&mut self) -> Arc<str> {
        let next = self.ring.next();
        if let Some((_, key)) = self.key.as_ref().filter(|(at, _)| *at == next) {
            return key.clone();
        }
        let state = serde_json::to_string(&self.state).unwrap_or_else(|_| "null".to_owned());
        let key: Arc<str> = format!("{{\"at_ms\":{},\"key\":{state}}}", self.at_ms).into();
        self.key = Some((next, key.clone()));
        key
    }
}

/// A reader of lines, with a place of its own.
#[derive(Debug)]
pub struct Reader {
    stage: Arc<Stage>,
    bell: watch::Receiver<()>,
    /// The number of its next line; none until it has the state.
    next: Option<u64>,
    frames: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stage.counts.readers.dec();
    }
}

impl Reader {
    /// The next line, when it comes.
    pub async fn next(&mut self) -> Line {
        loop {
            self.bell.mark_unchanged();
            if let Some(line) = self.take() {
                return line;
            }
            // The stage lives as long as its readers.
            let _ = self.bell.changed().await;
        }
    }

    /// The next line, if there is one.
    pub fn take(&mut self) -> Option<Line> {
        let stage = self.stage.clone();
        let mut inner = stage.inner();
        let newest = inner.ring.next();
        // Lines are dropped where they take too much room, also such as a reader has not had.
        let is_gone = |next: u64| next < newest && inner.ring.get(next).is_none();
        let is_behind = self.next.is_some_and(|next| next + BEHIND_MAX < newest || is_gone(next));
        if is_behind {
            stage.counts.slow.inc();
        }
        let Some(next) = self.next.filter(|_| !is_behind) else {
            if inner.state.is_none() {
                // All that is known is that the laboratory does not answer.
                let (at_ms, json) = (inner.at_ms, inner.gone.clone()?);
                self.next = Some(newest);
                return Some(Line { at_ms, is_key: false, json });
            }
            let (at_ms, json) = (inner.at_ms, inner.key());
            // One that comes while the laboratory is away hears that too.
            let missed = u64::from(inner.gone.is_some());
            self.next = Some(newest - missed);
            return Some(Line { at_ms, is_key: true, json });
        };
        for number in next..newest {
            self.next = Some(number + 1);
            let entry = inner.ring.get(number)?;
            if self.frames || entry.kind != Kind::Frame {
                return Some(line_of(entry));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(at_ms: u64, lab: &str) -> State {
        let mut state = State::default();
        (state.head.at_ms, state.head.lab) = (at_ms, lab.to_owned());
        state
    }

    fn stage() -> Arc<Stage> {
        Stage::new(Counts::new(&Registry::new()))
    }

    #[test]
    fn readers_get_a_key_and_then_what_changes() {
        let stage = stage();
        let mut reader = stage.reader();
        assert_eq!(reader.take(), None, "there is nothing yet");
        stage.show(state(5, "a"), Vec::new());
        assert!(reader.take().unwrap().is_key);
        stage.show(state(6, "a"), Vec::new());
        assert_eq!(reader.take(), None, "time alone is no change");
        stage.show(state(7, "b"), Vec::new());
        assert_eq!(&*reader.take().unwrap().json, r#"{"at_ms":7,"patch":{"at_ms":7,"lab":"b"}}"#);
        stage.show(state(3, "c"), Vec::new());
        assert_eq!(reader.take().unwrap().at_ms, 7, "the clock was set back");
        stage.lose("no hub");
        stage.lose("no hub");
        assert!(reader.take().unwrap().json.contains("no hub"));
        assert_eq!(reader.take(), None, "it is said once");
        let away = Stage::new(stage.counts.clone());
        away.lose("no hub");
        let mut early = away.reader();
        assert!(early.take().unwrap().json.contains("gone") && early.take().is_none());
        away.show(state(1, "a"), Vec::new());
        assert!(early.take().unwrap().is_key);
        let mut late = stage.reader();
        assert!(late.take().unwrap().is_key && late.take().unwrap().json.contains("gone"));
        stage.show(state(9, "c"), Vec::new());
        assert!(reader.take().unwrap().is_key && late.take().unwrap().is_key, "after a gap all begin again");
    }

    #[test]
    fn the_past_of_one_stage_is_that_of_another() {
        let (hub, page) = (stage(), stage());
        for at in 1..=40 {
            hub.show(state(at * 1000, &format!("a<{at}>é")), Vec::new());
        }
        hub.lose("no hub");
        hub.show(state(41_000, "b"), Vec::new());
        page.show(state(42_000, "now"), Vec::new());
        let mut reader = page.reader();
        assert!(reader.take().unwrap().is_key);
        // Pieces that are shorter than a line.
        for bytes in [1, 37, 5000, 1 << 20] {
            let (mut text, mut place) = (String::new(), Some((0, 0)));
            while let Some((line, offset)) = place {
                let piece = hub.piece(line, offset, bytes);
                assert!(piece.text.len() < bytes + 5 || bytes == 1 << 20, "{bytes}: {}", piece.text.len());
                text += &piece.text;
                place = piece.next;
            }
            if bytes == 1 << 20 {
                page.recall(&format!("{text}{{\"half"));
            } else {
                assert!(text.contains("\"lab\":\"a<40>é\"") && text.contains("\"lab\":\"b\""), "{text}");
            }
        }
        assert_eq!(reader.take(), None, "readers see nothing of it");
        let span = page.span();
        assert_eq!((span.from_ms, span.to_ms), (1000, 42_000));
        for (ms, lab) in [(1000, "a<1>é"), (39_999, "a<39>é"), (41_000, "b"), (42_000, "now")] {
            assert_eq!(page.at(ms).unwrap()["lab"], lab, "at {ms}");
        }
        page.recall("{\"at_ms\":1,\"patch\":{}}\nnonsense\n{}\n");
        assert_eq!(page.span().from_ms, 1000, "changes of nothing are none");
        page.show(state(43_000, "later"), Vec::new());
        assert!(!reader.take().unwrap().is_key);
    }

    #[test]
    fn a_reader_that_falls_behind_gets_the_state() {
        let stage = stage();
        stage.show(state(1, "0"), Vec::new());
        let (mut slow, mut quick) = (stage.reader(), stage.reader());
        assert!(slow.take().is_some() && quick.take().is_some());
        for at in 2..=100 {
            stage.show(state(at, &at.to_string()), Vec::new());
            assert!(!quick.take().unwrap().is_key);
        }
        let line = slow.take().unwrap();
        assert!(line.is_key && line.json.contains(r#""lab":"100""#), "{line:?}");
        assert_eq!((slow.take(), stage.counts.slow()), (None, 1));
        drop(slow);
        assert_eq!(stage.counts.readers.get(), 1);
    }
}
