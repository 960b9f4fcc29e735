//! Telling a laboratory what is done to it on purpose.

use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_bundle::record::LabRecord;
use weft_control::Request;
use weft_control::fault::Word;
use weft_process::Client;

/// How long a process has to take note. It needs no more than a moment, unless it is frozen.
const PATIENCE: Duration = Duration::from_secs(1);
/// Processes that are asked at most; where all of these hang, the others hardly answer.
const TRIES_MAX: usize = 8;

/// Has the hub note a fault among its events, or the first process that takes it where no hub answers: what the target
/// remembers may go with it. False when no process takes it.
pub fn note_fault(lab: &LabFolder, record: &LabRecord, fault: Word, target: &str) -> bool {
    let agents = record.agents.iter().map(|agent| agent.name.clone());
    let others = record.others().map(|(name, _)| name);
    let names = std::iter::once(HUB.to_owned()).chain(others).chain(agents);
    let others = names.filter(|name| name != target);
    let mut clients = others.filter_map(|name| Client::connect(&lab.control(&name)).ok()).take(TRIES_MAX);
    let request = Request::NoteFault { fault, target: target.to_owned() };
    clients.any(|mut client| client.ask(request.clone(), PATIENCE).is_ok())
}
