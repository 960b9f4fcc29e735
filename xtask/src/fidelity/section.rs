//! The rows of one report, or of one table of values without a report.

use serde_json::Value;

use super::row::{Row, counted};

/// The head of each table.
const COLUMNS: &str = "| what | paper | ours | ratio | verdict | why |\n|---|---|---|---|---|---|\n";

/// A section of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) rows: Vec<Row>,
}

impl Section {
    /// That of a report.
    pub(super) fn of(report: &Value) -> Option<Self> {
        let name = report["file"].as_str()?.rsplit('/').next()?.to_owned();
        let source = report["experiment"]["source"].as_str()?.to_owned();
        let rows = report["fidelity"].as_array()?.iter().map(Row::of).collect::<Option<_>>()?;
        Some(Self { name, source, rows })
    }

    /// A section of the page, behind `## `.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once("\n\n")?;
        let (source, table) = rest.split_once(".\n\n")?;
        let rows = table.lines().skip(2).filter(|line| line.starts_with('|')).map(Row::read);
        let name = head.rsplit_once(": ")?.0.to_owned();
        Some(Self { name, source: source.to_owned(), rows: rows.collect::<Option<_>>()? })
    }

    pub(super) fn text(&self) -> String {
        let Self { name, source, rows } = self;
        let counts = counted(&rows.iter().collect::<Vec<_>>());
        let lines: String = rows.iter().map(|row| row.line.as_str()).collect();
        format!("\n## {name}: {counts}\n\n{source}.\n\n{COLUMNS}{lines}")
    }
}
