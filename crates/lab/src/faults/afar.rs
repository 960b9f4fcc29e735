//! Killing processes that run elsewhere, where no ssh leads, as in containers: the hub asks each to end itself, and what started it
//! there starts it again.

use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::names::{HUB, OPENSM};
use weft_control::fault::Word;
use weft_control::hub::ProcessState;
use weft_control::{Answer, Incarnation, Request};
use weft_fault::Process;
use weft_process::{Client, ClientError};

use crate::faults::{LabProcess, record};
use crate::hub_status::lab_status;
use crate::looks;
use crate::view::Lab;

/// How long the hub and other processes have to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a hub that has just begun may take to hear a process.
const HEARS: Duration = Duration::from_secs(15);
/// How long a process that was asked to end may be seen still: the hub notices the end of its connection.
const ENDS: Duration = Duration::from_secs(30);
/// How long one may take to come back: container engines wait for up to a minute before they start one that keeps ending.
const RETURNS: Duration = Duration::from_secs(90);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Has a process end at once. One that does not run stays as it is.
pub(super) fn kill(lab: &Lab, found: &LabProcess) -> anyhow::Result<()> {
    match known_life(lab, found)? {
        None => lab.folder.say(&format!("{} is not running", found.what())),
        Some(life) => {
            end(lab, found, life)?;
            lab.folder.say(&format!("killed {}; what started it there may start it again", found.what()));
        }
    }
    Ok(())
}

/// Has a process end at once, if it runs, and waits until it is back.
pub(super) fn restart(lab: &Lab, found: &LabProcess) -> anyhow::Result<()> {
    if let Some(life) = known_life(lab, found)? {
        end(lab, found, life)?;
    }
    // While the hub is away it passes nothing on.
    let is_hub = found.name == HUB;
    if !is_hub {
        record(lab, Word::Restart, &found.name);
    }
    await_return(lab, found)?;
    if is_hub {
        record(lab, Word::Restart, &found.name);
    }
    lab.folder.say(&format!("restarted {}", found.what()));
    Ok(())
}

/// Waits until a process runs.
pub(super) fn await_return(lab: &Lab, found: &LabProcess) -> anyhow::Result<()> {
    let back = looks::until(RETURNS, LOOK, || matches!(life(lab, found), Ok(Some(_))));
    if back {
        return Ok(());
    }
    let why = format!("{} has not come back within {} s", found.what(), RETURNS.as_secs());
    Err(Failure::new(why).hint("start it where it ran, as with `docker start CONTAINER`").into())
}

/// The first process of a container can be stopped from outside alone.
pub(super) fn not_frozen(process: &Process<String>) -> Failure {
    Failure::new(format!("`{process}` runs elsewhere, and is frozen there"))
        .hint("of a container: `docker pause CONTAINER`, `docker unpause CONTAINER`")
}

/// Which life of a process runs, also while the hub has just begun: it does not know of a process before it has heard it.
fn known_life(lab: &Lab, found: &LabProcess) -> anyhow::Result<Option<Incarnation>> {
    if found.verb == OPENSM {
        return Err(Failure::bad_input("OpenSM cannot be asked to end, as it is another program")
            .hint("kill it where it runs, as with `docker kill CONTAINER`")
            .into());
    }
    let mut known = Ok(None);
    looks::until(HEARS, LOOK, || {
        known = life(lab, found);
        known.is_ok()
    });
    known
}

/// The same as the hub knows it now; none of one that has ended.
fn life(lab: &Lab, found: &LabProcess) -> anyhow::Result<Option<Incarnation>> {
    if found.name == HUB {
        let hello =
            Client::connect(&lab.folder.control(HUB)).and_then(|mut hub| hub.ask(Request::Hello, PATIENCE));
        return Ok(match hello {
            Ok(Answer::Hello(hello)) => Some(hello.identity.incarnation),
            _ => None,
        });
    }
    let status = lab_status(&lab.folder).ok_or_else(|| {
        Failure::new("the hub does not answer, and only it knows what runs there")
            .hint("try again when it is back")
    })?;
    let Some(line) = status.processes.into_iter().find(|line| line.name == found.name) else {
        return Ok(None);
    };
    match line.state {
        ProcessState::Ended => Ok(None),
        ProcessState::Expected => Err(Failure::new(format!("the hub has not heard {} yet", found.what()))
            .hint("`weft ps` tells when it has")
            .into()),
        _ => Ok(line.incarnation),
    }
}

/// Asks one life of a process to end, and waits until it has.
fn end(lab: &Lab, found: &LabProcess, life_now: Incarnation) -> anyhow::Result<()> {
    let mut client = Client::connect(&lab.folder.control(&found.name))?;
    record(lab, Word::Kill, &found.name);
    if let Err(ClientError::Refused(error)) = client.ask(Request::Kill, PATIENCE) {
        return Err(error.into());
    }
    // What the hub cannot tell is no proof.
    if looks::until(ENDS, LOOK, || life(lab, found).is_ok_and(|now| now != Some(life_now))) {
        return Ok(());
    }
    Err(Failure::new(format!("{} does not end", found.what())).hint("`weft ps` tells how it is").into())
}
