//! `weft study`

mod migrations;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::cli::StudyVerb;
use crate::failure::Failure;

pub(super) fn run(verb: &StudyVerb) -> anyhow::Result<ExitCode> {
    match verb {
        StudyVerb::Migrations(args) => migrations::run(args),
    }
}

/// Makes a report's folder before the work begins, so that it does not end in a folder that cannot be written.
pub(super) fn prepare_report(folder: &Path) -> anyhow::Result<()> {
    let probe = folder.join(".probe");
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&probe, b"weft"))
        .and_then(|()| std::fs::remove_file(&probe));
    written.map_err(|error| {
        Failure::bad_input(format!("cannot write a report to {}: {error}", folder.display()))
            .hint("choose another folder with --report")
            .into()
    })
}

/// Writes a report's files.
pub(super) fn write_report(folder: &Path, files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
