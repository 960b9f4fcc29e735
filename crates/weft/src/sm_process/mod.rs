//! The subnet manager's driver: one thread that waits for its agent, its clock and its signals, and nothing else.
//!
//! ```text
//!   attachment ──MADs──▶ SubnetManager ──MADs──▶ attachment
//!   clock, SIGHUP ─────▶   (machine)   ──LIDs──▶ guid2lid
//!                                      ─events─▶ events.jsonl, status.json, the launcher
//! ```

mod attachment;
mod driver;
mod eager;
mod launcher;
mod status;

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_sm::GuidToLid;
use weft_umad::lock::ProcessLock;

pub(crate) use attachment::Place;
pub(crate) use launcher::LauncherLine;
pub(crate) use status::SmStatus;

use crate::cli::SmProcessArgs;
use crate::failure::Failure;
use crate::lab::launch::SM;
use crate::lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};

/// What the subnet manager's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SmConfig {
    /// The lock that it holds while it lives.
    pub(crate) lock: Option<PathBuf>,
    /// Where it attaches.
    pub(crate) attach: Place,
    /// The launcher's socket.
    pub(crate) launch: Option<PathBuf>,
    /// Where LIDs are kept.
    pub(crate) guid2lid: Option<PathBuf>,
    /// Where it says how it is.
    pub(crate) status: Option<PathBuf>,
    /// Where it says what happened.
    pub(crate) events: Option<PathBuf>,
    /// Whether it says on standard output when the subnet is up.
    #[serde(default)]
    pub(crate) announce: bool,
    /// Whether it ends then.
    #[serde(default)]
    pub(crate) once: bool,
    /// What the machine is told.
    pub(crate) options: weft_sm::Options,
}

impl SmConfig {
    /// Reads what the laboratory wrote down.
    pub(crate) fn load(path: &Path, launch: Option<PathBuf>) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut config: Self =
            serde_json::from_slice(&text).with_context(|| format!("{} makes no sense", path.display()))?;
        config.launch = launch.or(config.launch);
        Ok(config)
    }

    /// A manager of its own, without a laboratory, for a fabric that ibsim emulates.
    pub(crate) fn on_ibsim(server: &str, args: &SmProcessArgs) -> anyhow::Result<Self> {
        let node = args.at.clone().unwrap_or_default();
        Ok(Self {
            lock: None,
            attach: Place::Ibsim { server: server.to_owned(), node },
            launch: None,
            guid2lid: args.guid2lid.clone(),
            status: None,
            events: None,
            announce: true,
            once: args.once,
            // As OpenSM does.
            options: crate::sm_options::sm_options(&args.sm, None, false)?,
        })
    }
}

/// Runs until a signal asks it to end.
pub(crate) fn run(config: SmConfig) -> anyhow::Result<()> {
    let _lock = config.lock.as_deref().map(ProcessLock::take).transpose()?;
    weft_agent::log_to_stderr();
    let stop = Signals::watch(&[SIGTERM, SIGINT])?;
    let resweep = Signals::watch(&[SIGHUP])?;
    let known = config.guid2lid.as_deref().map(load_guid2lid).transpose()?.unwrap_or_default();
    let mut launcher = LauncherLine::connect(config.launch.as_deref());
    launcher.ready(SM);
    if launcher.wait_for_go(&stop)? {
        driver::Driver::new(config, &known, launcher, stop, resweep).run()?;
    }
    Ok(())
}

/// LIDs kept from an earlier run. A file that makes no sense is an error: guessing would renumber a fabric.
pub(crate) fn load_guid2lid(path: &Path) -> anyhow::Result<GuidToLid> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(GuidToLid::default()),
        Err(error) => Err(Failure::bad_input(format!("cannot read {}: {error}", path.display())).into()),
        Ok(text) => GuidToLid::parse(&path.display().to_string(), &text).map_err(|error| {
            Failure::bad_input(error.to_string()).hint("remove the file to have LIDs assigned afresh").into()
        }),
    }
}
