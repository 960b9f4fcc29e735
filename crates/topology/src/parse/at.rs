//! The place of a line, and what the lines before it had.

use std::ops::Range;

use super::comment::Ends;
use super::draft::Spot;
use super::error::{ParseError, Position, Problem};
use super::line::LineError;

/// How many lines may be read in all.
const LINES_MAX: usize = 4 * 1024 * 1024;
/// How many bytes a line may have.
const LINE_BYTES_MAX: usize = 4096;

/// Where a line stands.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) file: &'a str,
    pub(super) number: usize,
    pub(super) text: &'a str,
    /// Whether it is the last of its file and lacks its line break.
    pub(super) unfinished: bool,
    /// What the lines before it in its file had.
    pub(super) seen: Seen,
}

/// Which lines of a file have had ibnetdiscover's comments, so that a last one without was cut off.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// A switch's header with its LID.
    pub(super) headers: bool,
    /// A port's line with its neighbour's LID.
    pub(super) ports: bool,
}

impl<'a> At<'a> {
    /// A whole line of a file, numbered from 1.
    pub(super) fn line(file: &'a str, number: usize, text: &'a str, unfinished: bool) -> Self {
        Self { file, number, text, unfinished, seen: Seen::default() }
    }

    /// Refuses a line that is too long, or one too many; `lines` have been read with it.
    pub(super) fn check_size(&self, lines: usize) -> Result<(), ParseError> {
        let (what, max) = match (lines > LINES_MAX, self.text.len() > LINE_BYTES_MAX) {
            (true, _) => ("lines", LINES_MAX),
            (_, true) => ("bytes in a line", LINE_BYTES_MAX),
            _ => return Ok(()),
        };
        Err(self.spot(0..0).error(Problem::TooLarge { what, max }))
    }

    pub(super) fn header_ends(&self) -> Ends {
        Ends::of(self.unfinished, self.seen.headers || self.seen.ports)
    }

    pub(super) fn port_ends(&self) -> Ends {
        Ends::of(self.unfinished, self.seen.ports)
    }

    pub(super) fn spot(&self, span: Range<usize>) -> Spot {
        let column = self.text.get(..span.start).unwrap_or_default().chars().count() + 1;
        let text = self.text.get(span).unwrap_or_default().to_owned();
        Spot { place: Position { file: self.file.to_owned(), line: self.number, column }, text }
    }

    pub(super) fn error(&self, fault: LineError) -> ParseError {
        let hint = match fault.hint {
            None if self.unfinished => Some("the file may be truncated".to_owned()),
            hint => hint,
        };
        ParseError { hint, ..self.spot(fault.span).error(fault.problem) }
    }
}
