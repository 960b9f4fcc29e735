//! What a laboratory's hub knows of its processes.

use std::time::Duration;

use weft_control::hub::{LabStatus, NamePage};
use weft_control::{Answer, Request};
use weft_process::Client;

use super::LabFolder;
use super::names::HUB;

/// How long the hub has to answer. It asks no one itself, so one that is well answers at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the hub says, with all processes; `None` where none answers.
pub(crate) fn lab_status(lab: &LabFolder) -> Option<LabStatus> {
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
