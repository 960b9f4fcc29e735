//! A laboratory that a bench starts for itself, by the verbs of the front end's program.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::Value;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{Base, LabFolder};

use super::quiet::Household;

/// It is taken down however the measurement ends.
pub(super) struct OwnLab {
    pub(super) folder: LabFolder,
    pub(super) up: Up,
    _down: Down,
}

/// How it came up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Up {
    /// From the start of `weft up` to SUBNET UP.
    pub(super) subnet_up_s: f64,
    /// The subnet manager's part: from its first SMP to SUBNET UP.
    pub(super) sm_s: f64,
    pub(super) smps: u64,
    /// What else ran meanwhile, in shares of one core.
    pub(super) others_used: f64,
}

/// Takes down what is there of a laboratory.
struct Down(Base, &'static str);

impl Drop for Down {
    fn drop(&mut self) {
        if let Err(error) = weft(&self.0, self.1, &["down"]) {
            self.0.front().listener.line(&format!("warning: {error:#}"));
        }
    }
}

impl OwnLab {
    /// Starts it from a topology file.
    pub(super) fn start(
        base: &Base,
        name: &'static str,
        arguments: &[String],
        file: &Path,
    ) -> anyhow::Result<Self> {
        let watch = Household::watch(None)?;
        let down = Down(base.clone(), name);
        let shown = file.display().to_string();
        let mut up: Vec<&str> = ["up", "--json"].to_vec();
        up.extend(arguments.iter().map(String::as_str).chain([shown.as_str()]));
        let summary: Value = serde_json::from_str(&weft(base, name, &up)?)?;
        let folder = base.lab(name)?;
        let others_used = watch.others_used(&folder)?;
        let status: Value = serde_json::from_str(&weft(base, name, &["status", "--json"])?)?;
        let phases =
            status["sm"]["last"]["phases"].as_array().context("the subnet manager told no phases")?;
        let took = phases.iter().map(|phase| phase["took_ns"].as_u64().context("a phase without its time"));
        let up = Up {
            subnet_up_s: summary["subnet_up_s"].as_f64().context("`up` told no time")?,
            sm_s: took.sum::<anyhow::Result<u64>>()? as f64 / 1e9,
            smps: summary["smps"].as_u64().unwrap_or(0),
            others_used,
        };
        Ok(Self { folder, up, _down: down })
    }
}

/// Runs the program with another verb on a laboratory and gives what it prints.
fn weft(base: &Base, lab: &str, verb: &[&str]) -> anyhow::Result<String> {
    run(base, &[&["--lab", lab], verb].concat())
}

/// Runs the program and gives what it prints.
pub(super) fn run(base: &Base, arguments: &[&str]) -> anyhow::Result<String> {
    let program = base.front().program().context("cannot tell which program this is")?;
    let shown = || arguments.join(" ");
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `weft {}`", shown()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::new(format!("`weft {}` failed", shown())).hint(said));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
