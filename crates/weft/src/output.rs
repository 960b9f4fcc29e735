//! Data on standard output: text, tables and JSON.

use std::fmt;
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use weft_wire::{Guid, Printable, printable_json, printable_lines};

/// Whoever read standard output has closed it. Success, not failure.
#[derive(Debug)]
pub(crate) struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// Writes to standard output and flushes it. What a terminal would obey is escaped: nothing that weft prints contains
/// any of its own.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let text = printable_lines(text);
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes a value as JSON, indented, with a line end.
pub(crate) fn print_json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(value)?;
    name_guids(&mut value);
    print(&printable_json(&format!("{}\n", serde_json::to_string_pretty(&value)?)))
}

/// Writes GUIDs as everybody does, in hexadecimal digits. JSON numbers of 64 bits are not safe with every reader.
pub(crate) fn name_guids(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(name_guids),
        Value::Object(fields) => {
            for (field, value) in fields {
                match value.as_u64() {
                    Some(guid) if field.ends_with("guid") || field == "master" => {
                        *value = Guid(guid).to_string().into();
                    }
                    _ => name_guids(value),
                }
            }
        }
        _ => {}
    }
}

/// Says something to the user on standard error. Nobody listening is no reason to stop.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable_lines(text));
}

/// The same behind a label of one word, coloured where that is wanted.
pub(crate) fn say_labelled(label: &str, color: &str, text: &str) {
    let label = match color_on_stderr() {
        true => format!("\x1b[1;{color}m{label}\x1b[0m"),
        false => label.to_owned(),
    };
    let _ = writeln!(std::io::stderr().lock(), "{label} {}", printable_lines(text));
}

/// Whether standard error may be coloured (<https://no-color.org>).
pub(crate) fn color_on_stderr() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::io::stderr().is_terminal()
}

/// Rows under headings, columns as wide as their widest cell. Columns of numbers are set flush right.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are headings, each printed in one line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().map(|cell| Printable(&cell).to_string()).collect();
        assert_eq!(row.len(), self.headings.len(), "a row has one cell per heading");
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: &str| text.chars().count();
        let columns: Vec<(usize, bool)> = (0..self.headings.len())
            .map(|column| {
                let cells = || self.rows.iter().map(|row| row[column].as_str());
                let widest = cells().map(width).max().unwrap_or(0).max(width(self.headings[column]));
                let numeric = cells().all(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
                    && cells().all(|cell| cell.bytes().all(|byte| b"0123456789.-%".contains(&byte)));
                (widest, numeric && !self.rows.is_empty())
            })
            .collect();
        let line = |f: &mut fmt::Formatter<'_>, cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (cell, (widest, numeric)) in cells.zip(&columns) {
                let padding = " ".repeat(widest.saturating_sub(width(cell)));
                let (before, after) =
                    if *numeric { (padding, String::new()) } else { (String::new(), padding) };
                text.push_str(&format!("{before}{cell}{after}  "));
            }
            writeln!(f, "{}", text.trim_end())
        };
        line(f, &mut self.headings.iter().copied())?;
        self.rows.iter().try_for_each(|row| line(f, &mut row.iter().map(String::as_str)))
    }
}

/// How often a [`Ticker`] says a line where nobody watches a terminal.
const TICKER_SAYS: Duration = Duration::from_secs(5);

/// How a verb that takes long gets on: one line that changes on a terminal, else a line every few seconds.
#[derive(Debug)]
pub(crate) struct Ticker {
    bar: ProgressBar,
    said: Instant,
}

impl Ticker {
    /// Says nothing yet.
    pub(crate) fn begin() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        Self { bar, said: Instant::now() }
    }

    /// Says what is done now.
    pub(crate) fn tell(&mut self, text: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_message(text());
            self.bar.tick();
        } else if self.said.elapsed() >= TICKER_SAYS {
            self.said = Instant::now();
            say(&text());
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
