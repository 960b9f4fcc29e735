//! Programs at their nodes: managers and checkers.

use weft_machine::Time;
use weft_node::{Client, Input, Request};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{AddressedMad, PortNum, Registration};

use super::Simulation;
use crate::clock::{MadUnderWay, VmNews};
use crate::nodes::Asked;
use crate::programs::{PM, ProgramEvent, VMM};

impl Simulation {
    /// The managers begin that the options want.
    pub(super) fn begin_programs(&mut self) {
        if self.world.options.with_sm {
            for program in self.managers.sms(&self.world) {
                self.start_program(program, self.world.options.sm_start);
            }
        }
        if self.world.options.with_pm {
            self.start_program(PM, self.world.options.pm_start);
        }
        if self.world.options.with_vmm {
            self.start_program(VMM, self.world.options.vmm_start);
        }
    }

    /// A manager's process begins, and attaches itself at some time.
    pub(super) fn start_program(&mut self, program: u32, at: Time) {
        let (programs, world) = (&mut self.programs, &mut self.world);
        match program {
            PM => self.managers.performance.start(at, programs, world),
            VMM => self.managers.vm.start(at, programs, world),
            _ => self.managers.start_sm(program, at, programs, world),
        }
    }

    /// A manager's process ends, also one that is frozen.
    pub(super) fn end_program(&mut self, program: u32) {
        self.programs.thaw(program);
        match program {
            PM => self.managers.performance.machine = None,
            VMM => self.managers.vm.end(),
            _ => self.managers.sm_mut(program).end(),
        }
        if let Some((node, client)) = self.programs.end(program) {
            self.feed(node, Input::Detach { client });
        }
    }

    /// A manager's process stops, as by SIGSTOP.
    pub(super) fn freeze_program(&mut self, program: u32) {
        if self.managers.runs(program) {
            self.programs.freeze(program);
        }
    }

    /// It goes on.
    pub(super) fn thaw_program(&mut self, program: u32) {
        self.managers.thaw(program, &mut self.programs, &mut self.world);
    }

    pub(super) fn attach_program(&mut self, program: u32, incarnation: u64) {
        let place = self.programs.port(program);
        if !self.programs.is_attachment(program, incarnation) || self.device(place.node).is_none() {
            return;
        }
        let registrations = Self::registrations(program);
        let request = Request::Attach { at: self.nodes.at(place), registrations, is_sm: false };
        self.request(place.node, Asked::Program(program), request);
    }

    /// A node has taken a program in.
    pub(super) fn attached(&mut self, program: u32, client: Client) {
        self.programs.attach(program, client);
        self.tell_program(program, ProgramEvent::Attached);
    }

    /// Attaches a checker's program, through a MAD layer if it wants one.
    pub(crate) fn attach_checker(&mut self, seat: PortRef, layer: bool) -> Option<Client> {
        let at = self.nodes.at(seat);
        let request = if layer {
            Request::Open { at, message_bytes: 1 << 20 }
        } else {
            Request::Attach { at, registrations: Vec::new(), is_sm: false }
        };
        self.request(seat.node, Asked::Checker, request);
        self.turn.checker.take()
    }

    fn registrations(program: u32) -> Vec<Registration> {
        match program {
            PM => weft_pm::registrations(),
            // It only asks.
            VMM => Vec::new(),
            _ => weft_sm::registrations(),
        }
    }

    /// The device is gone that a program was attached to; checkers do not care.
    pub(super) fn detached(&mut self, node: NodeIndex, client: Client) {
        if let Some(program) = self.programs.find(node, client) {
            self.detach_program(program);
        }
    }

    /// The node is gone that programs were attached to. They live on.
    pub(super) fn detach_programs(&mut self, node: NodeIndex) {
        let here: Vec<u32> = self.programs.at(node).collect();
        here.into_iter().for_each(|program| self.detach_program(program));
    }

    fn detach_program(&mut self, program: u32) {
        if self.programs.detach(program) {
            self.tell_program(program, ProgramEvent::Detached);
        }
    }

    /// A node has been switched on. Programs find it after a while.
    pub(super) fn reattach_programs(&mut self, node: NodeIndex) {
        let here: Vec<u32> = self.programs.at(node).filter(|program| self.managers.runs(*program)).collect();
        let at = self.world.when_attached();
        here.into_iter().for_each(|program| self.programs.start(program, at, &mut self.world.clock));
    }

    /// A MAD for a program, or for a checker.
    pub(super) fn deliver(&mut self, node: NodeIndex, client: Client, mad: Box<AddressedMad>) {
        match self.programs.find(node, client) {
            Some(program) => self.programs.push_mad(program, false, mad, &mut self.world),
            None => self.world.observers.delivered.push((node, client, *mad)),
        }
    }

    /// A MAD between a program and its device has arrived.
    pub(super) fn mad_arrives(&mut self, number: u32) {
        let Some(arrived) = self.world.clock.mads.take(number) else { return };
        let MadUnderWay { program, incarnation, to_device, mut mad } = arrived;
        if !self.programs.is_attachment(program, incarnation) {
            return;
        }
        if to_device {
            if let Some(client) = self.programs.client(program) {
                self.feed(self.programs.port(program).node, Input::Send { client, mad });
            }
        } else if !self.is_forgotten(program, &mut mad) {
            self.tell_program(program, ProgramEvent::Receive(mad));
        }
    }

    /// A program's port has a link or has none any more; checkers do not care.
    pub(super) fn port_changed(&mut self, node: NodeIndex, client: Client, up: bool) {
        if let Some(program) = self.programs.find(node, client) {
            self.programs.push_port(program, up, &mut self.world);
        }
    }

    pub(super) fn tell_program_of_port(&mut self, program: u32, incarnation: u64, up: bool) {
        if self.programs.is_attachment(program, incarnation) {
            self.tell_program(program, ProgramEvent::PortChanged(up));
        }
    }

    fn tell_program(&mut self, program: u32, event: ProgramEvent) {
        self.managers.tell(program, event, &mut self.programs, &mut self.world);
    }

    pub(super) fn wake_program(&mut self, program: u32) {
        if self.programs.wakes(program, self.world.clock.now()) {
            self.managers.wake(program, &mut self.programs, &mut self.world);
        }
    }

    /// The port that programs attach to at a node: 0 on a switch, the first cabled one on an HCA.
    pub(crate) fn seat(&self, node: NodeIndex) -> Option<PortRef> {
        let known = self.world.fabric.node(node);
        let zero = known.is_switch().then_some(PortNum::ZERO);
        let port = zero.or_else(|| known.cabled_ports().next().map(|(port, _)| port));
        port.map(|port| PortRef::new(node, port))
    }

    /// Something has arrived at the VM manager, or at an agent from it.
    pub(super) fn vm_news(&mut self, life: u64, news: VmNews) {
        if !self.managers.vm.is_alive(life) {
            return;
        }
        let (programs, world) = (&mut self.programs, &mut self.world);
        match news {
            VmNews::Command(host, command) => self.slot_command(host, *command),
            VmNews::Answer(input) => {
                self.managers.vm.feed(weft_vm::station::Input::Vm(*input), programs, world);
            }
            VmNews::Synced(number) => self.managers.vm.sync(number, programs, world),
            VmNews::HostUp(host) => {
                if self.nodes.device(world.options.adapters[host].pf).is_some() {
                    self.managers.vm.host_up(host, programs, world);
                }
            }
            VmNews::HostEnded(host) => self.managers.vm.host_ended(host, programs, world),
        }
    }
}
