//! Texts that others wrote, such as NodeDescriptions, for screens and logs.
//!
//! A NodeDescription is 64 bytes of anything (IBA 14.2.5.2). Printed raw, an escape sequence in it moves the cursor,
//! and a line break ends a log's record.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// A text in one line that a terminal prints and does not obey: control characters, line separators and marks that
/// turn the direction of writing appear as `\n` or `\u{1b}`.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(
    /// The text.
    pub &'a str,
);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match is_unprintable(c) {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
    }
}

/// Whether a character acts on a terminal instead of being printed.
pub fn is_unprintable(c: char) -> bool {
    // Beside control characters: direction marks, line and paragraph separators, embeddings, overrides, isolates.
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Several lines as [`Printable`] makes one; line breaks and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c, out| write!(out, "{}", c.escape_default()))
}

/// JSON as programs wrote it, which means the same and holds nothing unprintable: JSON's own escapes stand in for it.
/// Between its strings, line breaks and tabs stay.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    // All of them are in the basic plane, so one escape of four digits is enough.
    replaced(text, |c, out| write!(out, "\\u{:04x}", u32::from(c)))
}

fn replaced(text: &str, escape: impl Fn(char, &mut String) -> fmt::Result) -> Cow<'_, str> {
    let raw = |c: char| is_unprintable(c) && !matches!(c, '\n' | '\t');
    if !text.contains(raw) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match raw(c) {
            true => escape(c, &mut out).expect("writing into a String does not fail"),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A number of things, as in `1 agent`, `2 agents`, `2 switches`, `2 processes` and `2 retries`.
pub fn count_of(number: usize, thing: &str) -> String {
    if let Some(stem) =
        thing.strip_suffix('y').filter(|stem| number != 1 && !stem.ends_with(['a', 'e', 'o', 'u']))
    {
        return format!("{number} {stem}ies");
    }
    let ending = match number {
        1 => "",
        _ if ["s", "sh", "ch", "x"].iter().any(|sound| thing.ends_with(sound)) => "es",
        _ => "s",
    };
    format!("{number} {thing}{ending}")
}

/// The verb that goes with a number of things.
pub fn is_or_are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "a\x1b[2Jb\nc\td\re\u{9b}1mf\u{7f}\u{202e}\u{2028}\u{e4}\\\"";

    #[test]
    fn a_number_of_things_has_the_ending_of_its_word() {
        let counted = [(1, "process"), (2, "process"), (0, "switch"), (1, "retry"), (2, "retry"), (3, "day")];
        let shown = counted.map(|(number, thing)| count_of(number, thing));
        assert_eq!(shown, ["1 process", "2 processes", "0 switches", "1 retry", "2 retries", "3 days"]);
    }

    #[test]
    fn one_line_that_no_terminal_obeys() {
        let shown = Printable(NASTY).to_string();
        assert_eq!(shown, "a\\u{1b}[2Jb\\nc\\td\\re\\u{9b}1mf\\u{7f}\\u{202e}\\u{2028}\u{e4}\\\"");
        assert!(!shown.contains(is_unprintable));
        // For every character: printed as it is, or not raw.
        for c in (0..=0xffff).filter_map(char::from_u32) {
            let text = c.to_string();
            let shown = Printable(&text).to_string();
            assert!(
                shown == text && !c.is_control() || shown.chars().all(|c| c.is_ascii_graphic()),
                "{shown}"
            );
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert!(matches!(printable_lines("a\tb\nc\n"), Cow::Borrowed("a\tb\nc\n")));
        assert_eq!(printable_lines("a\x1bb\nc\r\n"), "a\\u{1b}b\nc\\r\n");
    }

    #[test]
    fn json_stays_json() {
        let json = "{\"a\": \"x\u{9b}y\u{7f}z\u{202e}\"}\n";
        assert_eq!(printable_json(json), "{\"a\": \"x\\u009by\\u007fz\\u202e\"}\n");
    }
}
