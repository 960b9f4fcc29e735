//! A laboratory as its record and its cabling describe it: nodes and ports by the names that people give them.

use std::collections::BTreeMap;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::plan::seats::{find, find_with_port};
use weft_bundle::record::LabRecord;
use weft_control::agent::PortEnd;
use weft_control::vm::{Slot, SlotState};
use weft_control::{Answer, Page, Request};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use crate::agents::{ask_agents, further};

/// What stands before the name of a virtual machine, where a node is named.
pub const VM_PREFIX: &str = "vm:";

/// What was written down about a laboratory, and its cabling.
pub struct Lab {
    /// Its folder.
    pub folder: LabFolder,
    /// What it consists of.
    pub record: LabRecord,
    /// Its cabling.
    pub fabric: Fabric,
    /// The slots of virtual machines, where they were asked for.
    pub slots: BTreeMap<NodeIndex, Slot>,
    /// Whether it is all of the laboratory, and not a piece of it.
    pub whole: bool,
}

/// The fabric does not know a slot that is not plugged in: its GUID is this and its index.
const NOBODY: u64 = 0xfffe_0000_0000_0000;

impl Lab {
    /// Reads record and cabling.
    ///
    /// # Errors
    /// When one of them is missing or invalid.
    pub fn load(folder: &LabFolder) -> anyhow::Result<Self> {
        let record = LabRecord::load(folder)
            .with_context(|| format!("the laboratory `{}` is not whole", folder.name()))?;
        let fabric = weft_bundle::topology_file::load(&folder.bundle().topology())?;
        Ok(Self { folder: folder.clone(), record, fabric, slots: BTreeMap::new(), whole: true })
    }

    /// The laboratory for nodes of these names: live, where one names a virtual machine.
    pub fn load_for<'a>(
        folder: &LabFolder,
        mut names: impl Iterator<Item = &'a str>,
    ) -> anyhow::Result<Self> {
        let names_vm = names.any(|name| name.starts_with(VM_PREFIX));
        if names_vm { Self::load_live(folder) } else { Self::load(folder) }
    }

    /// The same with what sits in slots of virtual machines now: functions that are plugged in have the GUIDs of their
    /// identities, others have no cable.
    pub fn load_live(folder: &LabFolder) -> anyhow::Result<Self> {
        let mut lab = Self::load(folder)?;
        let told = read_slots(folder, &lab.record)?;
        lab.slots =
            told.into_iter().filter_map(|(guid, slot)| Some((lab.fabric.by_guid(guid)?, slot))).collect();
        // First all give up their GUIDs: two slots may have swapped theirs.
        for &index in lab.slots.keys() {
            let nobody = Guid(NOBODY | u64::from(index.0));
            lab.fabric.identify(index, nobody, nobody);
        }
        let mut names = BTreeMap::new();
        for (&index, slot) in &lab.slots {
            if slot.plugged {
                lab.fabric.identify(index, slot.identity.node.0, slot.identity.port.0);
            } else {
                lab.fabric.disconnect(PortRef::new(index, PortNum(1)));
            }
            names.insert(slot.slot.0, lab.fabric.node(index).guid);
        }
        lab.record.rename(&names);
        Ok(lab)
    }

    /// The GUID by which an agent finds a node: a slot that is not plugged in has the one that it began with.
    pub fn guid_at_agent(&self, node: NodeIndex) -> Guid {
        let slot = self.slots.get(&node).filter(|slot| !slot.plugged);
        slot.map_or_else(|| self.fabric.node(node).guid, |slot| slot.slot.0)
    }

    /// The slot that a virtual machine is in; of several the one where it runs, or else stands still.
    pub fn find_vm(&self, name: &str) -> anyhow::Result<NodeIndex> {
        let here = self.slots.iter().filter(|(_, slot)| slot.vm.as_deref() == Some(name));
        let here = here.filter(|(_, slot)| slot.state != SlotState::Reserved);
        let found = here.min_by_key(|(_, slot)| slot.state != SlotState::Running);
        found.map(|(index, _)| *index).ok_or_else(|| {
            Failure::bad_input(format!("virtual machine `{name}` is in no slot of a running agent"))
                .hint("`weft vm ls` lists them")
        })
    }

    /// The node of that id, GUID or description, or the slot of `vm:NAME`.
    pub fn find(&self, name: &str) -> anyhow::Result<NodeIndex> {
        match name.strip_prefix(VM_PREFIX) {
            Some(vm) => self.find_vm(vm),
            None => find(&self.fabric, name),
        }
    }

    /// The node meant; without a name the subnet manager's, or where it would be.
    pub fn node_or_seat(&self, name: Option<&str>) -> anyhow::Result<NodeIndex> {
        let sm = || self.record.sm.as_ref().and_then(|sm| self.fabric.by_guid(sm.node));
        match name {
            Some(name) => self.find(name),
            None => sm()
                .or_else(|| self.fabric.attach_place().map(|place| place.node))
                .or_else(|| self.fabric.iter().map(|(index, _)| index).next())
                .context("the laboratory has no nodes"),
        }
    }

    /// What a person can type for a node of this GUID; the name that it gives itself where the cabling has no such node.
    pub fn label(&self, guid: Guid, said: &str) -> String {
        let known = self.fabric.by_guid(guid).map(|index| self.fabric.label(index));
        known.unwrap_or_else(|| weft_wire::Printable(said).to_string())
    }

    /// `NODE:PORT`. The node's name may itself contain colons.
    pub fn port(&self, text: &str) -> anyhow::Result<PortRef> {
        let malformed = || {
            Failure::bad_input(format!("`{text}` is not NODE:PORT"))
                .hint("name a node and one of its ports, such as leaf1:3")
        };
        let (node, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        let port = PortRef::new(self.find(node)?, PortNum(port.parse().map_err(|_| malformed())?));
        self.has_port(port)?;
        Ok(port)
    }

    /// Refuses a port that its node does not have, with a cable or without.
    pub fn has_port(&self, port: PortRef) -> Result<(), Failure> {
        if port.port != PortNum::ZERO && self.fabric.port(port).is_some() {
            return Ok(());
        }
        let (node, label) = (self.fabric.node(port.node), self.fabric.label(port.node));
        let message = format!("`{label}` has ports 1 to {}, not {}", node.port_count(), port.port);
        Err(Failure::bad_input(message))
    }

    /// The same of a port that has a cable, and the port at its other end.
    pub fn cable(&self, text: &str) -> anyhow::Result<(PortRef, PortRef)> {
        let port = self.port(text)?;
        let peer = self.fabric.peer(port).ok_or_else(|| {
            Failure::bad_input(format!("no cable is in {text}")).hint("`weft links` lists the cables")
        })?;
        Ok((port, peer))
    }

    /// The node meant by `NODE`, `NODE:PORT` or `vm:NAME`, and the port where one is named.
    pub fn find_seat(&self, text: &str) -> anyhow::Result<(NodeIndex, Option<PortNum>)> {
        match text.strip_prefix(VM_PREFIX) {
            Some(vm) => Ok((self.find_vm(vm)?, None)),
            None => find_with_port(&self.fabric, text),
        }
    }
}

/// The slots of all agents that answer, by the NodeGUIDs that they began with.
fn read_slots(folder: &LabFolder, record: &LabRecord) -> anyhow::Result<BTreeMap<Guid, Slot>> {
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
