//! Errors in a file, with their place.

use std::fmt;
use std::ops::Range;

/// Something wrong with an experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The error, in one sentence.
    pub message: String,
    /// Allowed values, or the cure; may be empty.
    pub allowed: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if !self.allowed.is_empty() {
            write!(f, "; {}", self.allowed)?;
        }
        Ok(())
    }
}

impl std::error::Error for FileError {}

/// A place in a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl From<Range<usize>> for At {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// Something wrong at a place; the file's name comes later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) at: At,
    pub(crate) message: String,
    pub(crate) allowed: String,
}

impl Wrong {
    pub(crate) fn new(at: At, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), allowed: String::new() }
    }

    pub(crate) fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = allowed.into();
        self
    }

    /// With the file's name and text, for the line and column.
    pub(crate) fn into_error(self, file: &str, text: &str) -> FileError {
        let mut start = self.at.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        FileError { file: file.to_owned(), line, column, message: self.message, allowed: self.allowed }
    }
}

/// "there are a, b and c; did you mean `b`?"
pub(crate) fn choices(wrong: &str, allowed: &[&str]) -> String {
    let list = listed(allowed);
    match nearest(wrong, allowed) {
        Some(near) => format!("did you mean `{near}`? There are {list}"),
        None => format!("there are {list}"),
    }
}

/// `a`, `b` and `c`, cut where they are many.
pub(crate) fn listed(names: &[&str]) -> String {
    const SHOWN_MAX: usize = 40;
    let shown: Vec<String> = names.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN_MAX {
        return format!("{}, … ({} in all)", shown.join(", "), names.len());
    }
    match shown.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// The name that is so near that it was perhaps meant; the first of those equally near.
pub(crate) fn nearest<'a>(wrong: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let best = allowed.iter().copied().min_by_key(|name| distance(wrong, name))?;
    let near = match best.chars().count() {
        ..=3 => 1,
        4..=6 => 2,
        _ => 3,
    };
    (distance(wrong, best) <= near).then_some(best)
}

/// Levenshtein's distance: letters to put in, take out or change. Very long words are only compared at their beginning.
fn distance(a: &str, b: &str) -> usize {
    const LETTERS_MAX: usize = 64;
    let b: Vec<char> = b.chars().take(LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(LETTERS_MAX).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
