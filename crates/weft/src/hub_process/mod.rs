//! The process of a laboratory's hub: what [`weft_hub`] cannot know of a laboratory.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, LocalOptions};
use weft_control::hub::{EndKind, RestartPolicy};
use weft_control::process::ProcessKind;
use weft_hub::{Lab, Options, Trace};
use weft_process::lock::{LastWord, LockError, ProcessLock, holder, last_word};
use weft_process::{Clock, Journal};
use weft_umad::launch::ToLauncher;

use crate::failure::Failure;
use crate::lab::names::{HUB, IBSIM, PM, SM};
use crate::lab::process::raise_file_limit;
use crate::lab::{LabFolder, LabRecord, Place, folder, restart};
use crate::manager::LauncherLine;

/// `hub.json`: what every hub of a laboratory is told.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HubConfig {
    /// Which processes are started again.
    pub(crate) restart: RestartPolicy,
    /// Where it serves HTTP.
    #[serde(default)]
    pub(crate) http: Option<SocketAddr>,
}

impl HubConfig {
    /// Reads it; without one nothing is started again.
    pub(crate) fn load(lab: &LabFolder) -> anyhow::Result<Self> {
        let path = lab.place(Place::HubConfig);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        serde_json::from_slice(&text).with_context(|| format!("{} makes no sense", path.display()))
    }

    /// Writes it.
    pub(crate) fn store(&self, lab: &LabFolder) -> anyhow::Result<()> {
        folder::replace(&lab.place(Place::HubConfig), &serde_json::to_vec_pretty(self)?)
    }
}

/// Runs a hub until a signal or a client asks it to end, or the laboratory is gone. `ready` is called when it serves.
pub(crate) fn run(
    lab: &LabFolder,
    config: HubConfig,
    launch: Option<&Path>,
    ready: impl FnOnce(),
) -> anyhow::Result<()> {
    let lock = take_lock(lab)?;
    weft_process::log::log_to_stderr();
    raise_file_limit();
    let mut launcher = LauncherLine::connect(launch);
    let served = serve(lab, config, || {
        launcher.ready(HUB);
        ready();
    });
    if let Err(error) = &served {
        launcher.send(&ToLauncher::Failed { agent: HUB.to_owned(), reason: format!("{error:#}") });
        return served;
    }
    lock.note_stop();
    Ok(())
}

/// An error where the laboratory has a hub.
pub(crate) fn refuse_second(lab: &LabFolder) -> anyhow::Result<()> {
    let path = lab.place(Place::HubLock);
    let holder = holder(&path).with_context(|| format!("cannot ask who locks {}", path.display()))?;
    let Some(pid) = holder else { return Ok(()) };
    let message = format!("a hub of `{}` runs already as process {}", lab.name(), pid.as_raw_nonzero());
    Err(Failure::new(message).hint("one is enough; end it with `kill` to start another").into())
}

fn take_lock(lab: &LabFolder) -> anyhow::Result<ProcessLock> {
    let name = lab.name();
    match ProcessLock::take(&lab.place(Place::HubLock)) {
        Ok(lock) => Ok(lock),
        Err(LockError::Held { .. }) => {
            refuse_second(lab)?;
            Err(Failure::new(format!("a hub of `{name}` has just ended; try again")).into())
        }
        Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("`{name}` was started by a version of weft without hubs")).into())
        }
        Err(error) => Err(error.into()),
    }
}

fn serve(lab: &LabFolder, config: HubConfig, ready: impl FnOnce()) -> anyhow::Result<()> {
    let record = LabRecord::load(lab)?;
    let http = config.http.map(listen).transpose()?;
    let clock = Clock::start();
    let identity = weft_process::identity(lab.name(), HUB, ProcessKind::Hub, clock);
    let options = Options {
        identity,
        clock,
        folder: lab.control_folder(),
        expected: expected(&record),
        restart: config.restart,
        journal: Journal::open(Some(&lab.place(Place::Events)), HUB),
        http,
    };
    let laboratory = Arc::new(Laboratory { folder: lab.clone(), record });
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .context("cannot start the hub's runtime")?;
    let ran = runtime.block_on(weft_hub::run(options, laboratory, ready));
    runtime.shutdown_background();
    ran.context("the hub cannot go on")
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        Failure::new(format!("cannot serve the hub's HTTP on {address}: {error}"))
            .hint("end the program that has the port, or choose another")
            .into()
    })
}

/// The processes of a laboratory by name.
fn expected(record: &LabRecord) -> Vec<(String, ProcessKind)> {
    let agents = record.agents.iter().map(|agent| (agent.name.clone(), ProcessKind::Agent));
    let sms = record.subnet_managers().map(|(name, _)| (name, ProcessKind::Sm));
    let pm = record.pm.iter().map(|_| (PM.to_owned(), ProcessKind::Pm));
    let ibsim = record.ibsim.iter().map(|_| (IBSIM.to_owned(), ProcessKind::Ibsim));
    agents.chain(sms).chain(pm).chain(ibsim).collect()
}

/// A laboratory on this machine.
struct Laboratory {
    folder: LabFolder,
    record: LabRecord,
}

impl Lab for Laboratory {
    fn trace(&self, process: &str) -> Trace {
        let lock = self.folder.locks().join(process);
        // What cannot be asked now is asked again as long as the process may live.
        let lives = || holder(&lock).map_or(true, |holder| holder.is_some());
        if lives() {
            return Trace::Alive;
        }
        match last_word(&lock) {
            Err(_) | Ok(LastWord::Nothing) => Trace::NeverStarted,
            // One that has just begun says that it runs, too.
            Ok(LastWord::Runs) if lives() => Trace::Alive,
            Ok(LastWord::Runs) => Trace::Ended(EndKind::Failed),
            Ok(LastWord::Stopped) => Trace::Ended(EndKind::InOrder),
            Ok(LastWord::Killed) => Trace::Ended(EndKind::KilledOnPurpose),
        }
    }

    fn is_going_down(&self) -> bool {
        let down = self.folder.place(Place::DownLock);
        !down.exists() || holder(&down).map_or(true, |holder| holder.is_some())
    }

    fn start(&self, process: &str) -> Result<Child, String> {
        let verb = self.how_to_start(process).ok_or("the laboratory was not planned with it")?;
        let started = restart::start(&self.folder, verb, process);
        started.map(|started| started.child).map_err(|error| format!("{error:#}"))
    }
}

impl Laboratory {
    /// The hidden verb that runs a process.
    fn how_to_start(&self, process: &str) -> Option<&'static str> {
        let (_, kind) = expected(&self.record).into_iter().find(|(name, _)| name == process)?;
        Some(match kind {
            ProcessKind::Agent => "agent",
            ProcessKind::Sm => SM,
            ProcessKind::Pm => PM,
            ProcessKind::Ibsim => IBSIM,
            ProcessKind::Hub => return None,
        })
    }
}
