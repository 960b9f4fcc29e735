//! Status of a laboratory's processes, from its hub.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::hub::{LabStatus, ProcessState};
use weft_control::process::ProcessKind;
use weft_control::{Answer, NamePage, Request};
use weft_process::Client;

use crate::site::frozen::Frozen;

/// How long the hub has to answer. It asks no one itself, so one that is well answers at once.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long another process has.
const PROCESS_PATIENCE: Duration = Duration::from_secs(5);

/// What the hub says, with all processes; `None` where none answers, and at once where it is frozen.
pub fn lab_status(lab: &LabFolder) -> Option<LabStatus> {
    if Frozen::of_process(lab, HUB).is_some() {
        return None;
    }
    let mut client = Client::connect(&lab.control(HUB)).ok()?;
    let mut whole: Option<LabStatus> = None;
    loop {
        let last = whole.as_ref().and_then(|status| status.processes.last());
        let page = NamePage { after: last.map(|process| process.name.clone()), limit: None };
        let Ok(Answer::LabStatus(part)) = client.ask(Request::LabStatus(page), PATIENCE) else { return None };
        let more = part.more && !part.processes.is_empty();
        match &mut whole {
            Some(whole) => whole.processes.extend(part.processes),
            None => whole = Some(*part),
        }
        if !more {
            return whole;
        }
    }
}

/// The numbers of the processes that run according to the hub, by name, its own among them; `None` where none answers.
pub fn pids(lab: &LabFolder) -> anyhow::Result<Option<BTreeMap<String, i32>>> {
    let Some(status) = lab_status(lab) else { return Ok(None) };
    let mut pids = BTreeMap::new();
    for process in status.processes.into_iter().filter(|process| process.state.is_alive()) {
        if let Some(pid) = process.pid {
            pids.insert(process.name, i32::try_from(pid)?);
        }
    }
    let hello = Client::connect(&lab.control(HUB))?.ask(Request::Hello, PROCESS_PATIENCE)?;
    if let Answer::Hello(hello) = hello {
        pids.insert(HUB.to_owned(), i32::try_from(hello.identity.pid)?);
    }
    Ok(Some(pids))
}

/// An error unless all processes run, and the subnet is up if there is a subnet manager.
pub fn is_up(folder: &LabFolder) -> anyhow::Result<()> {
    let status = lab_status(folder).ok_or_else(|| Failure::new("the hub does not answer"))?;
    let expected = || status.processes.iter().filter(|line| line.is_expected);
    if let Some(line) = expected().find(|line| line.state != ProcessState::Ready) {
        return Err(Failure::new(format!("`{}` is {}", line.name, line.state.name())).into());
    }
    let mut managers = expected().filter(|line| line.kind == Some(ProcessKind::Sm)).peekable();
    if managers.peek().is_none() {
        return Ok(());
    }
    for manager in managers {
        let mut client = Client::connect(&folder.control(&manager.name))?;
        if let Answer::SmStatus(status) = client.ask(Request::SmStatus, PROCESS_PATIENCE)?
            && status.subnet_up
        {
            return Ok(());
        }
    }
    Err(Failure::new("no subnet manager has brought the subnet up").into())
}
