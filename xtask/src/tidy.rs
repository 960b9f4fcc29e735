//! Habits that no lint knows: short files and crates, pure rooms without a door to the outside, nothing left undone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::files::{body, is_test, rust_files, source_of};
use crate::{lengths, signatures, voice};

/// The longest file, not counting a trailing `mod tests`.
const LINES_MAX: usize = 500;

/// Paths into the standard library that a pure crate may not use.
const DOORS: &[&str] =
    &["std::net", "std::fs", "std::thread", "std::time", "std::env", "std::process", "std::io"];

/// Looks at the wall clock. Only one file has them, so that a test can set the clock of a process wrong.
const WALL_CLOCKS: &[&str] = &["SystemTime::now", "now_utc(", "UnixTime::now"];

/// Where the wall clock is read.
const CLOCK: &str = "crates/process/src/clock.rs";

/// The crates whose programs speak to people; all others return values, or log.
const PRINTERS: &[&str] = &["weft", "umad-preload"];

/// The macros that print.
const PRINTS: &[&str] = &["print!(", "println!(", "eprint!(", "eprintln!("];

/// What must not stay in the sources. Spelled in two parts, so that this file does not find itself.
const UNDONE: &[(&str, &str)] = &[("todo", "!("), ("unimplemented", "!("), ("#[", "ignore"), ("FIX", "ME")];

/// The macros that log.
const LOGS: &[&str] = &["trace", "debug", "info", "warn", "error", "event"];

/// Fails with every breach, each with its file and line.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut files = Vec::new();
    for folder in ["crates", "fuzz", "tests", "xtask"] {
        for file in rust_files(&root.join(folder))? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            files.push((file.strip_prefix(root).unwrap_or(&file).display().to_string(), text));
        }
    }
    let mut breaches: Vec<String> = files.iter().flat_map(|(name, text)| breaches_of(name, text)).collect();
    breaches.extend(lengths::breaches(&files));
    breaches.extend(voice::check(root, &files)?);
    let is_source = |name: &str| name.contains("/src/") && !name.starts_with("tests/") && !is_test(name);
    breaches.extend(signatures::breaches(files.iter().filter(|(name, _)| is_source(name)))?);
    if breaches.is_empty() { Ok(()) } else { bail!("not tidy:\n  {}", breaches.join("\n  ")) }
}

fn breaches_of(name: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let body = body(text);
    let lines = body.lines().count();
    if lines > LINES_MAX {
        breaches.push(format!("{name}: {lines} lines, more than {LINES_MAX}"));
    }
    let is_test = is_test(name);
    let pure =
        !is_test && crate::layers::pure_rooms().any(|room| name.starts_with(&format!("crates/{room}/src/")));
    let prints_nothing = !is_test && source_of(name).is_some_and(|room| !PRINTERS.contains(&room));
    let reads_no_clock = !is_test && name.starts_with("crates/") && name != CLOCK;
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for door in DOORS.iter().filter(|door| pure && code.contains(**door)) {
            breaches.push(format!("{name}:{}: a pure room has no {door}", i + 1));
        }
        for look in WALL_CLOCKS.iter().filter(|look| reads_no_clock && code.contains(**look)) {
            breaches.push(format!("{name}:{}: {look} is left to weft_process::utc_now", i + 1));
        }
        if prints_nothing && PRINTS.iter().any(|print| code.contains(print)) {
            breaches.push(format!("{name}:{}: only {} print", i + 1, PRINTERS.join(" and ")));
        }
        for (head, tail) in UNDONE {
            if code.contains(&format!("{head}{tail}")) {
                breaches.push(format!("{name}:{}: {head}{tail} is left", i + 1));
            }
        }
    }
    if !is_test {
        let lines = debug_logs(body).into_iter();
        breaches.extend(lines.map(|line| format!("{name}:{line}: a log line shows a Rust debug form")));
    }
    breaches
}

/// The lines of log statements that show a value as `Debug` does: people read logs, and GUIDs are numbers there.
fn debug_logs(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for name in LOGS {
        let head = format!("{name}!(");
        for (at, _) in text.match_indices(&head) {
            let begins = text[..at].chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
            if begins && shows_debug(&text[at + head.len()..]) {
                found.push(text[..at].matches('\n').count() + 1);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether the arguments of a log statement have `?value`, or `{value:?}` in a text.
fn shows_debug(arguments: &str) -> bool {
    let (mut depth, mut before, mut is_text, mut escaped) = (1_u32, '(', false, false);
    for c in arguments.chars() {
        if is_text {
            // Nothing but a format ends so.
            if c == '}' && before == '?' {
                return true;
            }
            (is_text, escaped) = (escaped || c != '"', c == '\\' && !escaped);
            before = c;
            continue;
        }
        match c {
            '"' => is_text = true,
            '(' => depth += 1,
            ')' if depth == 1 => return false,
            ')' => depth -= 1,
            // No expression begins with it.
            '?' if ['(', ',', '='].contains(&before) => return true,
            _ => {}
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    false
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

    #[test]
    fn only_programs_for_people_print() {
        for print in ["print", "println", "eprint", "eprintln"] {
            let text = format!("fn f() {{ {print}!(\"a\"); }}\n");
            for (file, breaches) in [
                ("crates/sm/src/a.rs", 1),
                ("crates/programs/src/bin/a.rs", 1),
                ("crates/weft/src/a.rs", 0),
                ("crates/umad-preload/src/a.rs", 0),
                ("crates/sm/src/a/tests.rs", 0),
                ("crates/sm/tests/all/a.rs", 0),
                ("crates/sim/examples/a.rs", 0),
                ("xtask/src/a.rs", 0),
            ] {
                assert_eq!(super::breaches_of(file, &text).len(), breaches, "{file}: {text}");
            }
        }
        assert_eq!(super::breaches_of("crates/sm/src/a.rs", "/// Prints with `println!(\"a\")`.\n").len(), 0);
    }

    #[test]
    fn logs_show_no_debug_forms() {
        for wrong in [
            "info!(?event, \"event\");",
            "tracing::warn!(\n    %node,\n    event = ?other,\n    \"device\"\n);",
            "debug!(\"{node}: {event:?}\");",
            "debug!(\"{:#?}\", event);",
        ] {
            let text = format!("fn f() {{\n    {wrong}\n}}\n");
            assert_eq!(super::debug_logs(&text), [2], "{wrong}");
            assert_eq!(super::breaches_of("crates/link/src/a.rs", &text).len(), 1, "{wrong}");
            assert_eq!(super::breaches_of("crates/link/tests/a.rs", &text).len(), 0, "{wrong}");
        }
        for right in [
            "info!(%event, \"what? {event}\");",
            "info!(\"{said}\");",
            "warn!(error = %read(file)?, \"no (file)\"); let x = f(?);",
            "my_info!(?event);",
            "debug!(\"a \\\"quoted?\\\" name\");",
        ] {
            assert_eq!(super::debug_logs(right), [0_usize; 0], "{right}");
        }
    }
}
