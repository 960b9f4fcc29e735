//! Lines and words with their places.

use weft_topology::is_tool_message;
use weft_wire::{Guid, Lid};

use super::error::{FileError, FileProblem};

/// What a GUID looks like, for messages.
const GUID: &str = "a GUID: 0x and up to 16 hexadecimal digits";

/// A line that is not blank, without its comment where the file has comments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    file: &'a str,
    number: usize,
    text: &'a str,
    /// Where the next word is looked for, in bytes.
    at: usize,
}

/// A word and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    line: Line<'a>,
    at: usize,
}

/// The lines of a file that are neither blank nor messages of tools. With `comments`, what follows a `#` is dropped.
pub(super) fn lines<'a>(file: &'a str, text: &'a str, comments: bool) -> impl Iterator<Item = Line<'a>> {
    let line = move |(index, text): (usize, &'a str)| {
        let text = if comments { text.split('#').next().unwrap_or_default() } else { text };
        Line { file, number: index + 1, text, at: 0 }
    };
    let says = |line: &Line<'_>| !line.text.trim_ascii().is_empty() && !is_tool_message(line.text);
    text.lines().enumerate().map(line).filter(says)
}

impl<'a> Line<'a> {
    /// All of it.
    pub(super) fn text(self) -> &'a str {
        self.text
    }

    /// What has not been read yet.
    pub(super) fn rest(self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next word, if there is one.
    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        let rest = self.rest();
        let begin = self.at + (rest.len() - rest.trim_ascii_start().len());
        let rest = rest.trim_ascii_start();
        let length = rest.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(rest.len());
        self.at = begin + length;
        (length > 0).then(|| Word { text: &rest[..length], line: *self, at: begin })
    }

    /// The next word; it is an error where there is none.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<Word<'a>, FileError> {
        let here = *self;
        self.next().ok_or_else(|| here.missing(expected))
    }

    /// Passes over this text, which must come next, after spaces.
    pub(super) fn literal(&mut self, literal: &'static str) -> Result<(), FileError> {
        let rest = self.rest();
        let trimmed = rest.trim_ascii_start();
        if !trimmed.starts_with(literal) {
            let here = *self;
            return match self.next() {
                Some(word) => Err(word.error(FileProblem::Expected(literal))),
                None => Err(here.missing(literal)),
            };
        }
        self.at += rest.len() - trimmed.len() + literal.len();
        Ok(())
    }

    /// Goes on behind this text, if it comes at all.
    pub(super) fn skip_past(&mut self, text: &str) -> bool {
        let place = self.rest().find(text);
        self.at += place.map_or(0, |place| place + text.len());
        place.is_some()
    }

    /// What stands before the first `end` behind which the rest is as it should be; goes on behind that `end`.
    pub(super) fn until(&mut self, end: &str, is_right: impl Fn(&str) -> bool) -> Option<&'a str> {
        let rest = self.rest();
        let behind = |place: &usize| is_right(&rest[place + end.len()..]);
        let place = rest.match_indices(end).map(|(place, _)| place).find(behind)?;
        self.at += place + end.len();
        Some(&rest[..place])
    }

    /// Nothing may follow.
    pub(super) fn end(mut self) -> Result<(), FileError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(word.error(FileProblem::Surplus)),
        }
    }

    /// Something is missing at the end of what has been read.
    pub(super) fn missing(self, expected: &'static str) -> FileError {
        self.error_at(self.text.trim_end().len().max(self.at), "", FileProblem::Expected(expected))
    }

    /// Something is wrong with all of the line.
    pub(super) fn error(self, problem: FileProblem) -> FileError {
        let begin = self.text.len() - self.text.trim_start().len();
        self.error_at(begin, self.text.trim(), problem)
    }

    fn error_at(self, at: usize, text: &str, problem: FileProblem) -> FileError {
        let column = self.text.get(..at).unwrap_or(self.text).chars().count() + 1;
        FileError {
            file: self.file.to_owned(),
            line: self.number,
            column,
            text: text.to_owned(),
            problem: problem.into(),
        }
    }
}

impl<'a> Word<'a> {
    /// Something is wrong with it.
    pub(super) fn error(self, problem: FileProblem) -> FileError {
        self.line.error_at(self.at, self.text, problem)
    }

    /// The word without what must be its end.
    pub(super) fn without(self, suffix: &str) -> Option<Self> {
        Some(Self { text: self.text.strip_suffix(suffix)?, ..self })
    }

    /// A GUID that begins with `0x`.
    pub(super) fn guid(self) -> Result<Guid, FileError> {
        let digits = self.text.strip_prefix("0x");
        let guid = digits.and_then(|digits| hexadecimal(digits, u64::MAX)).map(Guid);
        guid.ok_or_else(|| self.error(FileProblem::Expected(GUID)))
    }

    /// A unicast LID: hexadecimal, with or without `0x`.
    pub(super) fn lid(self) -> Result<Lid, FileError> {
        let digits = self.text.strip_prefix("0x").unwrap_or(self.text);
        let lid = hexadecimal(digits, u64::from(u16::MAX)).map(|lid| Lid(lid as u16));
        lid.filter(|lid| lid.is_unicast()).ok_or_else(|| self.error(FileProblem::Lid))
    }

    /// A unicast LID: decimal, or hexadecimal with `0x`.
    pub(super) fn lid_of_either_base(self) -> Result<Lid, FileError> {
        if self.text.starts_with("0x") {
            return self.lid();
        }
        let lid = self.text.parse().ok().map(Lid).filter(|lid| lid.is_unicast());
        lid.filter(|_| self.text.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| self.error(FileProblem::Lid))
    }

    /// A decimal number.
    pub(super) fn number(self, what: &'static str, min: u64, max: u64) -> Result<u64, FileError> {
        let all_digits = self.text.bytes().all(|byte| byte.is_ascii_digit());
        let number = self.text.parse().ok().filter(|number| all_digits && (min..=max).contains(number));
        number.ok_or_else(|| self.error(FileProblem::Range { what, min, max }))
    }
}

/// Digits without a sign, and no more than this.
pub(super) fn hexadecimal(digits: &str, max: u64) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().filter(|number| *number <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let text = "\n  é 0x12 zwölf # x\n";
        let mut line = lines("f", text, true).next().unwrap();
        assert_eq!(line.word("é").unwrap().text, "é");
        assert_eq!(line.word("a LID").unwrap().lid(), Ok(Lid(0x12)));
        let error = line.word("a number").unwrap().number("a number", 0, 9).unwrap_err();
        assert_eq!(error.to_string(), "f:2:10: a number must be 0 to 9: `zwölf`");
        assert_eq!(line.word("more").unwrap_err().to_string(), "f:2:15: expected more");
        assert!(line.end().is_ok());
    }

    #[test]
    fn numbers_have_no_sign_and_no_surplus_digits() {
        for text in ["+1", "-1", "0x", "0x1g", "0x10000000000000000", "", "0xc000"] {
            let line = Line { file: "f", number: 1, text, at: 0 };
            let word = Word { text, line, at: 0 };
            assert!(word.lid().is_err() && word.number("n", 0, 9).is_err(), "{text}");
            assert!(word.guid().is_err() || text == "0xc000", "{text}");
        }
    }
}
