//! The process that serves ibsim's client protocol for a laboratory: a client of the agents' sockets.
//!
//! ```text
//!   program ─control, MADs─▶ weft_umad::ibsim::Server ─attach, MADs─▶ agent of the program's node
//!   clock ──────────────────▶      (machine)          ─answers, MADs, status 110─▶ program
//! ```

mod driver;
mod nodes;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_process::lock::ProcessLock;
use weft_umad::launch::ToLauncher;

use crate::lab::names::IBSIM;
use crate::lab::signals::{SIGINT, SIGTERM, Signals};
use crate::manager::LauncherLine;

/// Where programs find the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Listen {
    /// Abstract Unix sockets that begin with this name (`IBSIM_SOCKNAME`).
    Socket(String),
    /// UDP: this control port, and the ten after it for data (`IBSIM_SERVER_NAME` and `IBSIM_SERVER_PORT`).
    Udp(SocketAddr),
}

impl Listen {
    /// Who can manage the fabric by it: the protocol knows no credentials, and neither an abstract socket nor a port has
    /// permissions.
    pub(crate) fn open_to(&self) -> &'static str {
        match self {
            Self::Udp(address) if !address.ip().is_loopback() => "whoever can reach it",
            _ => "every user of this machine",
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(name) => f.write_str(name),
            Self::Udp(address) => write!(f, "udp:{address}"),
        }
    }
}

/// What the server's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IbsimConfig {
    /// The lock that it holds while it lives.
    pub(crate) lock: PathBuf,
    /// Where programs find it.
    pub(crate) listen: Listen,
    /// The laboratory's record: which agent runs which node.
    pub(crate) record: PathBuf,
    /// The laboratory's cabling: what nodes are called.
    pub(crate) topology: PathBuf,
    /// The folder of the agents' sockets.
    pub(crate) sockets: PathBuf,
    /// Where it says what happened.
    pub(crate) events: PathBuf,
    /// How long it waits for an answer before it asks again.
    pub(crate) timeout_ms: u64,
    /// How often it asks again before it tells the program that nobody answers.
    pub(crate) retries: u32,
    /// Whether it ends with whoever started it.
    pub(crate) bound: bool,
}

/// Runs until a signal asks it to end, or until its starter is gone if it is bound to that.
pub(crate) fn run(path: &Path, launch: Option<&Path>) -> anyhow::Result<()> {
    let text = crate::input::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let config: IbsimConfig =
        serde_json::from_slice(&text).with_context(|| format!("{} makes no sense", path.display()))?;
    let _lock = ProcessLock::take(&config.lock)?;
    weft_process::log::log_to_stderr();
    let mut stop = Signals::watch(&[SIGTERM, SIGINT])?;
    let prepared = driver::Driver::new(&config);
    let mut launcher = LauncherLine::connect(launch);
    let mut driver = prepared.inspect_err(|error| {
        launcher.send(&ToLauncher::Failed { agent: IBSIM.into(), reason: format!("{error:#}") });
    })?;
    launcher.ready(IBSIM);
    if !launcher.wait_for_go(&mut stop, Signals::arrived)? {
        return Ok(());
    }
    driver.run(&stop, config.bound.then_some(launcher))
}
