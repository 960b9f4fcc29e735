//! What goes wrong and is put right: cables, devices and the managers' processes.

use weft_node::{NewDevice, Node, NodeOptions, Request};
use weft_topology::NodeIndex;

use super::programs::{PM, SM, STANDBY, VMM};
use super::slots::NOT_THERE;
use super::{ASLEEP, Simulation};
use crate::ledger::Asked;
use crate::{Fault, Process};

impl Simulation {
    /// Something goes wrong, or is put right, now.
    pub fn apply(&mut self, fault: Fault) {
        self.disturb();
        if self.trace.is_on() {
            let fabric = &self.fabric;
            let named = fault.clone().map(|node| fabric.label(node), |port| fabric.port_label(port));
            self.trace.line(self.now, "fault", format_args!("-"), format_args!("{named}"));
        }
        match fault {
            Fault::Kill(process) => self.kill_process(process),
            Fault::Restart(process) => {
                self.kill_process(process);
                self.start_process(process);
            }
            Fault::LinkDown(port) => self.set_whole(port, false),
            Fault::LinkUp(port) => self.set_whole(port, true),
            Fault::Freeze(Process::Agent(node)) => self.freeze(node, true),
            Fault::Thaw(Process::Agent(node)) => self.freeze(node, false),
            Fault::Freeze(process) => {
                if let Some(program) = self.program(process) {
                    self.freeze_program(program);
                }
            }
            Fault::Thaw(process) => {
                if let Some(program) = self.program(process) {
                    self.thaw_program(program);
                }
            }
            Fault::Partition(nodes) => self.part(nodes),
            Fault::Heal(nodes) => self.heal(&nodes),
            Fault::BadIdentity(presented) => self.distrust(presented.node),
            Fault::GoodIdentity(node) => self.trust(node),
            Fault::Impair(impaired) => self.impair(impaired),
            Fault::Clear(impaired) => self.mend(impaired),
        }
    }

    fn kill_process(&mut self, process: Process<NodeIndex>) {
        if let Some(program) = self.program(process) {
            self.forget_frozen(program);
        }
        match process {
            Process::Agent(node) => self.kill(node),
            Process::Sm => self.kill_sm(SM),
            Process::Standby(number) => {
                if let Some(program) = self.standby(number) {
                    self.kill_sm(program);
                }
            }
            Process::Pm => self.kill_pm(),
            Process::Vmm => self.kill_vmm(),
            // A simulation has none of them, and no fabric needs them.
            Process::Hub | Process::Ibsim | Process::Opensm | Process::Further(..) => {}
        }
    }

    /// The program of a process that is no agent, if a simulation has it.
    fn program(&self, process: Process<NodeIndex>) -> Option<u32> {
        match process {
            Process::Sm => Some(SM),
            Process::Standby(number) => self.standby(number),
            Process::Pm => Some(PM),
            Process::Vmm => Some(VMM),
            Process::Agent(_) | Process::Hub | Process::Ibsim | Process::Opensm | Process::Further(..) => {
                None
            }
        }
    }

    fn start_process(&mut self, process: Process<NodeIndex>) {
        match process {
            Process::Agent(node) => self.switch_on(node),
            Process::Sm => self.start_again(SM),
            Process::Standby(number) => {
                if let Some(program) = self.standby(number) {
                    self.start_again(program);
                }
            }
            Process::Pm => self.start_pm(self.now),
            Process::Vmm if self.options.with_vmm => self.start_vmm(self.now),
            Process::Vmm | Process::Hub | Process::Ibsim | Process::Opensm | Process::Further(..) => {}
        }
    }

    /// The program of a standby that the options have.
    fn standby(&self, number: u8) -> Option<u32> {
        (usize::from(number) < self.options.standbys.len()).then(|| STANDBY + u32::from(number))
    }

    fn start_again(&mut self, program: u32) {
        let known = self.sm_process(program).persisted.clone();
        self.start_sm(program, &known, self.now);
    }

    /// The node of a device ends, and all devices in it.
    fn kill(&mut self, device: NodeIndex) {
        let home = self.home(device);
        let Some(slot) = self.slots.get_mut(home.index()) else { return };
        let Some(node) = slot.node.take() else { return };
        if let Some(recordings) = &mut self.recordings {
            recordings.end(home);
        }
        node.devices().for_each(|(_, device)| self.past.bury(&device.data_account()));
        self.past.bury_cables(&node);
        self.ledger.forget(home);
        self.wakes[home.index()] = ASLEEP;
        for member in self.members(home) {
            self.device_slots[member.index()].device = NOT_THERE;
            for cable in self.cabling.of_node(member) {
                self.reset_end(cable, member);
                self.update_link(cable);
            }
        }
        self.members(home).into_iter().for_each(|member| self.detach_programs(member));
        self.tell_of_agent(home, false);
    }

    fn switch_on(&mut self, device: NodeIndex) {
        let home = self.home(device);
        for member in self.members(home) {
            if let Some(tenant) = self.tenants.get_mut(member.index()) {
                tenant.incarnation += 1;
            }
        }
        self.begin_node(home);
        for member in self.members(home) {
            for cable in self.cabling.of_node(member) {
                self.update_link(cable);
            }
            self.reattach_programs(member);
        }
        self.tell_of_agent(home, true);
    }

    /// A node begins, with its devices and the hosts behind their ports.
    pub(super) fn begin_node(&mut self, home: NodeIndex) {
        let Some(slot) = self.slots.get_mut(home.index()) else { return };
        let options = NodeOptions::default();
        slot.node = Some(Box::new(Node::new(options)));
        if let Some(recordings) = &mut self.recordings {
            recordings.begin(home, options);
        }
        for member in self.members(home) {
            if self.tenants[member.index()].present {
                self.add_device(member);
            }
        }
        if self.options.recabling {
            self.lay_cables(home);
        }
    }

    /// A device is switched on in its node.
    pub(super) fn add_device(&mut self, node: NodeIndex) {
        let has_identity = self.forget_identity(node);
        let hosts = self.host_ports(node);
        let stack = (!hosts.is_empty()).then(|| self.options.host.clone());
        let config = weft_node::device_config(&self.fabric, node, &self.options.device);
        let incarnation = self.tenants[node.index()].incarnation;
        let new = NewDevice { config, incarnation, hosts, stack };
        let is_function = self.device_slots[node.index()].is_function;
        let request = if is_function {
            Request::AddSlot { new, empty: self.options.empty_slots || !has_identity }
        } else {
            Request::AddDevice(new)
        };
        self.request(node, Asked::Device(node), request);
        self.impair_again(node);
    }
}
