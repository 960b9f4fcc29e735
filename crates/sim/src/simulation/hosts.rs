//! The hosts behind adapter ports: a stack each, on at the same time as its device.

use weft_device::Input;
use weft_host::stack::{self, Stack};
use weft_host::traffic::{Command, FlowReport};
use weft_machine::{Machine, Time};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::DataPacket;

use super::Simulation;
use super::programs::{Attachment, HOSTS, Told};
use crate::cable::NOWHERE;
use crate::happening::Rare;
use crate::{Kept, Load, ToHost};

/// Events that are kept of all hosts; the oldest go first.
pub(super) const EVENTS_MAX: usize = 1 << 16;

impl Simulation {
    /// Gives every cabled HCA port a number for its host.
    pub(super) fn number_hosts(&mut self) {
        let fabric = &self.fabric;
        for (node, port) in fabric.hosts().flat_map(|(at, node)| node.cabled_ports().map(move |p| (at, p.0)))
        {
            let port = PortRef::new(node, port);
            if let Some(place) = self.cabling.place_mut(port) {
                place.host = self.attachments.len() as u32;
                self.attachments.push(Attachment::new(port));
                self.hosts.push(None);
            }
        }
    }

    pub(super) fn host(&self, program: u32) -> Option<&Stack> {
        self.hosts.get(program.checked_sub(HOSTS)? as usize)?.as_ref()
    }

    fn host_mut(&mut self, program: u32) -> Option<&mut Stack> {
        self.hosts.get_mut(program.checked_sub(HOSTS)? as usize)?.as_mut()
    }

    pub(super) fn hosts_of(&self, node: NodeIndex) -> Vec<u32> {
        self.cabling.places(node).iter().map(|place| place.host).filter(|&host| host != NOWHERE).collect()
    }

    /// The hosts of a device that has just been switched on begin, and know nothing.
    pub(super) fn start_hosts(&mut self, node: NodeIndex) {
        for program in self.hosts_of(node) {
            self.hosts[(program - HOSTS) as usize] = Some(Stack::new(self.options.host.clone()));
            let attachment = &mut self.attachments[program as usize];
            attachment.incarnation += 1;
            let incarnation = attachment.incarnation;
            self.attach_program(program, incarnation);
        }
    }

    pub(super) fn end_host(&mut self, program: u32) {
        self.hosts[(program - HOSTS) as usize] = None;
    }

    /// The host behind a port, when there are hosts and its device is on.
    pub fn stack(&self, port: PortRef) -> Option<&Stack> {
        self.host(self.cabling.place(port)?.host)
    }

    /// What became of all flows of the host at a node's first cabled port; nothing when there is none.
    pub fn host_reports(&self, node: NodeIndex) -> Vec<FlowReport> {
        let port = self.program_port(node).map(|port| PortRef::new(node, port));
        port.and_then(|port| self.stack(port)).map(Stack::reports).unwrap_or_default()
    }

    /// Tells the host at a node's first cabled port to do something. Whether there is a host.
    pub fn host_command(&mut self, node: NodeIndex, command: Command) -> bool {
        let port = self.program_port(node).map(|port| PortRef::new(node, port));
        port.is_some_and(|port| self.command(port, command))
    }

    /// Tells the host behind a port to do something. Whether there is a host.
    pub fn command(&mut self, port: PortRef, command: Command) -> bool {
        let host = self.cabling.place(port).map_or(NOWHERE, |place| place.host);
        if self.host(host).is_none() {
            return false;
        }
        if self.trace.is_on() {
            let place = self.fabric.port_name(port);
            self.trace.line(self.now, "command", format_args!("{place:<24}"), format_args!("{command:?}"));
        }
        self.feed_host(host, stack::Input::Command(command));
        self.settle(port.node);
        true
    }

    /// Tells the host behind a port to do something at some time; if it is off then, nobody hears it.
    pub fn command_at(&mut self, at: Time, port: PortRef, command: Command) {
        self.push_rare(at.max(self.now), Rare::Command(port, Box::new(command)));
    }

    /// What hosts have said, and when.
    pub fn host_events(&self) -> &Kept<(Time, PortRef, stack::Event), EVENTS_MAX> {
        &self.host_events
    }

    pub(super) fn tell_host(&mut self, program: u32, told: Told<'_>) {
        // Hosts hear of their attachment and of the port's link by the port's facts.
        if let Told::Receive(mad) = told {
            self.feed_host(program, stack::Input::Receive(*mad));
            self.settle(self.attachments[program as usize].port.node);
        }
    }

    pub(super) fn wake_host(&mut self, program: u32) {
        let now = self.now;
        if let Some(machine) = self.host_mut(program) {
            machine.handle_timeout(now);
            self.drain_host(program);
            self.settle(self.attachments[program as usize].port.node);
        }
    }

    /// Gives a host, or who stands in for it, what its adapter has for it.
    #[inline]
    pub(super) fn give_host(&mut self, port: PortRef, what: ToHost) {
        let host = self.cabling.place(port).map_or(NOWHERE, |place| place.host);
        if host != NOWHERE {
            let input = match what {
                ToHost::Accept(packet) => stack::Input::Accept(packet),
                ToHost::Injected(service_level, packets) => stack::Input::Injected { service_level, packets },
                ToHost::Refused(dest_qp) => stack::Input::Refused { dest_qp },
                ToHost::Facts(facts) => stack::Input::Port(*facts),
            };
            return self.feed_host(host, input);
        }
        if let Some(load) = &mut self.load {
            load.hear(self.now, port, what, &mut self.loaded);
            while let Some(packet) = self.loaded.pop_front() {
                self.injections.push_back(Input::Inject { port: port.port, packet });
            }
        }
    }

    /// Gives an adapter a packet to send, past any host.
    pub fn inject(&mut self, port: PortRef, packet: DataPacket) {
        self.feed(port.node, Input::Inject { port: port.port, packet });
    }

    /// Stands in for the hosts behind all ports that have none, from now on.
    pub fn set_load(&mut self, load: impl Load + 'static) {
        self.load = Some(Box::new(load));
    }

    /// Feeds a host and does what it wants, except that its adapter takes what it injects only when it is next settled.
    fn feed_host(&mut self, program: u32, input: stack::Input) {
        let now = self.now;
        if let Some(machine) = self.host_mut(program) {
            machine.handle_input(now, input);
            self.drain_host(program);
        }
    }

    fn drain_host(&mut self, program: u32) {
        let port = self.attachments[program as usize].port;
        while let Some(output) = self.host_mut(program).and_then(Machine::poll_output) {
            match output {
                stack::Output::Inject(packet) => {
                    self.injections.push_back(Input::Inject { port: port.port, packet });
                }
                stack::Output::Congestion(event) => {
                    self.injections.push_back(Input::Congestion { port: port.port, event });
                }
                stack::Output::Send(mad) => self.push_mad(program, true, Box::new(mad)),
                stack::Output::Event(event) => self.host_event(port, event),
            }
        }
        let due = self.host(program).and_then(Machine::poll_timeout);
        self.wake_program_at(program, due);
    }

    fn host_event(&mut self, port: PortRef, event: stack::Event) {
        if self.trace.is_on() {
            let place = self.fabric.port_name(port);
            self.trace.line(self.now, "host", format_args!("{place:<24}"), format_args!("{event:?}"));
        }
        self.host_events.push((self.now, port, event));
    }
}
