//! The reader of a tape: opened by its frames, sought by time, never read as a whole.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::Value;

use super::{FRAME_BYTES_MAX, FrameLine, Head, LINE_BYTES_MAX, TapeError, VERSION};
use crate::merge::apply;
use crate::ring::{Mark, Span};

/// What is read at once where the last frame is looked for.
const PIECE: u64 = 1 << 20;
/// How far the last frame may be from the end: a frame's span with lines as long as they may be would be longer, and is damage.
const LAST_FRAME_MAX: u64 = 1 << 30;
/// Frames of a tape: at one in ten seconds, those of a month.
const FRAMES_MAX: usize = 300_000;
/// Marks of a tape.
const MARKS_MAX: usize = 2000;

/// A tape that can be played.
#[derive(Debug)]
pub struct Tape<F> {
    file: BufReader<F>,
    head: Head,
    /// When each frame is, and where its key begins.
    frames: Vec<Place>,
    marks: Vec<Mark>,
    to_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at_ms: u64,
    key: u64,
}

/// A line that moves the state.
#[derive(Debug, Deserialize)]
struct Change {
    at_ms: u64,
    key: Option<Value>,
    patch: Option<Value>,
}

/// The moment of a line.
#[derive(Debug, Deserialize)]
struct Moment {
    at_ms: u64,
    frame: Option<serde::de::IgnoredAny>,
}

impl<F: Read + Seek> Tape<F> {
    /// Opens a tape.
    ///
    /// # Errors
    /// When it is none, of another version, damaged, or has no state.
    pub fn open(file: F) -> Result<Self, TapeError> {
        let mut file = BufReader::new(file);
        file.seek(SeekFrom::Start(0))?;
        let line = match read_line(&mut file, 0, FRAME_BYTES_MAX) {
            Err(TapeError::TooLong(_)) => return Err(TapeError::NoTape),
            line => line?.ok_or(TapeError::NoTape)?,
        };
        let head: Head = serde_json::from_slice(&line).map_err(|_| TapeError::NoTape)?;
        if head.tape != u64::from(VERSION) {
            return Err(TapeError::OtherVersion(head.tape));
        }
        let mut tape = Self { file, head, frames: Vec::new(), marks: Vec::new(), to_ms: 0 };
        let last = tape.last_frame()?.ok_or(TapeError::Empty)?;
        tape.follow(last)?;
        tape.to_ms = tape.last_moment()?;
        Ok(tape)
    }

    /// Its head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What can be played.
    pub fn span(&self) -> Span {
        let from_ms = self.frames.first().map_or(0, |frame| frame.at_ms);
        // Of a clock that was set back.
        let marks = self.marks.iter().filter(|mark| mark.at_ms >= from_ms).cloned().collect();
        Span { from_ms, to_ms: self.to_ms, live: false, marks }
    }

    /// The state at a moment: of one before all others, the first.
    ///
    /// # Errors
    /// When the tape cannot be read there.
    pub fn at(&mut self, ms: u64) -> Result<Value, TapeError> {
        Ok(self.play(ms, ms)?.0)
    }

    /// The state at a moment, and the lines behind it up to another one, by [`Tape::more`].
    ///
    /// # Errors
    /// When the tape cannot be read there.
    pub fn play(&mut self, from_ms: u64, to_ms: u64) -> Result<(Value, Play), TapeError> {
        let frame = self.frames.partition_point(|frame| frame.at_ms <= from_ms).saturating_sub(1);
        let place = *self.frames.get(frame).ok_or(TapeError::Empty)?;
        let (mut at, mut state) = (place.key, Value::Null);
        loop {
            self.file.seek(SeekFrom::Start(at))?;
            let Some(line) = read_line(&mut self.file, at, LINE_BYTES_MAX)? else { break };
            let Some(change) = change(&line, at)? else {
                at += line.len() as u64 + 1;
                continue;
            };
            if change.at_ms > from_ms && !state.is_null() {
                break;
            }
            match (change.key, change.patch) {
                (Some(key), _) => state = key,
                (None, Some(patch)) => apply(&mut state, &patch),
                (None, None) => {}
            }
            at += line.len() as u64 + 1;
        }
        Ok((state, Play { at, to_ms }))
    }

    /// The next lines of what is played, at least `bytes` of them unless it ends; nothing at its end.
    ///
    /// # Errors
    /// When the tape cannot be read there.
    pub fn more(&mut self, play: &mut Play, bytes: usize) -> Result<Vec<u8>, TapeError> {
        let mut lines = Vec::new();
        self.file.seek(SeekFrom::Start(play.at))?;
        while lines.len() < bytes {
            let Some(line) = read_line(&mut self.file, play.at, LINE_BYTES_MAX)? else { break };
            let moment: Moment = serde_json::from_slice(&line).map_err(|_| TapeError::Damaged(play.at))?;
            if moment.at_ms > play.to_ms {
                break;
            }
            play.at += line.len() as u64 + 1;
            if moment.frame.is_none() {
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
        }
        Ok(lines)
    }

    /// Where the last whole frame begins, with its key whole: looked for from the end.
    fn last_frame(&mut self) -> Result<Option<u64>, TapeError> {
        let length = self.file.seek(SeekFrom::End(0))?;
        let mut end = length;
        while end > 0 && length - end < LAST_FRAME_MAX {
            let begin = end.saturating_sub(PIECE);
            // A line that begins in this piece may be recognised by bytes of the next.
            let until = (end + 64).min(length);
            let mut piece = vec![0; (until - begin) as usize];
            self.file.seek(SeekFrom::Start(begin))?;
            self.file.read_exact(&mut piece)?;
            let starts = (0..piece.len()).filter(|at| piece[*at] == b'\n').map(|at| at + 1);
            for at in starts.collect::<Vec<_>>().into_iter().rev() {
                let place = begin + at as u64;
                if is_frame(&piece[at..]) && self.has_key(place)? {
                    return Ok(Some(place));
                }
            }
            end = begin;
        }
        Ok(None)
    }

    /// Whether a frame and the key behind it are whole.
    fn has_key(&mut self, frame: u64) -> Result<bool, TapeError> {
        let Some(key) = self.frame(frame)?.map(|(_, key)| key) else { return Ok(false) };
        self.file.seek(SeekFrom::Start(key))?;
        Ok(read_line(&mut self.file, key, LINE_BYTES_MAX)?.is_some())
    }

    /// The frame at this place, and where its key begins; `None` where it was cut off.
    fn frame(&mut self, at: u64) -> Result<Option<(FrameLine, u64)>, TapeError> {
        self.file.seek(SeekFrom::Start(at))?;
        let Some(line) = read_line(&mut self.file, at, FRAME_BYTES_MAX)? else { return Ok(None) };
        let frame = serde_json::from_slice(&line).map_err(|_| TapeError::Damaged(at))?;
        Ok(Some((frame, at + line.len() as u64 + 1)))
    }

    /// Follows the chain of frames to the first.
    fn follow(&mut self, last: u64) -> Result<(), TapeError> {
        let mut at = last;
        loop {
            let (FrameLine { at_ms, frame }, key) = self.frame(at)?.ok_or(TapeError::Damaged(at))?;
            self.frames.push(Place { at_ms, key });
            self.marks.extend(frame.marks.into_iter().rev());
            self.marks.truncate(MARKS_MAX);
            if frame.before == 0 || self.frames.len() == FRAMES_MAX {
                break;
            }
            // The chain leads back, so it ends.
            if frame.before >= at {
                return Err(TapeError::Damaged(at));
            }
            at = frame.before;
        }
        self.frames.reverse();
        self.marks.reverse();
        Ok(())
    }

    /// The moment of the last whole line.
    fn last_moment(&mut self) -> Result<u64, TapeError> {
        let place = *self.frames.last().ok_or(TapeError::Empty)?;
        let (mut at, mut last) = (place.key, place.at_ms);
        self.file.seek(SeekFrom::Start(at))?;
        while let Some(line) = read_line(&mut self.file, at, LINE_BYTES_MAX)? {
            let moment: Moment = serde_json::from_slice(&line).map_err(|_| TapeError::Damaged(at))?;
            // A frame whose key was cut off shows nothing.
            last = if moment.frame.is_none() { last.max(moment.at_ms) } else { last };
            at += line.len() as u64 + 1;
        }
        Ok(last)
    }
}

/// Whether a line begins as one of a frame.
fn is_frame(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"{\"at_ms\":") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(b",\"frame\":")
}

/// A place in what is played.
#[derive(Clone, Debug)]
pub struct Play {
    at: u64,
    to_ms: u64,
}

fn change(line: &[u8], at: u64) -> Result<Option<Change>, TapeError> {
    if is_frame(line) {
        return Ok(None);
    }
    serde_json::from_slice(line).map(Some).map_err(|_| TapeError::Damaged(at))
}

/// The next line without its end; `None` at the end of the file, also where a line was cut off.
fn read_line(from: &mut impl BufRead, at: u64, bytes_max: usize) -> Result<Option<Vec<u8>>, TapeError> {
    let mut line = Vec::new();
    from.take(bytes_max as u64 + 1).read_until(b'\n', &mut line)?;
    if line.pop() == Some(b'\n') {
        return Ok(Some(line));
    }
    if line.len() >= bytes_max { Err(TapeError::TooLong(at)) } else { Ok(None) }
}
