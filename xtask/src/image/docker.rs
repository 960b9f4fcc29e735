//! Docker's client, and what to do where it gets nowhere.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Asks whether an engine answers that the client understands, before anything is made for it.
pub(super) fn ready() -> Result<()> {
    said(&["version", "--format", "{{.Server.APIVersion}}"]).map(drop)
}

/// What the client prints; where it fails an error with its words, and with a hint where they are known.
pub(super) fn said(arguments: &[&str]) -> Result<String> {
    let output = Command::new("docker").args(arguments).output();
    let output = output.context("cannot start docker\nhint: install Docker's client, or put it into PATH")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    match known(&words) {
        Some((line, hint)) => bail!("`docker {}` failed: {line}\nhint: {hint}", arguments.join(" ")),
        None => bail!("`docker {}` failed: {}", arguments.join(" "), words.trim()),
    }
}

/// What is wrong between client and engine: the line that says so, and what to do.
fn known(words: &str) -> Option<(&str, &'static str)> {
    words.lines().map(str::trim).find_map(|line| {
        let hint = if line.contains("Maximum supported API version") {
            "the engine is too old for this client: update the engine, or use a client of its age"
        } else if line.contains("Minimum supported API version") {
            "the client is too old for this engine: update the client"
        } else if line.to_ascii_lowercase().contains("cannot connect to the docker daemon") {
            "start the engine, or say with DOCKER_HOST where one answers"
        } else {
            return None;
        };
        Some((line, hint))
    })
}

#[cfg(test)]
mod tests {
    use super::known;

    /// As clients from 20.10 to 28 print them.
    #[test]
    fn an_engine_of_another_age_or_none_is_known_by_its_line() {
        for (line, hint) in [
            (
                "Error response from daemon: client version 1.50 is too new. Maximum supported API version is 1.41",
                "the engine is too old",
            ),
            (
                "Error response from daemon: client version 1.22 is too old. Minimum supported API version is 1.24, \
                 please upgrade your client to a newer version",
                "the client is too old",
            ),
            (
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
                "start the engine",
            ),
        ] {
            let words = format!("DEPRECATED: The legacy builder is deprecated.\n\n{line}\n");
            let (found, advice) = known(&words).expect("it is known");
            assert_eq!(found, line);
            assert!(advice.starts_with(hint), "{advice}");
        }
        assert_eq!(known("COPY failed: no source files were specified\n"), None);
    }
}
