//! Freezing processes that are no agents: managers, the hub and the server for ibsim's programs.

use std::process::Child;
use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::names::{HUB, OPENSM};
use weft_control::fault::{FaultId, Word};
use weft_fault::Process;

use crate::faults::{LabProcess, for_how_long, next_id, record};
use crate::frozen::Frozen;
use crate::process::Holder;
use crate::view::Lab;

/// Freezes a process. The returned child ends the fault in time.
pub(super) fn freeze(
    lab: &Lab,
    found: &LabProcess,
    lasts: Option<Duration>,
) -> anyhow::Result<Option<Child>> {
    if found.name == OPENSM {
        return Err(Failure::bad_input(
            "OpenSM is not frozen by weft, which stops only processes of its own",
        )
        .hint("`weft fault kill opensm` ends it")
        .into());
    }
    let Some(holder) = Holder::of(&found.lock)? else { return Err(not_running(found).into()) };
    if let Some(frozen) = Frozen::of(&lab.folder, &found.name, &holder)? {
        return Err(Failure::new(format!("{} is frozen already (fault {})", found.what(), frozen.id))
            .hint(format!("`weft fault thaw {}` lets it go on", found.name))
            .into());
    }
    let (id, _) = next_id(lab)?;
    record(lab, Word::Freeze, &found.name);
    let waiting = Frozen::begin(&lab.folder, &found.name, &holder, (id.clone(), lasts))?;
    lab.folder.say(&format!("froze {} (fault {id}{})", found.what(), for_how_long(lasts)));
    Ok(waiting)
}

/// Lets a process go on.
pub(super) fn thaw(lab: &Lab, found: &LabProcess) -> anyhow::Result<()> {
    let Some(holder) = Holder::of(&found.lock)? else { return Err(not_running(found).into()) };
    go_on(lab, found, &holder)?;
    Frozen::dismiss(&lab.folder, &found.name)?;
    lab.folder.say(&format!("{} goes on", found.what()));
    Ok(())
}

/// Waits for the end of a fault's time, and lets the process go on then.
pub fn thaw_when_over(lab: &Lab, process: &Process<String>, id: &FaultId) -> anyhow::Result<()> {
    // Whoever closes the terminal of the verb that began the fault does not end it with that.
    let _ = rustix::process::setsid();
    let found = LabProcess::find(lab, process)?;
    let Some(holder) = Holder::of(&found.lock)? else { return Ok(()) };
    if Frozen::wait_for_end(&lab.folder, &found.name, &holder, id)? {
        go_on(lab, &found, &holder)?;
    }
    Ok(())
}

fn go_on(lab: &Lab, found: &LabProcess, holder: &Holder) -> anyhow::Result<()> {
    Frozen::end(&lab.folder, &found.name, holder)?;
    record(lab, Word::Thaw, &found.name);
    Ok(())
}

fn not_running(found: &LabProcess) -> Failure {
    Failure::new(format!("{} is not running", found.what()))
        .hint(format!("`weft fault restart {}` starts it", found.name))
}

/// The processes that are frozen, by their names.
pub fn all(lab: &Lab) -> anyhow::Result<Vec<(String, Frozen)>> {
    // What an agent keeps in a file of the same name is faults of its nodes.
    let agents = &lab.record.agents;
    let names = lab.record.processes().chain([HUB.to_owned()]);
    let names = names.filter(|name| agents.iter().all(|agent| agent.name != *name));
    let mut all = Vec::new();
    for name in names {
        all.extend(Frozen::find(&lab.folder, &name)?.map(|found| (name, found)));
    }
    Ok(all)
}
