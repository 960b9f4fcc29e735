//! Licences, banned crates and sources of dependencies, and advisories where their database can be fetched (`cargo deny`, deny.toml).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Checks them all. Advisories are skipped in words where there is no way to their database.
pub(crate) fn check(root: &Path) -> Result<()> {
    run(root, &["check", "licenses", "bans", "sources"])?;
    let fetched = command(root).args(["fetch", "db"]).stdout(Stdio::null()).output();
    let fetched = fetched.context("cannot start cargo-deny")?;
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        let said = why.lines().find_map(|line| line.strip_prefix("fatal: ")).or(why.lines().last());
        let why = said.unwrap_or("no reason given");
        eprintln!("skipped: advisories of dependencies, as their database cannot be fetched: {}", why.trim());
        return Ok(());
    }
    run(root, &["check", "advisories"])
}

fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    eprintln!("+ cargo deny {}", arguments.join(" "));
    let status = command(root).args(arguments).status().context("cannot start cargo-deny")?;
    if status.success() { Ok(()) } else { bail!("`cargo deny {}` failed", arguments.join(" ")) }
}

/// The one that `tests/run` installs, or the user's own.
fn command(root: &Path) -> Command {
    let own = root.join("target/judges/bin/cargo-deny");
    let mut command = Command::new(if own.exists() { own } else { PathBuf::from("cargo-deny") });
    command.args(["--locked", "--all-features", "--log-level", "error"]).current_dir(root);
    command
}
