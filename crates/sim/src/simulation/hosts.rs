//! The hosts behind adapter ports, and who stands in for them.

use weft_host::stack::Stack;
use weft_host::traffic::{Command, FlowReport};
use weft_node::{Input, Request};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{DataPacket, PortNum};

use super::Simulation;
use crate::event::Rare;
use crate::ledger::Asked;
use crate::{Kept, Load, ToHost};

/// Refused commands that are kept of all hosts; the oldest go first.
pub(super) const REFUSALS_MAX: usize = 1 << 16;

impl Simulation {
    /// The ports of a node behind which there are hosts: those that are cabled, or can come to be.
    pub(super) fn host_ports(&self, node: NodeIndex) -> Vec<PortNum> {
        let node = self.fabric.node(node);
        if !self.options.hosts || node.is_switch() {
            return Vec::new();
        }
        let ports = node.external_ports().filter(|(_, port)| self.options.recabling || port.peer.is_some());
        ports.map(|(port, _)| port).collect()
    }

    /// The host behind a port, when there are hosts and its node is on.
    pub fn stack(&self, port: PortRef) -> Option<&Stack> {
        self.node(port.node)?.stack(self.at(port))
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
        if self.stack(port).is_none() {
            return false;
        }
        if self.trace.is_on() {
            let place = self.fabric.port_name(port);
            self.trace.line(self.now, "command", format_args!("{place:<24}"), format_args!("{command:?}"));
        }
        let request = Request::Command { at: self.at(port), command };
        self.request(port.node, Asked::Command(port), request);
        true
    }

    /// Gives the host behind a port a command at some time; if it is off then, the command is lost.
    pub fn command_at(&mut self, at: weft_machine::Time, port: PortRef, command: Command) {
        self.push_rare(at.max(self.now), Rare::Command(port, Box::new(command)));
    }

    /// Commands that hosts refused: when, which host, and why.
    pub fn refusals(&self) -> &Kept<(weft_machine::Time, PortRef, String), REFUSALS_MAX> {
        &self.refusals
    }

    pub(super) fn refused(&mut self, port: PortRef, reason: String) {
        if self.trace.is_on() {
            let place = self.fabric.port_name(port);
            self.trace.line(self.now, "refused", format_args!("{place:<24}"), format_args!("{reason}"));
        }
        self.refusals.push((self.now, port, reason));
    }

    /// Gives an adapter a packet to send, past any host.
    pub fn inject(&mut self, port: PortRef, packet: DataPacket) {
        let at = self.at(port);
        self.feed(port.node, Input::Inject { at, packet });
    }

    /// Stands in for the hosts behind all ports that have none, from now on.
    pub fn set_load(&mut self, load: impl Load + 'static) {
        self.load = Some(Box::new(load));
    }

    /// The stand-in for the host behind a port gets the outputs of its adapter.
    #[inline]
    pub(super) fn load_hears(&mut self, port: PortRef, what: ToHost) {
        if let Some(load) = &mut self.load {
            load.hear(self.now, port, what, &mut self.loaded);
            self.loaded_port = port;
        }
    }
}
