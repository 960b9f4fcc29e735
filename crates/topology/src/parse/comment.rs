//! Comments of ibnetdiscover: descriptions, LIDs and link rates.

use std::ops::Range;

use weft_wire::Lid;

use super::error::Problem;
use super::line::LineError;
use crate::LinkRate;

/// The LID of an adapter's port before a subnet manager gives it one; of a switch it is 0.
const NO_LID: &str = "65535";

/// A LID and its mask control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LidLmc {
    pub(super) lid: Option<Lid>,
    pub(super) lmc: Option<u8>,
}

/// The comment of a node's header line.
#[derive(Clone, Debug, Default)]
pub(super) struct HeaderComment {
    pub(super) description: String,
    pub(super) enhanced_port0: bool,
    pub(super) port0: LidLmc,
}

/// The comment of a port's line.
#[derive(Clone, Debug, Default)]
pub(super) struct PortComment {
    pub(super) own: LidLmc,
    pub(super) remote: LidLmc,
    pub(super) rate: Option<LinkRate>,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// The line has its line break: it is whole.
    Whole,
    /// It is the last of its file and lacks its line break: if it is in ibnetdiscover's form, it must have all of it.
    Perhaps,
    /// The same, in a file whose other lines are in ibnetdiscover's form: so must this one be.
    Cut,
}

impl Ends {
    pub(super) fn of(unfinished: bool, others_in_form: bool) -> Self {
        match (unfinished, others_in_form) {
            (false, _) => Self::Whole,
            (true, false) => Self::Perhaps,
            (true, true) => Self::Cut,
        }
    }

    /// Whether a comment of which this is known, in ibnetdiscover's form or not, must be a whole one of that form.
    fn must_be_whole(self, in_form: bool) -> bool {
        self == Self::Cut || self == Self::Perhaps && in_form
    }
}

/// Part of a line: where it begins, and its text.
#[derive(Clone, Copy)]
struct Part<'a> {
    start: usize,
    text: &'a str,
    /// Whether it is in ibnetdiscover's own form, where a strange word is an error, or anyone's comment.
    strict: bool,
}

impl<'a> Part<'a> {
    fn cut(self, range: Range<usize>) -> Self {
        Self { start: self.start + range.start, text: self.text.get(range).unwrap_or_default(), ..self }
    }

    /// The words and where in the line they begin.
    fn words(self) -> impl Iterator<Item = (usize, &'a str)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.text.get(at..)?;
            let word = rest.split_whitespace().next()?;
            let start = at + (rest.len() - rest.trim_start().len());
            at = start + word.len();
            Some((self.start + start, word))
        })
    }
}

/// A fault for text, from `start` in its line, that the end of the file cut off.
pub(super) fn truncated(start: usize, text: &str) -> LineError {
    let span = start + text.len() - text.trim_start().len()..start + text.len();
    LineError::new(span, Problem::Truncated).hint("the file may be truncated")
}

/// Reads what follows the `#` of a header line; `start` is where that is in the line.
pub(super) fn header(
    start: usize,
    text: &str,
    of_switch: bool,
    ends: Ends,
) -> Result<HeaderComment, LineError> {
    let spaces = text.len() - text.trim_start().len();
    let whole = Part { start, text, strict: false }.cut(spaces..text.trim_end().len().max(spaces));
    let quoted = whole.text.starts_with('"');
    let (description, tail) = if let Some(quoted) = whole.text.strip_prefix('"') {
        let Some(close) = quoted.rfind('"') else {
            let span = whole.start..whole.start + whole.text.len();
            return Err(LineError::new(span, Problem::Unterminated).hint("the file may be truncated"));
        };
        (&quoted[..close], Part { strict: true, ..whole.cut(close + 2..whole.text.len()) })
    } else {
        let marks = [" enhanced port ", " base port ", " lid ", " lmc "];
        let end = marks.iter().filter_map(|mark| whole.text.find(mark)).min().unwrap_or(whole.text.len());
        (&whole.text[..end], whole.cut(end..whole.text.len()))
    };
    let port0 = lid_and_lmc(tail)?;
    let is_whole = match of_switch {
        true => port0.lid.is_some() && port0.lmc.is_some(),
        false => !whole.text.is_empty(),
    };
    if !is_whole && ends.must_be_whole(quoted || !tail.text.is_empty()) {
        return Err(truncated(start, text));
    }
    let enhanced_port0 = tail.text.contains("enhanced port 0");
    Ok(HeaderComment { description: description.to_owned(), enhanced_port0, port0 })
}

/// Reads what follows the `#` of a port line.
pub(super) fn port(start: usize, text: &str, ends: Ends) -> Result<PortComment, LineError> {
    let part = Part { start, text, strict: false };
    let quotes = (text.find('"'), text.rfind('"'));
    let comment = match quotes {
        (Some(first), Some(last)) if first < last => {
            let own = Part { strict: true, ..part.cut(0..first) };
            let tail = Part { strict: true, ..part.cut(last + 1..text.len()) };
            PortComment { own: lid_and_lmc(own)?, remote: lid_and_lmc(tail)?, rate: rate(tail)? }
        }
        _ => PortComment { own: lid_and_lmc(part)?, remote: LidLmc::default(), rate: rate(part)? },
    };
    if comment.rate.is_none() && ends.must_be_whole(quotes.0.is_some()) {
        return Err(truncated(start, text));
    }
    Ok(comment)
}

fn lid_and_lmc(part: Part<'_>) -> Result<LidLmc, LineError> {
    let mut found = LidLmc::default();
    let mut before = "";
    for (start, word) in part.words() {
        match before {
            "lid" if found.lid.is_none() => {
                // 65535 is what a port says that no manager has found yet.
                let word = if word == NO_LID { "0" } else { word };
                let lid = value(part, start, word, "a LID", u64::from(Lid::UNICAST_MAX.0))?;
                found.lid = lid.and_then(|lid| u16::try_from(lid).ok()).map(Lid);
            }
            "lmc" if found.lmc.is_none() => {
                let lmc = value(part, start, word, "an LMC", 7)?;
                found.lmc = lmc.and_then(|lmc| u8::try_from(lmc).ok());
            }
            _ => {}
        }
        before = word;
    }
    Ok(found)
}

fn value(
    part: Part<'_>,
    start: usize,
    word: &str,
    what: &'static str,
    max: u64,
) -> Result<Option<u64>, LineError> {
    match word.parse().ok().filter(|value| *value <= max) {
        None if part.strict => {
            let problem = Problem::NumberRange { what, min: 0, max };
            Err(LineError::new(start..start + word.len(), problem))
        }
        value => Ok(value),
    }
}

fn rate(part: Part<'_>) -> Result<Option<LinkRate>, LineError> {
    for (start, word) in part.words() {
        match word.parse::<LinkRate>() {
            Ok(rate) => return Ok(Some(rate)),
            Err(error) if part.strict && looks_like_a_rate(word) => {
                let hint = Some(error.to_string());
                return Err(LineError {
                    hint,
                    ..LineError::new(start..start + word.len(), Problem::UnknownRate)
                });
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Digits, `x`, a capital: `4xABC`. What ibnetdiscover prints for a rate unknown to it, `4xundefined`, is none.
fn looks_like_a_rate(word: &str) -> bool {
    let after = word.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < word.len()
        && after.strip_prefix('x').is_some_and(|speed| speed.starts_with(|c: char| c.is_ascii_uppercase()))
}
