//! Virtual machines under way while a check looks: no packet reaches one that is frozen, and that is no fault of the fabric.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use weft_bundle::folder::LabFolder;
use weft_control::event::VmEvent;
use weft_control::vmm::VPort;
use weft_control::{EventKind, Since};
use weft_process::Client;
use weft_topology::{Fabric, Node, NodeType};
use weft_wire::{Guid, Printable};

use crate::managers::{all_vports, listen};
use crate::view::Lab;

/// What the VM manager tells when a machine is on its way, comes, or ends.
const KINDS: [&str; 5] = ["vm-move-step", "vm-runs", "vm-has-lid", "vm-gone", "vm-lost"];
/// How often the VM manager is asked whether they have come.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Machines that a line names.
const NAMED_MAX: usize = 5;

/// Machines since a moment.
pub(crate) struct Machines<'a> {
    folder: &'a LabFolder,
    /// What tells of them; `None` where no VM manager answers.
    ears: Vec<(&'a str, Client)>,
    /// Whatever was known of each, from then to now.
    known: BTreeMap<String, Vec<VPort>>,
    /// Those that were under way at some moment.
    moving: BTreeSet<String>,
    /// Those that are under way now.
    now: BTreeSet<String>,
}

impl<'a> Machines<'a> {
    /// From now on. A laboratory without a VM manager has none.
    pub(crate) fn begin(lab: &'a Lab) -> Self {
        let folder = &lab.folder;
        let names = lab.record.vmms.iter().map(|place| place.name.as_str());
        let ears = names.filter_map(|name| Some((name, listen(folder, name, Since::Now, &KINDS).ok()?)));
        let ears = ears.collect();
        let (known, moving, now) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut machines = Self { folder, ears, known, moving, now };
        machines.look();
        machines
    }

    /// Hears what has happened meanwhile, and where they are now.
    pub(crate) fn look(&mut self) {
        // A manager that ends tells nothing more.
        let mut heard = Vec::new();
        for (_, ear) in &mut self.ears {
            while let Ok(Some(event)) = ear.next_event(Duration::ZERO) {
                heard.push(event.kind);
            }
        }
        heard.into_iter().for_each(|event| self.hear(event));
        let vports = self.ears.iter().map(|(name, _)| all_vports(self.folder, name));
        let Ok(vports) = vports.collect::<Result<Vec<_>, _>>() else { return };
        self.now.clear();
        for port in vports.into_iter().flatten() {
            if is_under_way(&port) {
                self.now.insert(port.vm.clone());
            }
            let before = self.known.entry(port.vm.clone()).or_default();
            if before.last() != Some(&port) {
                before.push(port);
            }
        }
        self.moving.extend(self.now.iter().cloned());
    }

    fn hear(&mut self, event: EventKind) {
        if let EventKind::Vm(event) = event {
            self.moving.extend(named(&event).map(str::to_owned));
        }
    }

    /// Why the fabric is about to change: machines that are under way.
    pub(crate) fn why(&mut self) -> Option<String> {
        self.look();
        (!self.now.is_empty()).then(|| format!("virtual machines are under way: {}", listed(&self.now)))
    }

    /// Waits until none is under way, or until `until`.
    pub(crate) fn wait(&mut self, until: Instant) {
        while self.why().is_some() {
            let left = until.saturating_duration_since(Instant::now());
            // One that is under way is looked at again soon, whoever tells of it.
            let Some((_, ear)) = self.ears.first_mut().filter(|_| !left.is_zero()) else { return };
            match ear.next_event(LOOK_EVERY.min(left)) {
                Ok(Some(event)) => self.hear(event.kind),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// Which were under way at some moment, and how many packets were lost to that.
    pub(crate) fn note(&self, packets: usize) -> String {
        let vms = listed(&self.moving);
        match packets {
            0 => format!("virtual machines were under way meanwhile: {vms}"),
            _ => format!(
                "{packets} packets from or to virtual machines that were under way had no answer: {vms}"
            ),
        }
    }

    /// The nodes of `fabric` that no packet may have reached: machines that were under way, and functions without a machine in whose
    /// slots they are or were, which change places with them.
    pub(crate) fn nodes(&self, lab: &Lab, fabric: &Fabric) -> BTreeSet<Guid> {
        let ports = || self.known.values().flatten();
        let under_way: Vec<&VPort> = ports().filter(|port| self.moving.contains(&port.vm)).collect();
        let guids: BTreeSet<Guid> = under_way.iter().filter_map(|port| guid_of(port)).collect();
        let machines: BTreeSet<Guid> = ports().filter_map(guid_of).collect();
        let hosts: BTreeSet<&str> = under_way.iter().flat_map(|port| hosts_of(port)).collect();
        let adapters = lab.fabric.iter().filter(|(index, node)| {
            node.kind == NodeType::Hca && hosts.contains(lab.fabric.label(*index).as_str())
        });
        let adapters: BTreeMap<Guid, Guid> =
            adapters.map(|(_, node)| (node.system_image_guid, node.guid)).collect();
        let is_concerned = |node: &Node| {
            let physical = adapters.get(&node.system_image_guid);
            let ports = || node.end_ports().map(|(_, port)| port.guid);
            let is_spare = physical.is_some_and(|guid| *guid != node.guid)
                && !ports().any(|guid| machines.contains(&guid));
            node.kind == NodeType::Hca && (is_spare || ports().any(|guid| guids.contains(&guid)))
        };
        fabric.iter().filter(|(_, node)| is_concerned(node)).map(|(_, node)| node.guid).collect()
    }
}

fn guid_of(port: &VPort) -> Option<Guid> {
    port.virtual_port_guid.parse().ok()
}

/// A frozen machine is on its way, too; one on a host that is silent is not.
fn is_under_way(port: &VPort) -> bool {
    match port.vm_state.as_str() {
        "starting" | "stopping" | "moving" => true,
        "in doubt" => port.virtual_port_state == "Down",
        _ => false,
    }
}

/// The host that a machine is at, and the one that it goes to.
fn hosts_of(port: &VPort) -> impl Iterator<Item = &str> {
    let to = port.detail.strip_prefix("to ").and_then(|to| to.rsplit_once(" vf"));
    std::iter::once(port.system_name.as_str()).chain(to.map(|(host, _)| host))
}

/// The machine that an event is about.
fn named(event: &VmEvent) -> Option<&str> {
    match event {
        VmEvent::MoveStep { vm, .. }
        | VmEvent::Runs { vm, .. }
        | VmEvent::HasLid { vm, .. }
        | VmEvent::Gone { vm }
        | VmEvent::Lost { vm, .. } => Some(vm),
        _ => None,
    }
}

fn listed(vms: &BTreeSet<String>) -> String {
    let named: Vec<String> = vms.iter().take(NAMED_MAX).map(|vm| format!("`{}`", Printable(vm))).collect();
    let more = vms.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(vm_state: &str, port_state: &str, detail: &str) -> VPort {
        VPort {
            vm_state: vm_state.to_owned(),
            virtual_port_state: port_state.to_owned(),
            detail: detail.to_owned(),
            system_name: "host-1".to_owned(),
            virtual_port_guid: "0002c90300000001".to_owned(),
            ..VPort::default()
        }
    }

    #[test]
    fn a_machine_that_moves_is_under_way_and_a_silent_host_is_not() {
        for (state, port_state, under_way) in [
            ("moving", "Active", true),
            ("starting", "Down", true),
            ("in doubt", "Down", true),
            ("in doubt", "Active", false),
            ("running", "Active", false),
            ("lost", "Down", false),
        ] {
            assert_eq!(is_under_way(&port(state, port_state, "")), under_way, "{state}, {port_state}");
        }
        assert_eq!(guid_of(&port("moving", "Down", "")), Some(Guid(0x0002_c903_0000_0001)));
    }

    #[test]
    fn both_hosts_of_a_move_are_known() {
        let hosts =
            |detail: &str| hosts_of(&port("moving", "Down", detail)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(hosts("to my vf host vf3: reroute"), ["host-1", "my vf host"]);
        assert_eq!(hosts(""), ["host-1"]);
        assert_eq!(hosts("the subnet manager does not answer"), ["host-1"]);
    }

    #[test]
    fn many_machines_are_counted() {
        let vms: BTreeSet<String> = (0..8).map(|number| format!("vm-{number}")).collect();
        assert_eq!(listed(&vms), "`vm-0`, `vm-1`, `vm-2`, `vm-3`, `vm-4` and 3 more");
    }
}
