//! Data on standard output: text, tables and JSON.

use std::fmt;
use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use weft_wire::{Guid, Printable, printable_json, printable_lines};

use crate::terminal::{is_dumb, width};

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

/// Prints a value, as JSON or as `text` shows it.
pub(crate) fn show<T: Serialize>(
    value: &T,
    json: bool,
    text: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    if json { print_json(value) } else { print(&text(value)) }
}

/// A cell of a table: `-` where nothing is known.
pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
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

/// Says something to the user on standard error. No one listening is no reason to stop.
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
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stderr().is_terminal()
        && !is_dumb()
}

/// The same of standard output.
pub(crate) fn color_on_stdout() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stdout().is_terminal()
        && !is_dumb()
}

/// What stands between two columns.
const GAP: &str = "  ";

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

    /// An empty table under headings with ` | ` between them.
    pub(crate) fn headed(headings: &'static str) -> Self {
        Self { headings: headings.split(" | ").collect(), rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are headings, each printed in one line.
    pub(crate) fn row(&mut self, cells: &[&dyn fmt::Display]) {
        self.cells(cells.iter().map(ToString::to_string));
    }

    /// The same of cells that are text already.
    pub(crate) fn cells(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().map(|cell| Printable(&cell).to_string()).collect();
        assert_eq!(row.len(), self.headings.len(), "a row has one cell per heading");
        self.rows.push(row);
    }

    /// Leaves out columns until the rest fits into `columns` characters; the first of these first.
    pub(crate) fn fit(mut self, columns: usize, expendable: &[&str]) -> Self {
        for heading in expendable {
            let needed: usize = (0..self.headings.len()).map(|column| self.widest(column) + GAP.len()).sum();
            if needed <= columns + GAP.len() {
                break;
            }
            if let Some(column) = self.headings.iter().position(|own| own == heading) {
                self.headings.remove(column);
                self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            }
        }
        self
    }

    /// Columns of the screen that a column takes.
    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| width(&row[column]));
        cells.max().unwrap_or(0).max(width(self.headings[column]))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<(usize, bool)> = (0..self.headings.len())
            .map(|column| {
                let cells = || self.rows.iter().map(|row| row[column].as_str());
                let widest = self.widest(column);
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
                text.push_str(&format!("{before}{cell}{after}{GAP}"));
            }
            writeln!(f, "{}", text.trim_end())
        };
        line(f, &mut self.headings.iter().copied())?;
        self.rows.iter().try_for_each(|row| line(f, &mut row.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_leaves_out_what_a_narrow_screen_can_do_without() {
        let mut table = Table::headed("node | rate | state");
        table.row(&[&"\u{6a5f}\u{7e54}", &"4xHDR", &"Active"]);
        let lines = |columns| {
            let mut again = Table::headed("node | rate | state");
            again.rows.clone_from(&table.rows);
            again.fit(columns, &["rate"]).to_string()
        };
        // Wide characters take two columns each.
        assert_eq!(lines(19), "node  rate   state\n\u{6a5f}\u{7e54}  4xHDR  Active\n");
        assert_eq!(lines(18), "node  state\n\u{6a5f}\u{7e54}  Active\n");
    }
}
