//! The list for people, and what is in doubt.

use weft_machine::Time;
use weft_wire::Guid;

use super::VmManager;
use crate::Step;
use crate::VPort;
use crate::agent::Content;
use crate::identity::Scheme;
use crate::names::{HostName, VmName};
use crate::record::{Move, State, Vm};

/// How many there are of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The manager's generation; 0 until it has begun.
    pub generation: u64,
    /// The scheme of LIDs.
    pub scheme: Scheme,
    /// Hosts with slots.
    pub hosts: u64,
    /// Hosts whose agents take commands.
    pub hosts_ready: u64,
    /// Slots of hosts that have reported theirs.
    pub slots: u64,
    /// Slots that a virtual machine can come to now.
    pub slots_free: u64,
    /// Requests that wait for their turn.
    pub queued: u64,
    /// Creations, removals and moves under way.
    pub under_way: u64,
}

fn digits(guid: Guid) -> String {
    format!("{:016x}", guid.0)
}

impl VmManager {
    /// How many there are of everything.
    pub fn census(&self) -> Census {
        let hosts = || self.hosts.iter();
        let free = |(name, _): (&HostName, &crate::hosts::Host)| self.free_slots(name).count() as u64;
        Census {
            generation: self.book.generation,
            scheme: self.options.scheme,
            hosts: hosts().count() as u64,
            hosts_ready: hosts().filter(|(_, host)| host.is_ready()).count() as u64,
            slots: hosts().map(|(_, host)| host.slots.len() as u64).sum(),
            slots_free: hosts().map(free).sum(),
            queued: self.queue.len() as u64,
            under_way: self.tasks.len() as u64,
        }
    }

    /// All virtual machines in order of their names.
    pub fn list(&self) -> Vec<VPort> {
        self.book.vms().iter().map(|(name, vm)| self.v_port(name, vm)).collect()
    }

    fn v_port(&self, name: &VmName, vm: &Vm) -> VPort {
        let slot = &vm.place.slot;
        let adapter = self.hosts.get(&slot.host).map(|host| host.adapter.clone()).unwrap_or_default();
        let content = self.hosts.view(slot).map(|view| &view.content);
        let runs = content
            .is_some_and(|content| matches!(content, Content::Running(occupant) if occupant.vm == *name));
        let (vm_state, detail) = self.shown(name, vm);
        VPort {
            virtual_port_state: if runs { "Active" } else { "Down" }.to_owned(),
            virtual_port_lid: self.book.lid(name).0,
            system_ip: "0.0.0.0".to_owned(),
            system_name: slot.host.to_string(),
            node_description: adapter.description,
            system_guid: digits(adapter.system_guid),
            port_guid: digits(adapter.port_guid),
            port_name: format!("{}_{}", digits(adapter.port_guid), adapter.port_num),
            physical_port_number: adapter.port_num.0,
            virtual_port_guid: digits(vm.identity.port.port_guid),
            vm: name.to_string(),
            vf: slot.vf,
            vm_state,
            detail,
            pkeys: vm.identity.p_keys.iter().map(ToString::to_string).collect(),
            rate_mbps: vm.identity.rate_mbps,
        }
    }

    fn shown(&self, name: &VmName, vm: &Vm) -> (String, String) {
        if let State::Lost(proof) = &vm.state {
            return ("lost".to_owned(), proof.to_string());
        }
        if let Some(why) = self.doubt(name) {
            return ("in doubt".to_owned(), why);
        }
        let (state, detail) = match &vm.state {
            State::Starting => ("starting", String::new()),
            State::Running | State::Lost(_) => ("running", String::new()),
            State::Frozen => ("frozen", String::new()),
            State::Stopping => ("stopping", String::new()),
            State::Moving(moving) => ("moving", format!("to {}: {}", moving.to.slot, moving.step)),
        };
        (state.to_owned(), detail)
    }

    /// Why it is not known whether a virtual machine runs, or why it cannot; `None` if all is well.
    pub(super) fn doubt(&self, name: &VmName) -> Option<String> {
        let vm = self.book.vm(name)?;
        let away = |host: &HostName| format!("host `{host}` cannot be reached");
        let source = &vm.place.slot.host;
        let source_away = self.hosts.is_away(source);
        match &vm.state {
            State::Lost(_) => None,
            State::Starting | State::Running | State::Stopping => source_away.then(|| away(source)),
            State::Frozen => Some("it was found frozen by a manager without its journal".to_owned()),
            State::Moving(moving) => {
                let to = &moving.to.slot.host;
                let to_away = self.hosts.is_away(to);
                let is_frozen = moving.frozen.is_some();
                let why = match moving.step {
                    _ if self.waits_for_sm(name, moving) => "the subnet manager does not answer".to_owned(),
                    Step::Commit if to_away => away(to),
                    Step::Commit => self.refused_to_run(name)?,
                    _ if source_away => away(source),
                    _ if to_away && is_frozen => away(to),
                    _ => return None,
                };
                Some(if is_frozen { format!("it is frozen ({}), and {why}", moving.step) } else { why })
            }
        }
    }

    /// Why a machine does not run at its new place although it may, once that has been tried for long enough.
    fn refused_to_run(&self, name: &VmName) -> Option<String> {
        let task = self.tasks.get(name)?;
        let is_long = task.activate_again >= self.options.timeout;
        let why = task.refused.as_ref().filter(|_| is_long)?;
        Some(format!("it is tried again every {}: {why}", self.options.timeout))
    }

    fn waits_for_sm(&self, name: &VmName, moving: &Move) -> bool {
        let task = self.tasks.get(name);
        let asks = matches!(moving.step, Step::Reroute | Step::Back);
        // It did not answer once: it is asked again.
        asks && task.is_some_and(|task| task.again_at.is_some() || task.sm.silent)
    }

    /// When something has waited too long for a host, if nothing happens before.
    pub(super) fn patience_ends(&self, name: &VmName) -> Option<Time> {
        let (vm, moving) = self.book.moving(name)?;
        let may_go_back = Step::Undo.may_follow(moving.step) && self.hosts.death(&vm.place).is_none();
        let away = self.hosts.away_since(&moving.to.slot.host).filter(|_| may_go_back)?;
        Some(away + self.options.patience)
    }
}
