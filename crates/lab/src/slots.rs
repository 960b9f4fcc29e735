//! Slots of virtual machines, as their agents report them.

use std::collections::BTreeMap;

use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_control::agent::PortEnd;
use weft_control::vm::Slot;
use weft_control::{Answer, Page, Request};
use weft_wire::Guid;

use crate::agents::{ask_agents, further};

/// The slots of all agents that answer, by the NodeGUIDs that they began with.
pub fn read_slots(folder: &LabFolder, record: &LabRecord) -> anyhow::Result<BTreeMap<Guid, Slot>> {
    let mut agents: Vec<&str> = record.slots().map(|(agent, _)| agent.name.as_str()).collect();
    agents.dedup();
    let mut told = BTreeMap::new();
    // Agents that are dead say nothing, and have no virtual machines.
    ask_agents(folder, agents, &Request::Slots(Page::default()), |_, answer| {
        let Answer::Slots { slots, more, .. } = answer else { return None };
        let next = further(slots.last().map(|slot| PortEnd::of_node(slot.slot)), more);
        told.extend(slots.into_iter().map(|slot| (slot.slot.0, slot)));
        next.map(Request::Slots)
    })?;
    Ok(told)
}
