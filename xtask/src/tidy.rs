//! Habits that no lint knows: short files, pure rooms without a door to the outside, nothing left undone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The longest file, not counting a trailing `mod tests`.
const LINES_MAX: usize = 500;

/// Paths into the standard library that a pure crate may not use.
const DOORS: &[&str] =
    &["std::net", "std::fs", "std::thread", "std::time", "std::env", "std::process", "std::io"];

/// Looks at the wall clock. Only one file has them, so that a test can set the clock of a process wrong.
const WALL_CLOCKS: &[&str] = &["SystemTime::now", "now_utc(", "UnixTime::now"];

/// Where the wall clock is read.
const CLOCK: &str = "crates/process/src/clock.rs";

/// What must not stay in the sources. Spelled in two parts, so that this file does not find itself.
const UNDONE: &[(&str, &str)] = &[("todo", "!("), ("unimplemented", "!("), ("#[", "ignore"), ("FIX", "ME")];

/// Fails with every breach, each with its file and line.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut breaches = Vec::new();
    for folder in ["crates", "fuzz", "xtask"] {
        for file in rust_files(&root.join(folder))? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            breaches.extend(breaches_of(&name, &text));
        }
    }
    if breaches.is_empty() { Ok(()) } else { bail!("not tidy:\n  {}", breaches.join("\n  ")) }
}

fn breaches_of(name: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let body = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = body.lines().count();
    if lines > LINES_MAX {
        breaches.push(format!("{name}: {lines} lines, more than {LINES_MAX}"));
    }
    let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
    let pure =
        !is_test && crate::layers::pure_rooms().any(|room| name.starts_with(&format!("crates/{room}/src/")));
    let reads_no_clock = !is_test && name.starts_with("crates/") && name != CLOCK;
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for door in DOORS.iter().filter(|door| pure && code.contains(**door)) {
            breaches.push(format!("{name}:{}: a pure room has no {door}", i + 1));
        }
        for look in WALL_CLOCKS.iter().filter(|look| reads_no_clock && code.contains(**look)) {
            breaches.push(format!("{name}:{}: {look} is left to weft_process::utc_now", i + 1));
        }
        for (head, tail) in UNDONE {
            if code.contains(&format!("{head}{tail}")) {
                breaches.push(format!("{name}:{}: {head}{tail} is left", i + 1));
            }
        }
    }
    breaches
}

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_sources_are_tidy() {
        super::check(&crate::root()).unwrap();
    }

    #[test]
    fn each_breach_is_found() {
        let long = "fn f() {}\n".repeat(501);
        assert_eq!(super::breaches_of("crates/wire/src/a.rs", &long).len(), 1);
        assert_eq!(super::breaches_of("crates/wire/src/a.rs", "use std::fs;\n").len(), 1);
        assert_eq!(super::breaches_of("crates/link/src/a.rs", "use std::fs;\n").len(), 0);
        let undone = format!("{}{}\"later\")", "todo", "!(");
        assert_eq!(super::breaches_of("crates/link/src/a.rs", &undone).len(), 1);
    }
}
