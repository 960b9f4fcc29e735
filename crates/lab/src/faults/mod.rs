//! Faults that are put into a laboratory and taken out again: processes killed, frozen and restarted, cables unplugged and impaired, bad
//! identities presented. What was done, the front end hears; a fault that lasts has a name.

pub mod frozen;
pub mod lasting;
pub mod planned;
pub mod times;

use std::process::Child;
use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::names::{AGENT, HUB, OPENSM};
use weft_control::Request;
use weft_fault::{Process, Word};
use weft_process::Client;

use crate::site::{self, LabProcess, Order};
use crate::view::Lab;

/// How long a process has to note a fault. It needs no more than a moment, unless it is frozen.
const PATIENCE: Duration = Duration::from_secs(1);
/// Processes that are asked to note one at most; where all of these hang, the others hardly answer.
const TRIES_MAX: usize = 8;

/// The process that somebody names.
fn find(lab: &Lab, process: &Process<String>) -> anyhow::Result<LabProcess> {
    let given = process.to_string();
    let own = |name: &str, verb| {
        Ok(LabProcess { name: name.to_owned(), given: given.clone(), verb, devices: Vec::new() })
    };
    // Where the laboratory has no such process, a node may have its name.
    let named = !matches!(process, Process::Agent(_));
    let kind = lab.record.others().find(|(own, _)| named && *own == given).map(|(_, kind)| kind);
    if let Some(kind) = kind {
        return own(&given, kind.name());
    }
    match process {
        Process::Sm if !lab.record.own_opensms().is_empty() => own(OPENSM, OPENSM),
        Process::Hub => own(&given, HUB),
        Process::Sm => {
            Err(Failure::new("this laboratory has no subnet manager").hint("it was started with --no-sm"))
        }
        Process::Pm => {
            Err(Failure::new("this laboratory has no performance manager")
                .hint("start it with `weft up --pm`"))
        }
        _ => agent(lab, &given),
    }
}

/// The agent of a node.
fn agent(lab: &Lab, node: &str) -> anyhow::Result<LabProcess> {
    let guid = lab.fabric.node(lab.find(node)?).guid;
    let Some((agent, _)) = lab.record.device(guid) else {
        anyhow::bail!("no agent runs `{node}`");
    };
    let devices = agent.devices.iter().map(|device| device.label.clone()).collect();
    Ok(LabProcess { name: agent.name.clone(), given: node.to_owned(), verb: AGENT, devices })
}

/// Kills a process. One that does not run stays dead.
pub fn kill(lab: &Lab, process: &Process<String>) -> anyhow::Result<()> {
    carry_out(lab, Order::Kill, &find(lab, process)?).map(drop)
}

/// Starts a process again, and kills it first if it runs. A caller that goes on for long has to wait for the end of the process that
/// this has started, if it has.
pub fn restart(lab: &Lab, process: &Process<String>) -> anyhow::Result<Option<Child>> {
    carry_out(lab, Order::Restart, &find(lab, process)?)
}

/// Has a process run that was killed.
pub fn revive(lab: &Lab, process: &Process<String>) -> anyhow::Result<Option<Child>> {
    let found = find(lab, process)?;
    site::of(&lab.folder)?.revive(&found, &|word| record(lab, word, &found.name))
}

/// Freezes a process; a node, where it names one. The returned child ends the fault of a process in time, and is to be waited for where
/// the caller goes on for long.
pub fn freeze(
    lab: &Lab,
    process: &Process<String>,
    lasts: Option<Duration>,
) -> anyhow::Result<Option<Child>> {
    let found = find(lab, process)?;
    match found.is_agent() {
        true => lasting::freeze(lab, &found.given, lasts).map(|()| None),
        false => carry_out(lab, Order::Freeze(lasts), &found),
    }
}

/// The same of a process that may not run: then there is nothing to freeze. One that cannot be frozen from here is killed, and awaited.
pub fn freeze_if_running(
    lab: &Lab,
    process: &Process<String>,
    lasts: Duration,
) -> anyhow::Result<Option<Child>> {
    let found = find(lab, process)?;
    site::of(&lab.folder)?.freeze_if_running(&found, lasts, &|word| record(lab, word, &found.name))
}

/// Lets a process go on, or a node.
pub fn thaw(lab: &Lab, process: &Process<String>) -> anyhow::Result<()> {
    let found = find(lab, process)?;
    match found.is_agent() {
        true => lasting::thaw(lab, &found.given),
        false => carry_out(lab, Order::Thaw, &found).map(drop),
    }
}

fn carry_out(lab: &Lab, order: Order, process: &LabProcess) -> anyhow::Result<Option<Child>> {
    site::of(&lab.folder)?.carry_out(order, process, &|word| record(lab, word, &process.name))
}

/// Has the hub note a fault among its events, or the first process that takes it where no hub answers: what the target remembers may go
/// with it.
fn record(lab: &Lab, fault: Word, target: &str) {
    let agents = lab.record.agents.iter().map(|agent| agent.name.clone());
    let others = lab.record.others().map(|(name, _)| name);
    let names = std::iter::once(HUB.to_owned()).chain(others).chain(agents).filter(|name| name != target);
    let clients = names.filter_map(|name| Client::connect(&lab.folder.control(&name)).ok());
    let request = Request::NoteFault { fault, target: target.to_owned() };
    if !clients.take(TRIES_MAX).any(|mut client| client.ask(request.clone(), PATIENCE).is_ok()) {
        lab.folder.say("warning: the fault could not be recorded in the event log");
    }
}
