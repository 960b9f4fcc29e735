//! An agent's answer to the VM manager's commands about a slot: as a process answers the control protocol.

use weft_device::Event as DeviceEvent;
use weft_host::stack::Image as StackImage;
use weft_node::{SlotState, SlotStatus, VmCommand, VmIdentity, VmStep};
use weft_topology::{NodeIndex, PortRef};
use weft_vm::{
    Act, Command, Content, Deed, HostPart, HostReport, Identity, Image, Input, Occupant, Outcome, Place,
    PortIdentity, Refusal, Slot, SlotReport, VmName,
};
use weft_wire::{Lid, PortNum};

use super::Simulation;
use crate::clock::VmNews;

/// The only port of a virtual function.
const VF_PORT: PortNum = PortNum(1);

impl Simulation {
    /// The process of an agent ended, or another one is there: the VM manager notices if the agent has slots.
    pub(super) fn tell_of_agent(&mut self, home: NodeIndex, is_up: bool) {
        if !is_up {
            self.nodes.forget_generation(home);
        }
        let at = self.world.when_attached();
        for host in 0..self.world.options.adapters.len() {
            if self.nodes.home(self.world.options.adapters[host].pf) == home {
                let news = if is_up { VmNews::HostUp(host) } else { VmNews::HostEnded(host) };
                self.managers.vm.push_news(at, news, &mut self.world);
            }
        }
    }

    /// A port of a function has got a LID.
    pub(super) fn tell_of_lid(&mut self, node: NodeIndex, event: &DeviceEvent) {
        let DeviceEvent::LidChanged { to, .. } = event else { return };
        if self.vmm().is_none() {
            return;
        }
        let owns = |adapter: &weft_topology::Adapter| adapter.vfs.contains(&node);
        let Some(host) = self.world.options.adapters.iter().position(owns) else { return };
        let adapter = &self.world.options.adapters[host];
        let vf = adapter.vfs.iter().zip(1..).find(|(function, _)| **function == node).map(|(_, vf)| vf);
        let (Some(vf), Some(part)) = (vf, self.managers.vm.host(host)) else { return };
        let Some(port) = self.port(PortRef::new(node, VF_PORT)) else { return };
        let place = Place { slot: Slot { host: part.name.clone(), vf }, incarnation: self.incarnation(node) };
        let input = Input::PortHasLid { place, port_guid: port.guid, lid: *to };
        self.answer_vmm(input);
    }

    /// Counts the processes that an agent has had.
    fn incarnation(&self, node: NodeIndex) -> u64 {
        self.nodes.incarnation(self.nodes.home(node)) + 1
    }

    /// Carries out a command, and answers. An agent that is off does neither.
    pub(super) fn slot_command(&mut self, host: usize, command: Command) {
        let Some(adapter) = self.world.options.adapters.get(host).cloned() else { return };
        let Some(part) = self.managers.vm.host(host).cloned() else { return };
        if self.device(adapter.pf).is_none() {
            return;
        }
        let (home, Command { number, generation, act }) = (self.nodes.home(adapter.pf), command);
        let known = self.nodes.generation(home);
        let only_asks = act == Act::Inspect && generation == 0;
        let outcome = if generation < known && !only_asks {
            Outcome::Refused(Refusal::Generation(known))
        } else {
            self.nodes.hear_generation(home, generation);
            match act {
                Act::Inspect => Outcome::Report(Box::new(self.slot_report(&adapter, &part))),
                Act::Slot { incarnation, .. } if incarnation != self.incarnation(adapter.pf) => {
                    Outcome::Refused(Refusal::Incarnation(self.incarnation(adapter.pf)))
                }
                Act::Slot { vf, epoch, deed, .. } => {
                    match vf.checked_sub(1).and_then(|nth| adapter.vfs.get(usize::from(nth))) {
                        Some(function) => self.deed(*function, epoch, deed),
                        None => Outcome::Refused(Refusal::Words(format!("there is no {} vf{vf}", part.name))),
                    }
                }
            }
        };
        self.answer_vmm(Input::Answer { host: part.name, number, outcome });
    }

    /// The VM manager hears from an agent.
    fn answer_vmm(&mut self, input: Input) {
        let at = self.world.when_attached();
        self.managers.vm.push_news(at, VmNews::Answer(Box::new(input)), &mut self.world);
    }

    fn slot_report(&self, adapter: &weft_topology::Adapter, part: &HostPart) -> HostReport {
        let home = self.nodes.home(adapter.pf);
        let slots = adapter.vfs.iter().zip(1..).zip(&part.slots).filter_map(|((function, vf), slot)| {
            let status = self.slot(*function)?;
            let content = self.content(*function, &status);
            let configured = slot.configured(content.port());
            Some(SlotReport { vf, configured, epoch: status.epoch, content })
        });
        HostReport {
            incarnation: self.incarnation(adapter.pf),
            generation: self.nodes.generation(home),
            adapter: part.adapter.clone(),
            slots: slots.collect(),
        }
    }

    fn content(&self, function: NodeIndex, slot: &SlotStatus) -> Content {
        let lid = self.port(PortRef::new(function, VF_PORT)).map_or(Lid(0), |port| port.lid);
        let VmIdentity { guid, port_guid, p_keys, weight, rate_mbps, .. } = slot.identity.clone();
        let port = PortIdentity { node_guid: guid, port_guid, lid };
        let name = || VmName::heard(slot.vm.as_deref().unwrap_or_default());
        let identity = Identity { port, p_keys, weight, rate_mbps };
        let occupant = || Box::new(Occupant { vm: name(), identity });
        match slot.state {
            SlotState::Empty => Content::Bare,
            SlotState::Free => Content::Spare(port),
            SlotState::Reserved => Content::Reserved(name()),
            SlotState::Running => Content::Running(occupant()),
            SlotState::Frozen => Content::Frozen(occupant()),
            SlotState::Imported => Content::Imported(occupant()),
        }
    }

    /// Does something with a slot.
    fn deed(&mut self, function: NodeIndex, epoch: u64, deed: Deed) -> Outcome {
        let mut cold_export = false;
        let (vm, step) = match deed {
            Deed::Create(occupant) => (occupant.vm.to_string(), VmStep::Boot(self.identity_of(&occupant))),
            Deed::Reserve(vm) => (vm.to_string(), VmStep::Reserve),
            Deed::Freeze(vm) => (vm.to_string(), VmStep::Freeze),
            Deed::Export { vm, cold } => {
                cold_export = cold;
                (vm.to_string(), VmStep::Export)
            }
            Deed::Import { occupant, from_epoch, image } => {
                let image = match heard_image(&image) {
                    Ok(image) => image,
                    Err(words) => return Outcome::Refused(Refusal::Words(words)),
                };
                let identity = self.identity_of(&occupant);
                (occupant.vm.to_string(), VmStep::Import { identity, from_epoch, image })
            }
            Deed::Activate(vm) => {
                let is_frozen = self.slot(function).is_some_and(|slot| slot.state == SlotState::Frozen);
                (vm.to_string(), if is_frozen { VmStep::Resume } else { VmStep::Activate })
            }
            Deed::Clear(port) => {
                let leave = port.map(|port| self.spare_identity(&port));
                (String::new(), VmStep::Unplug { leave })
            }
        };
        let exports = matches!(step, VmStep::Export);
        match self.vm(function, VmCommand { vm, epoch, step }) {
            Err(refusal) => Outcome::Refused(Refusal::Words(refusal.to_string())),
            Ok(done) if exports => {
                let image = done.image.filter(|_| !cold_export);
                match image.map(|image| image.encode()).transpose() {
                    Ok(bytes) => Outcome::Image(Image::from(bytes.unwrap_or_default())),
                    Err(error) => Outcome::Refused(Refusal::Words(error.to_string())),
                }
            }
            Ok(done) => Outcome::Done(self.content(function, &done.slot)),
        }
    }

    /// What a virtual machine takes along.
    fn identity_of(&self, occupant: &Occupant) -> VmIdentity {
        let Identity { port, p_keys, weight, rate_mbps } = occupant.identity.clone();
        let description = self.managers.vm.places().describe(occupant);
        let (guid, port_guid) = (port.node_guid, port.port_guid);
        VmIdentity { guid, port_guid, description, p_keys, weight, rate_mbps }
    }

    /// An identity without a virtual machine.
    fn spare_identity(&self, port: &PortIdentity) -> VmIdentity {
        let (guid, port_guid, description) =
            (port.node_guid, port.port_guid, self.managers.vm.places().describe_spare(port));
        VmIdentity { guid, port_guid, description, p_keys: Vec::new(), weight: 1, rate_mbps: 0 }
    }

    /// The port of the function that a virtual machine is in.
    pub fn vm_port(&self, vm: &str) -> Option<PortRef> {
        self.find_vm(vm).map(|(function, _)| PortRef::new(function, VF_PORT))
    }
}

/// An image that has arrived; none of a machine that was shut down.
fn heard_image(image: &Image) -> Result<Option<Box<StackImage>>, String> {
    if image.0.is_empty() {
        return Ok(None);
    }
    StackImage::decode(&image.0).map(|image| Some(Box::new(image))).map_err(|error| error.to_string())
}
