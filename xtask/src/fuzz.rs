//! libFuzzer over every target, for a while each (`cargo fuzz`, a nightly toolchain).

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Half a minute each where no time is given.
const MINUTES: &str = "0.5";
/// One input takes longer than this only where something is wrong.
const INPUT_SECONDS_MAX: u32 = 25;

/// Searches with every target, or with those that are named: `--minutes N [TARGET…]`. What each has found is listed at the end.
pub(crate) fn search(root: &Path, arguments: &[String]) -> Result<()> {
    let (minutes, only) = match arguments.split_first() {
        Some((flag, rest)) if flag == "--minutes" => {
            let (minutes, only) =
                rest.split_first().context("--minutes takes a number, as in --minutes 5")?;
            (minutes.as_str(), only)
        }
        _ => (MINUTES, arguments),
    };
    let seconds = minutes.parse::<f64>().ok().map(|minutes| minutes * 60.0);
    let seconds = seconds.filter(|seconds| (1.0..=1e6).contains(seconds));
    let seconds = seconds.with_context(|| format!("--minutes {minutes}: from 0.02 to 16000"))? as u64;
    if let Some(missing) = missing() {
        eprintln!("skipped: the search of libFuzzer, as {missing}");
        return Ok(());
    }
    let all = targets(root)?;
    if let Some(unknown) = only.iter().find(|name| !all.contains(name)) {
        bail!("no fuzz target {unknown}\nhint: one of {}", all.join(", "));
    }
    let chosen = all.iter().filter(|name| only.is_empty() || only.contains(name));
    let found: Vec<&str> = chosen.filter(|name| !holds(root, name, seconds)).map(String::as_str).collect();
    if found.is_empty() { Ok(()) } else { bail!("found by {}: see fuzz/artifacts", found.join(", ")) }
}

/// What is missing for a search, for people.
fn missing() -> Option<&'static str> {
    let runs = |arguments: &[&str]| {
        let status = command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !runs(&["--version"]) {
        return Some("there is no nightly toolchain: rustup toolchain install nightly");
    }
    (!runs(&["fuzz", "--version"])).then_some("there is no cargo-fuzz: cargo install cargo-fuzz")
}

/// The nightly toolchain's cargo. This program's own environment names another one.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// The targets by their programs, in order.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Whether a target finds nothing. What it learns stays out of the repository's corpus.
fn holds(root: &Path, target: &str, seconds: u64) -> bool {
    let learnt = root.join("target/fuzz-corpus").join(target);
    if let Err(error) = std::fs::create_dir_all(&learnt) {
        eprintln!("cannot make {}: {error}", learnt.display());
        return false;
    }
    let (learnt, known) = (learnt.display().to_string(), format!("fuzz/corpus/{target}"));
    let time = format!("-max_total_time={seconds}");
    let timeout = format!("-timeout={INPUT_SECONDS_MAX}");
    let arguments = [
        "fuzz",
        "run",
        "--features",
        "libfuzzer",
        target,
        &learnt,
        &known,
        "--",
        &time,
        &timeout,
        "-max_len=65536",
    ];
    eprintln!("+ cargo {}", arguments.join(" "));
    command(&arguments).current_dir(root).status().is_ok_and(|status| status.success())
}
