//! Faults and their ends: cables, devices and the managers' processes.

use weft_node::{NewDevice, NodeOptions, Request};
use weft_topology::NodeIndex;

use super::Simulation;
use crate::nodes::Asked;
use crate::programs::{PM, SM, STANDBY, VMM};
use crate::{Fault, Process};

impl Simulation {
    /// Something goes wrong, or is put right, now.
    pub fn apply(&mut self, fault: Fault) {
        self.world.clock.disturb();
        if self.world.observers.trace.is_on() {
            let fabric = &self.world.fabric;
            let named = fault.clone().map(|node| fabric.label(node), |port| fabric.port_label(port));
            self.world.trace("fault", format_args!("-"), format_args!("{named}"));
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
                self.program(process).into_iter().for_each(|it| self.freeze_program(it));
            }
            Fault::Thaw(process) => self.program(process).into_iter().for_each(|it| self.thaw_program(it)),
            Fault::Partition(nodes) => self.part(nodes),
            Fault::Heal(nodes) => self.heal(&nodes),
            Fault::BadIdentity(presented) => self.part(self.of_agent(presented.node)),
            Fault::GoodIdentity(node) => self.heal(&self.of_agent(node)),
            Fault::Impair(impaired) => self.impair(impaired),
            Fault::Clear(impaired) => self.mend(&impaired),
        }
    }

    fn kill_process(&mut self, process: Process<NodeIndex>) {
        match process {
            Process::Agent(node) => self.kill(node),
            // A simulation has no hub and no other manager, and no fabric needs them.
            process => self.program(process).into_iter().for_each(|program| self.end_program(program)),
        }
    }

    /// The program of a process that is no agent, if a simulation has it.
    fn program(&self, process: Process<NodeIndex>) -> Option<u32> {
        match process {
            Process::Sm => Some(SM),
            Process::Standby(number) => {
                let is_there = usize::from(number) < self.world.options.standbys.len();
                is_there.then(|| STANDBY + u32::from(number))
            }
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
            Process::Vmm if !self.world.options.with_vmm => {}
            process => {
                if let Some(program) = self.program(process) {
                    self.start_program(program, self.world.clock.now());
                }
            }
        }
    }

    /// The node of a device ends, and all devices in it.
    fn kill(&mut self, device: NodeIndex) {
        let home = self.nodes.home(device);
        let Some(node) = self.nodes.end(home) else { return };
        if let Some(recordings) = &mut self.world.observers.recordings {
            recordings.end(home);
        }
        node.devices().for_each(|(_, device)| self.world.observers.past.bury(&device.data_account()));
        self.world.observers.past.bury_cables(&node);
        for member in self.nodes.members(home) {
            for cable in self.cabling.of_node(member) {
                self.cabling.reset_end(cable, member, &self.world);
                self.update_link(cable);
            }
        }
        self.nodes.members(home).into_iter().for_each(|member| self.detach_programs(member));
        self.tell_of_agent(home, false);
    }

    fn switch_on(&mut self, device: NodeIndex) {
        let home = self.nodes.home(device);
        for member in self.nodes.members(home) {
            self.nodes.restart(member);
        }
        self.begin_node(home);
        for member in self.nodes.members(home) {
            for cable in self.cabling.of_node(member) {
                self.update_link(cable);
            }
            self.reattach_programs(member);
        }
        self.tell_of_agent(home, true);
    }

    /// A node begins, with its devices and the hosts behind their ports.
    pub(super) fn begin_node(&mut self, home: NodeIndex) {
        let options = NodeOptions::default();
        if !self.nodes.begin(home, options) {
            return;
        }
        if let Some(recordings) = &mut self.world.observers.recordings {
            recordings.begin(home, options);
        }
        for member in self.nodes.members(home) {
            if self.nodes.is_present(member) {
                self.add_device(member);
            }
        }
        if self.world.options.recabling {
            self.lay_cables(home);
        }
    }

    /// A device is switched on in its node.
    pub(super) fn add_device(&mut self, node: NodeIndex) {
        let has_identity = self.nodes.forget_identity(node, &mut self.world.fabric);
        let hosts = self.host_ports(node);
        let stack = (!hosts.is_empty()).then(|| self.world.options.host.clone());
        let config = weft_node::device_config(&self.world.fabric, node, &self.world.options.device);
        let incarnation = self.nodes.incarnation(node);
        let new = NewDevice { config, incarnation, hosts, stack };
        let is_function = self.nodes.is_function(node);
        let request = if is_function {
            Request::AddSlot { new, empty: self.world.options.empty_slots || !has_identity }
        } else {
            Request::AddDevice(new)
        };
        self.request(node, Asked::Device(node), request);
        self.impair_again(node);
    }
}
