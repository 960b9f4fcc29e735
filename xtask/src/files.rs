//! Sources: the files of a folder, and of each its crate and the part that is no test.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// All Rust sources below a folder, in order; what is built is left out.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                files.extend(rust_files(&path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A file's text without a trailing `mod tests`.
pub(crate) fn body(text: &str) -> &str {
    let is_tests = |at: &usize| {
        let mut lines = text[*at..].lines().skip(2).skip_while(|line| line.starts_with("#["));
        lines.next() == Some("mod tests {")
    };
    let end = text.match_indices("\n#[cfg(test)]\n").map(|(at, _)| at).find(is_tests);
    end.map_or(text, |at| &text[..at])
}

/// Whether a file holds tests alone.
pub(crate) fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// The crate of a source file; none for tests, examples and what is not in `crates`.
pub(crate) fn source_of(name: &str) -> Option<&str> {
    let (room, file) = name.strip_prefix("crates/")?.split_once('/')?;
    file.starts_with("src/").then_some(room)
}
