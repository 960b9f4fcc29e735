//! Processes that are no agents and frozen: managers, the hub and the server for ibsim's programs.

use weft_bundle::names::HUB;
use weft_control::fault::FaultId;
use weft_fault::Process;

use crate::faults::{find, record};
use crate::site::frozen::Frozen;
use crate::site::thaw_when_over as thaw_here_when_over;
use crate::view::Lab;

/// Waits for the end of a fault's time, and lets the process go on then.
pub(crate) fn thaw_when_over(lab: &Lab, process: &Process<String>, id: &FaultId) -> anyhow::Result<()> {
    let name = find(lab, process)?.name;
    thaw_here_when_over(&lab.folder, &name, id, &|word| record(lab, word, &name))
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
