//! Other programs, run for their output.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// What a program prints; an error with its words where it fails.
pub(super) fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
