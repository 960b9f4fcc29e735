//! The programs of a fabric: subnet managers, performance manager and VM manager. What they have in common: each is attached to
//! a port, sends and receives MADs there that take a while on their way, and loses its attachment with the node.

use weft_machine::{Machine, Time};
use weft_node::{Client, Input, Request};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{AddressedMad, PortNum, Registration};

use super::{PORT_ZERO, Simulation};
use crate::event::{Event, MadUnderWay, Rare};
use crate::ledger::Asked;

/// The numbers of the programs.
pub(super) const SM: u32 = 0;
pub(super) const PM: u32 = 1;
pub(super) const STANDBY: u32 = 2;
pub(super) const VMM: u32 = STANDBY + STANDBYS_MAX as u32;
const PROGRAMS: u32 = VMM + 1;

/// The most subnet managers beside the first one.
pub(super) const STANDBYS_MAX: usize = 4;

/// All managers, by their numbers.
const MANAGERS: std::ops::Range<u32> = SM..PROGRAMS;

/// A program's place at a device.
#[derive(Clone, Debug)]
pub(super) struct Attachment {
    /// Where it is attached.
    pub(super) port: PortRef,
    /// Counts attachments, so that what is under way from before does not arrive after.
    pub(super) incarnation: u64,
    /// Its name at the node, as long as it is attached.
    client: Option<Client>,
    wake: Option<Time>,
}

impl Attachment {
    pub(super) fn new(port: PortRef) -> Self {
        Self { port, incarnation: 0, client: None, wake: None }
    }
}

/// What happens to any program.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProgramEvent<'a> {
    /// It is attached.
    Attached,
    /// It is attached no more.
    Detached,
    /// A MAD.
    Receive(&'a AddressedMad),
    /// Its port's link came up or went down.
    PortChanged(bool),
}

impl Simulation {
    /// The program that is attached to a node under this name; none for checkers.
    fn program_of(&self, node: NodeIndex, client: Client) -> Option<u32> {
        MANAGERS.clone().find(|&program| {
            let attachment = &self.attachments[program as usize];
            attachment.port.node == node && attachment.client == Some(client)
        })
    }

    /// The process of a program begins and attaches itself at some time.
    pub(super) fn start_program(&mut self, program: u32, at: Time) {
        let attachment = &mut self.attachments[program as usize];
        attachment.incarnation += 1;
        attachment.wake = None;
        let incarnation = attachment.incarnation;
        self.push_rare(at.max(self.now), Rare::Attach { program, incarnation });
    }

    /// The process of a program has ended.
    pub(super) fn end_program(&mut self, program: u32) {
        let attachment = &mut self.attachments[program as usize];
        attachment.wake = None;
        attachment.incarnation += 1;
        let node = attachment.port.node;
        if let Some(client) = attachment.client.take() {
            self.feed(node, Input::Detach { client });
        }
    }

    pub(super) fn attach_program(&mut self, program: u32, incarnation: u64) {
        let attachment = &self.attachments[program as usize];
        let place = attachment.port;
        if incarnation != attachment.incarnation || self.device(place.node).is_none() {
            return;
        }
        let registrations = self.registrations(program);
        let request = Request::Attach { at: self.at(place), registrations, is_sm: false };
        self.request(place.node, Asked::Program(program), request);
    }

    /// A node has taken a program in.
    pub(super) fn attached(&mut self, program: u32, client: Client) {
        self.attachments[program as usize].client = Some(client);
        self.tell_program(program, ProgramEvent::Attached);
    }

    /// Attaches a checker's program, through a MAD layer if it wants one.
    pub(crate) fn attach_checker(&mut self, node: NodeIndex, port: PortNum, layer: bool) -> Option<Client> {
        let at = self.at(PortRef::new(node, port));
        let request = if layer {
            Request::Open { at, message_bytes: 1 << 20 }
        } else {
            Request::Attach { at, registrations: Vec::new(), is_sm: false }
        };
        self.request(node, Asked::Checker, request);
        self.checker.take()
    }

    fn is_switch(&self, node: NodeIndex) -> bool {
        self.fabric.node(node).is_switch()
    }

    fn registrations(&self, program: u32) -> Vec<Registration> {
        match program {
            // The host behind the port has registered for Reports already.
            PM if self.options.hosts && !self.is_switch(self.attachments[PM as usize].port.node) => {
                Vec::new()
            }
            PM => weft_pm::registrations(),
            // It only asks.
            VMM => Vec::new(),
            _ => weft_sm::registrations(),
        }
    }

    /// The device is gone that a program was attached to; checkers do not care.
    pub(super) fn detached(&mut self, node: NodeIndex, client: Client) {
        if let Some(program) = self.program_of(node, client) {
            self.detach_program(program);
        }
    }

    /// The node is gone that programs were attached to. They live on.
    pub(super) fn detach_programs(&mut self, node: NodeIndex) {
        for program in MANAGERS {
            if self.attachments[program as usize].port.node == node {
                self.detach_program(program);
            }
        }
    }

    fn detach_program(&mut self, program: u32) {
        let attachment = &mut self.attachments[program as usize];
        attachment.incarnation += 1;
        if attachment.client.take().is_some() {
            self.tell_program(program, ProgramEvent::Detached);
        }
    }

    /// A node has been switched on. Programs find it after a while.
    pub(super) fn reattach_programs(&mut self, node: NodeIndex) {
        for program in MANAGERS {
            if self.attachments[program as usize].port.node == node && self.runs(program) {
                self.start_program(program, self.now + self.options.attach_delay);
            }
        }
    }

    pub(super) fn runs(&self, program: u32) -> bool {
        match program {
            PM => self.performance_manager.machine.is_some(),
            VMM => self.vmm().is_some(),
            _ => self.sm_process(program).machine.is_some(),
        }
    }

    /// A MAD for a program, or for a checker.
    pub(super) fn deliver(&mut self, node: NodeIndex, client: Client, mad: Box<AddressedMad>) {
        let Some(program) = self.program_of(node, client) else {
            return self.delivered.push((node, client, *mad));
        };
        self.push_mad(program, false, mad);
    }

    /// A MAD sets out from a program to its device, or back.
    pub(super) fn push_mad(&mut self, program: u32, to_device: bool, mad: Box<AddressedMad>) {
        let incarnation = self.attachments[program as usize].incarnation;
        let number = self.mads.put(MadUnderWay { program, incarnation, to_device, mad });
        self.queue.push(self.now + self.options.attach_delay, Event::Mad(number));
    }

    /// A MAD between a program and its device has arrived.
    pub(super) fn mad_arrives(&mut self, number: u32) {
        let Some(MadUnderWay { program, incarnation, to_device, mut mad }) = self.mads.take(number) else {
            return;
        };
        let attachment = &self.attachments[program as usize];
        if incarnation != attachment.incarnation {
            return;
        }
        if to_device {
            let node = attachment.port.node;
            if let Some(client) = attachment.client {
                self.feed(node, Input::Send { client, mad });
            }
        } else if !self.is_forgotten(program, &mut mad) {
            self.tell_program(program, ProgramEvent::Receive(&mad));
        }
    }

    /// A program's port has a link or has none any more; checkers do not care.
    pub(super) fn port_changed(&mut self, node: NodeIndex, client: Client, up: bool) {
        if let Some(program) = self.program_of(node, client) {
            let incarnation = self.attachments[program as usize].incarnation;
            let at = self.now + self.options.attach_delay;
            self.push_rare(at, Rare::PortTo { program, incarnation, up });
        }
    }

    pub(super) fn tell_program_of_port(&mut self, program: u32, incarnation: u64, up: bool) {
        if incarnation == self.attachments[program as usize].incarnation {
            self.tell_program(program, ProgramEvent::PortChanged(up));
        }
    }

    pub(super) fn tell_program(&mut self, program: u32, event: ProgramEvent<'_>) {
        if self.keep_for_frozen(program, event) {
            return;
        }
        match program {
            PM => self.tell_pm(event),
            VMM => self.tell_vmm(event),
            _ => self.tell_sm(program, event),
        }
    }

    pub(super) fn wake_program(&mut self, program: u32) {
        let attachment = &mut self.attachments[program as usize];
        if attachment.wake != Some(self.now) {
            return;
        }
        attachment.wake = None;
        if self.is_frozen(program) {
            return;
        }
        match program {
            PM => {
                if let Some(machine) = &mut self.performance_manager.machine {
                    machine.handle_timeout(self.now);
                    self.drain_pm();
                }
            }
            VMM => self.wake_vmm(),
            _ => {
                let now = self.now;
                if let Some(machine) = &mut self.sm_process_mut(program).machine {
                    machine.handle_timeout(now);
                    self.drain_sm(program);
                }
            }
        }
    }

    /// Sees to it that a program is woken when it wants to be.
    #[inline]
    pub(super) fn wake_program_at(&mut self, program: u32, due: Option<Time>) {
        let Some(due) = due else { return };
        let (due, attachment) = (due.max(self.now), &mut self.attachments[program as usize]);
        if attachment.wake.is_none_or(|wake| due < wake) {
            attachment.wake = Some(due);
            self.queue.push(due, Event::WakeProgram(program));
        }
    }

    /// The port of a program, in the form that managers get it.
    pub(super) fn guids_at(&self, program: u32) -> (weft_wire::Guid, weft_wire::Guid, PortNum) {
        let PortRef { node, port } = self.attachments[program as usize].port;
        let node = self.fabric.node(node);
        (node.guid, node.port(port).map_or(node.guid, |port| port.guid), port)
    }

    /// The port that programs attach to at a node: 0 on a switch, the first cabled one on an HCA.
    pub(crate) fn program_port(&self, node: NodeIndex) -> Option<PortNum> {
        let node = self.fabric.node(node);
        if node.is_switch() { Some(PORT_ZERO) } else { node.cabled_ports().next().map(|(port, _)| port) }
    }
}
