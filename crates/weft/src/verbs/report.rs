//! Reports that a verb writes into a folder, beside what it prints.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::write_shared;

use crate::output::{print, print_json, say};

/// Makes a report's folder before the work begins, so that it does not end in a folder that cannot be written.
pub(super) fn prepare(folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let probe = folder.join(".probe");
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&probe, b"weft"))
        .and_then(|()| std::fs::remove_file(&probe));
    written.map_err(|error| {
        Failure::bad_input(format!("cannot write a report to {}: {error}", folder.display()))
            .hint("choose another folder with --report")
    })
}

/// Writes a report's files where there is a folder, and prints the report itself as JSON, or its text.
pub(super) fn publish<R: Serialize>(
    report: &R,
    folder: Option<&Path>,
    files: impl FnOnce(&R) -> BTreeMap<String, String>,
    text: Option<&str>,
) -> anyhow::Result<()> {
    if let Some(folder) = folder {
        for (name, text) in files(report) {
            write_shared(&folder.join(name), text.as_bytes())?;
        }
    }
    match text {
        Some(text) => print(text)?,
        None => print_json(report)?,
    }
    if let Some(folder) = folder {
        say(&format!("the report is {}", folder.join("report.md").display()));
    }
    Ok(())
}
