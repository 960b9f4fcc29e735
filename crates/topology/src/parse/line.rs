//! One line of text and the tokens in it.

use std::ops::{Range, RangeInclusive};

use weft_wire::{Guid, is_unprintable};
use winnow::Parser;
use winnow::combinator::{alt, delimited, preceded};
use winnow::error::EmptyError;
use winnow::token::take_while;

use super::error::Problem;

/// How many bytes an id or an alias may have, as in ibsim.
const NAME_BYTES_MAX: usize = 64;

/// The problem with a line, and its bytes there.
#[derive(Debug)]
pub(super) struct LineError {
    pub(super) span: Range<usize>,
    pub(super) problem: Box<Problem>,
    pub(super) hint: Option<String>,
}

impl LineError {
    pub(super) fn new(span: Range<usize>, problem: Problem) -> Self {
        Self { span, problem: Box::new(problem), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A line being read from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    whole: &'a str,
    rest: &'a str,
}

type Token<T> = Result<T, EmptyError>;

fn decimal<'a>(input: &mut &'a str) -> Token<&'a str> {
    take_while(1.., |c: char| c.is_ascii_digit()).parse_next(input)
}

fn hexadecimal<'a>(input: &mut &'a str) -> Token<&'a str> {
    take_while(1.., |c: char| c.is_ascii_hexdigit()).parse_next(input)
}

/// Digits and their base.
fn number<'a>(input: &mut &'a str) -> Token<(&'a str, u32)> {
    let hex = preceded(alt(("0x", "0X")), hexadecimal).map(|digits| (digits, 16));
    alt((hex, decimal.map(|digits| (digits, 10)))).parse_next(input)
}

fn in_parentheses<'a>(input: &mut &'a str) -> Token<&'a str> {
    delimited('(', preceded(winnow::combinator::opt(alt(("0x", "0X"))), hexadecimal), ')').parse_next(input)
}

impl<'a> Line<'a> {
    pub(super) fn new(whole: &'a str) -> Self {
        let mut line = Self { whole, rest: whole };
        line.skip_spaces();
        line
    }

    /// The rest.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// The offset of what is left.
    pub(super) fn offset(&self) -> usize {
        self.whole.len() - self.rest.len()
    }

    pub(super) fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes `text` if it is next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Skips this many bytes, which end before a character that the caller has found.
    pub(super) fn skip_bytes(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Takes everything up to the next character that `stop` names.
    pub(super) fn take_until(&mut self, stop: impl Fn(char) -> bool) -> &'a str {
        let (taken, rest) = self.rest.split_at(self.rest.find(stop).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Requires `text` next.
    pub(super) fn expect(&mut self, text: &str, what: &'static str) -> Result<(), LineError> {
        if self.take(text) { Ok(()) } else { Err(self.expected(what)) }
    }

    /// A fault at the next word: something else was expected there.
    pub(super) fn expected(&self, what: &'static str) -> LineError {
        let word = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let start = self.offset();
        LineError::new(start..start + word, Problem::Expected(what))
    }

    /// A fault from `start` up to here.
    pub(super) fn fault(&self, start: usize, problem: Problem) -> LineError {
        LineError::new(start..self.offset(), problem)
    }

    /// A number, decimal or with `0x`.
    pub(super) fn number(
        &mut self,
        what: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, LineError> {
        let (start, mut rest) = (self.offset(), self.rest);
        let Ok((digits, base)) = number.parse_next(&mut rest) else {
            return Err(self.expected(what));
        };
        self.rest = rest;
        let value = u64::from_str_radix(digits, base).ok();
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            let (min, max) = range.clone().into_inner();
            self.fault(start, Problem::NumberRange { what, min, max })
        })
    }

    /// A GUID in a `name=0x…` line.
    pub(super) fn guid_number(&mut self) -> Result<u64, LineError> {
        self.number("a GUID", 0..=u64::MAX)
    }

    /// `(GUID)`, hexadecimal without `0x`, if a parenthesis is next.
    pub(super) fn guid_in_parentheses(&mut self) -> Result<Option<Guid>, LineError> {
        if !self.rest.starts_with('(') {
            return Ok(None);
        }
        let (start, mut rest) = (self.offset(), self.rest);
        let Ok(digits) = in_parentheses.parse_next(&mut rest) else {
            return Err(self.expected("a GUID in parentheses"));
        };
        self.rest = rest;
        match u64::from_str_radix(digits, 16) {
            Ok(0) | Err(_) => {
                let problem = Problem::NumberRange { what: "a GUID", min: 1, max: u64::MAX };
                Err(self.fault(start, problem))
            }
            Ok(guid) => Ok(Some(Guid(guid))),
        }
    }

    /// `[number]`, if a bracket is next. Any number: its range depends on a node.
    pub(super) fn port_in_brackets(&mut self) -> Result<Option<u64>, LineError> {
        if !self.rest.starts_with('[') || self.rest.starts_with("[ext") {
            return Ok(None);
        }
        self.take("[");
        let port = self.number("a port number", 0..=u64::from(u32::MAX))?;
        self.expect("]", "`]` after the port number")?;
        Ok(Some(port))
    }

    /// `[ext number]`, the port's number on the chassis, which ibnetdiscover adds when it groups.
    pub(super) fn skip_external_port(&mut self) -> Result<(), LineError> {
        if self.take("[ext") {
            self.skip_spaces();
            self.number("a port number", 0..=u64::from(u32::MAX))?;
            self.expect("]", "`]` after the port number")?;
        }
        Ok(())
    }

    /// A text in double quotes.
    pub(super) fn quoted(&mut self, what: &'static str) -> Result<&'a str, LineError> {
        let start = self.offset();
        if !self.take("\"") {
            return Err(self.expected(what));
        }
        let text = self.take_until(|c| c == '"');
        if self.take("\"") {
            Ok(text)
        } else {
            Err(self.fault(start, Problem::Unterminated).hint("the file may be truncated"))
        }
    }

    /// Requires that nothing but a comment is left.
    pub(super) fn end(&mut self) -> Result<(), LineError> {
        self.skip_spaces();
        if self.rest.is_empty() || self.rest.starts_with('#') {
            return Ok(());
        }
        let start = self.offset();
        let problem = Problem::Expected("the end of the line or a comment");
        Err(LineError::new(start..start + self.rest.trim_end().len(), problem))
    }
}

pub(super) fn check_name(line: &Line<'_>, start: usize, name: &str) -> Result<(), LineError> {
    let problem = if name.is_empty() {
        Problem::Expected("a name that is not empty")
    } else if name.contains(['#', '@']) {
        Problem::ReservedCharacter
    } else if name.contains(is_unprintable) {
        Problem::ControlCharacter
    } else if name.len() > NAME_BYTES_MAX {
        Problem::TooLarge { what: "bytes in a name", max: NAME_BYTES_MAX }
    } else {
        return Ok(());
    };
    Err(line.fault(start, problem))
}
