//! Everything that must hold before a change lands, part by part, with the time that each part took.

use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::{cargo, cargo_with, deny, wasm};

/// A part of the run.
struct Part {
    name: &'static str,
    run: fn(&Path) -> Result<()>,
}

/// In the order in which they fail fastest.
const PARTS: [Part; 7] = [
    Part { name: "format", run: |_| cargo(&["fmt", "--all", "--check"]) },
    Part { name: "lints", run: |_| clippy() },
    Part { name: "documentation", run: |_| documentation() },
    Part { name: "pure crates for wasm", run: wasm::check },
    Part { name: "dependencies", run: deny::check },
    // Tests of real processes start the programs and the library from cargo's folder. In one build with the tests: dependencies have other
    // features without them, and would be built twice.
    Part { name: "build", run: |_| build() },
    Part { name: "tests", run: |_| tests() },
];

/// Runs all parts up to the first that fails, and shows how long each took.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut times = Vec::new();
    let mut result = Ok(());
    for part in PARTS {
        let began = Instant::now();
        result = (part.run)(root);
        times.push((part.name, began.elapsed()));
        if result.is_err() {
            break;
        }
    }
    eprint!("{}", table(&times));
    result
}

fn clippy() -> Result<()> {
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

fn documentation() -> Result<()> {
    cargo_with(&["doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "-D warnings")])
}

fn build() -> Result<()> {
    cargo(&["build", "--workspace", "--locked", "--lib", "--bins", "--tests", "--examples"])
}

/// Examples in documentation are tests, too: nextest leaves them out.
fn tests() -> Result<()> {
    let threads = 2 * std::thread::available_parallelism().map_or(1, NonZero::get);
    let options = ["--profile", "ci", "--test-threads", &threads.to_string()];
    cargo(&[&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"], &options[..]].concat())?;
    cargo(&["test", "--doc", "--workspace", "--locked"])
}

/// A line for each part, and their sum.
fn table(times: &[(&str, Duration)]) -> String {
    let sum = ("in all", times.iter().map(|(_, time)| *time).sum());
    let line = |(name, time): &(&str, Duration)| format!("{name:<22} {:>6} s\n", time.as_secs());
    times.iter().chain([&sum]).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_sum() {
        let times = [("format", Duration::from_secs(2)), ("tests", Duration::from_millis(600_999))];
        let text = "format                      2 s\ntests                     600 s\nin all                    602 s\n";
        assert_eq!(table(&times), text);
    }
}
