//! Faults that are put into a laboratory and taken out again: processes killed, frozen and restarted, cables unplugged and impaired, bad
//! identities presented. What was done, the front end hears; a fault that lasts has a name.

mod afar;
pub mod frozen;
pub mod lasting;
pub mod planned;
pub mod times;

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{self, LabFile};
use weft_bundle::names::{HUB, IBSIM, OPENSM, what};
use weft_fault::{FaultId, Process, Word};
use weft_process::lock::{ProcessLock, note_kill};

use crate::events::note_fault;
use crate::hub_status::pids;
use crate::process::Holder;
use crate::spread::{Spread, run_on};
use crate::view::Lab;
use crate::{restart as starts, teardown};

/// How a process is signalled and started. A node's agent freezes the node itself.
enum Reach {
    /// It is a process of this machine.
    Here,
    /// On its host, by ssh.
    Host(Spread),
    /// By asking it to end; what started it starts it again.
    Request,
}

impl Reach {
    fn of(lab: &Lab, process: &Process<String>) -> anyhow::Result<Self> {
        if !lab.folder.is_elsewhere() {
            return Ok(Self::Here);
        }
        Ok(match Spread::load(&lab.folder)? {
            // It watches the hosts from here.
            Some(_) if *process == Process::Hub => Self::Here,
            Some(spread) => Self::Host(spread),
            None => Self::Request,
        })
    }
}

/// Kills, starts or freezes a process on the host where it runs.
fn on_host(
    lab: &Lab,
    spread: &Spread,
    (word, lasts): (Word, Option<Duration>),
    process: &Process<String>,
) -> anyhow::Result<()> {
    let found = LabProcess::find(lab, process)?;
    let agent = lab.record.agents.iter().find(|agent| agent.name == found.name);
    let address = agent.map(|agent| &agent.address).or_else(|| lab.record.doors.get(&found.name));
    let host = address.with_context(|| format!("`{process}` has no host"))?.host();
    let done = match word {
        Word::Kill => "killed",
        Word::Freeze => "froze",
        Word::Thaw => "thawed",
        _ => "restarted",
    };
    let lasts = lasts.map(|lasts| format!("--for={}ms", lasts.as_millis()));
    let given = process.to_string();
    let line = ["--lab", lab.folder.name(), "fault", word.name()];
    let line: Vec<&str> = line.into_iter().chain(lasts.as_deref()).chain(["--", &given]).collect();
    run_on(spread, &host, &line)?;
    // A host that cannot be reached has no fault.
    record(lab, word, &found.name);
    lab.folder.say(&format!("{done} {} on {host}", found.what()));
    Ok(())
}

/// A process of the laboratory.
struct LabProcess {
    name: String,
    verb: &'static str,
    lock: PathBuf,
    /// The devices that go with it.
    devices: Vec<String>,
}

impl LabProcess {
    fn find(lab: &Lab, process: &Process<String>) -> anyhow::Result<Self> {
        let name = process.to_string();
        let own = |name: String, verb| {
            let lock = lab.folder.locks().join(&name);
            Self::of(name, verb, lock)
        };
        // Where the laboratory has no such process, a node may have its name.
        let named = !matches!(process, Process::Agent(_));
        let kind = lab.record.others().find(|(own, _)| named && *own == name).map(|(_, kind)| kind);
        if let Some(kind) = kind {
            return Ok(own(name, kind.name()));
        }
        match process {
            Process::Sm if !lab.record.own_opensms().is_empty() => Ok(own(OPENSM.to_owned(), OPENSM)),
            Process::Hub => Ok(own(name, HUB)),
            Process::Sm => Err(Failure::new("this laboratory has no subnet manager")
                .hint("it was started with --no-sm")
                .into()),
            Process::Pm => Err(Failure::new("this laboratory has no performance manager")
                .hint("start it with `weft up --pm`")
                .into()),
            _ => Self::agent(lab, &name),
        }
    }

    fn of(name: String, verb: &'static str, lock: PathBuf) -> Self {
        Self { name, verb, lock, devices: Vec::new() }
    }

    fn agent(lab: &Lab, node: &str) -> anyhow::Result<Self> {
        let guid = lab.fabric.node(lab.find(node)?).guid;
        let Some((agent, _)) = lab.record.device(guid) else {
            anyhow::bail!("no agent runs `{node}`");
        };
        let devices = agent.devices.iter().map(|device| device.label.clone()).collect();
        let lock = lab.folder.agent_lock(&agent.name);
        Ok(Self { devices, ..Self::of(agent.name.clone(), weft_bundle::names::AGENT, lock) })
    }

    fn is_agent(&self) -> bool {
        self.verb == weft_bundle::names::AGENT
    }

    fn what(&self) -> String {
        match self.devices.as_slice() {
            [] if self.name == HUB => "the hub".to_owned(),
            [] if self.name == IBSIM => "the server for ibsim's programs".to_owned(),
            [] => what(&self.name).unwrap_or_else(|| self.name.clone()),
            [device] => format!("`{device}` ({})", self.name),
            [device, others @ ..] => {
                format!("`{device}` and {} more devices ({})", others.len(), self.name)
            }
        }
    }
}

/// Kills a process. One that does not run stays dead.
pub fn kill(lab: &Lab, process: &Process<String>) -> anyhow::Result<()> {
    match Reach::of(lab, process)? {
        Reach::Here => {}
        Reach::Host(spread) => return on_host(lab, &spread, (Word::Kill, None), process),
        Reach::Request => return afar::kill(lab, &LabProcess::find(lab, process)?),
    }
    let process = LabProcess::find(lab, process)?;
    let Some(holder) = Holder::of(&process.lock)? else {
        // A hub that is about to start it again leaves it dead.
        let _ = note_kill(&process.lock);
        lab.folder.say(&format!("{} is not running", process.what()));
        return Ok(());
    };
    record(lab, Word::Kill, &process.name);
    teardown::kill(vec![holder])?;
    lab.folder.say(&format!("killed {}", process.what()));
    Ok(())
}

/// Starts a process again, and kills it first if it runs. A caller that goes on for long has to wait for the end of the process that
/// this has started, if it has.
pub fn restart(lab: &Lab, process: &Process<String>) -> anyhow::Result<Option<Child>> {
    match Reach::of(lab, process)? {
        Reach::Here => {}
        Reach::Host(spread) => {
            return on_host(lab, &spread, (Word::Restart, None), process).map(|()| None);
        }
        Reach::Request => return afar::restart(lab, &LabProcess::find(lab, process)?).map(|()| None),
    }
    let process = LabProcess::find(lab, process)?;
    if let Some(holder) = Holder::of(&process.lock)? {
        record(lab, Word::Kill, &process.name);
        teardown::kill(vec![holder])?;
    }
    record(lab, Word::Restart, &process.name);
    let child = match process.verb {
        HUB => starts::start_hub(&lab.folder)?,
        verb => starts::start(&lab.folder, verb, &process.name)?,
    };
    lab.folder.say(&format!("restarted {}", process.what()));
    Ok(Some(child))
}

/// Has a process run that was killed.
pub fn revive(lab: &Lab, process: &Process<String>) -> anyhow::Result<Option<Child>> {
    match Reach::of(lab, process)? {
        Reach::Request => afar::await_return(lab, &LabProcess::find(lab, process)?).map(|()| None),
        Reach::Here | Reach::Host(_) => restart(lab, process),
    }
}

/// Freezes a process; a node, where it names one. The returned child ends the fault of a process in time, and is to be waited for where
/// the caller goes on for long.
pub fn freeze(
    lab: &Lab,
    process: &Process<String>,
    lasts: Option<Duration>,
) -> anyhow::Result<Option<Child>> {
    let found = LabProcess::find(lab, process)?;
    if found.is_agent() {
        return lasting::freeze(lab, &process.to_string(), lasts).map(|()| None);
    }
    match Reach::of(lab, process)? {
        Reach::Here => frozen::freeze(lab, &found, lasts),
        Reach::Host(spread) => on_host(lab, &spread, (Word::Freeze, lasts), process).map(|()| None),
        Reach::Request => Err(afar::not_frozen(process).into()),
    }
}

/// The same of a process that may not run: then there is nothing to freeze. One that cannot be frozen from here is killed, and awaited.
pub fn freeze_if_running(
    lab: &Lab,
    process: &Process<String>,
    lasts: Duration,
) -> anyhow::Result<Option<Child>> {
    let runs = match Reach::of(lab, process)? {
        Reach::Here => Holder::of(&LabProcess::find(lab, process)?.lock)?.is_some(),
        Reach::Host(_) => pids(&lab.folder)?.is_some_and(|pids| pids.contains_key(&process.to_string())),
        Reach::Request => {
            kill(lab, process)?;
            return revive(lab, process);
        }
    };
    if runs { freeze(lab, process, Some(lasts)) } else { Ok(None) }
}

/// Lets a process go on, or a node.
pub fn thaw(lab: &Lab, process: &Process<String>) -> anyhow::Result<()> {
    let found = LabProcess::find(lab, process)?;
    if found.is_agent() {
        return lasting::thaw(lab, &process.to_string());
    }
    match Reach::of(lab, process)? {
        Reach::Here => frozen::thaw(lab, &found),
        Reach::Host(spread) => on_host(lab, &spread, (Word::Thaw, None), process),
        Reach::Request => Err(afar::not_frozen(process).into()),
    }
}

/// Tells the laboratory what is done to it.
fn record(lab: &Lab, fault: Word, target: &str) {
    if !note_fault(&lab.folder, &lab.record, fault, target) {
        lab.folder.say("warning: the fault could not be recorded in the event log");
    }
}

fn for_how_long(lasts: Option<Duration>) -> String {
    lasts.map_or_else(String::new, |lasts| format!(", for {} s", (lasts.as_secs_f64() * 1e6).round() / 1e6))
}

/// A name that no fault of the laboratory has had, and the number in it.
fn next_id(lab: &Lab) -> anyhow::Result<(FaultId, u32)> {
    if lab.folder.is_elsewhere() {
        // Clients in other places count for themselves.
        let number = rand::random::<u32>();
        return Ok((format!("f{number:08x}").parse()?, number));
    }
    let _turn = ProcessLock::wait(&lab.folder.place(LabFile::FaultLock))?;
    let path = lab.folder.place(LabFile::FaultCount);
    let count = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        text => text.with_context(|| format!("cannot read {}", path.display()))?.trim().parse().unwrap_or(0),
    };
    let next: u32 = 1 + count;
    folder::replace(&path, format!("{next}\n").as_bytes())?;
    Ok((format!("f{next}").parse()?, next))
}
