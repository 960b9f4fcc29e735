//! The hosts behind adapter ports, and who stands in for them.

use weft_host::stack::Stack;
use weft_host::traffic::{Command, FlowReport};
use weft_node::{Input, Request};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{DataPacket, PortNum};

use super::Simulation;
use crate::nodes::Asked;
use crate::observers::REFUSALS_MAX;
use crate::{Kept, Load};

impl Simulation {
    /// The ports of a node behind which there are hosts: those that are cabled, or can come to be.
    pub(super) fn host_ports(&self, node: NodeIndex) -> Vec<PortNum> {
        let node = self.world.fabric.node(node);
        if !self.world.options.hosts || node.is_switch() {
            return Vec::new();
        }
        let ports =
            node.external_ports().filter(|(_, port)| self.world.options.recabling || port.peer.is_some());
        ports.map(|(port, _)| port).collect()
    }

    /// The host behind a port, when there are hosts and its node is on.
    pub fn stack(&self, port: PortRef) -> Option<&Stack> {
        self.node(port.node)?.stack(self.nodes.at(port))
    }

    /// What became of all flows of the host at a node's first cabled port; nothing when there is none.
    pub fn host_reports(&self, node: NodeIndex) -> Vec<FlowReport> {
        self.seat(node).and_then(|port| self.stack(port)).map(Stack::reports).unwrap_or_default()
    }

    /// Tells the host at a node's first cabled port to do something. Whether there is a host.
    pub fn host_command(&mut self, node: NodeIndex, command: Command) -> bool {
        self.seat(node).is_some_and(|port| self.command(port, command))
    }

    /// Tells the host behind a port to do something. Whether there is a host.
    pub fn command(&mut self, port: PortRef, command: Command) -> bool {
        if self.stack(port).is_none() {
            return false;
        }
        self.world.trace_port("command", port, format_args!("{command:?}"));
        let request = Request::Command { at: self.nodes.at(port), command };
        self.request(port.node, Asked::Command(port), request);
        true
    }

    /// Commands that hosts refused: when, which host, and why.
    pub fn refusals(&self) -> &Kept<(weft_machine::Time, PortRef, String), REFUSALS_MAX> {
        &self.world.observers.refusals
    }

    pub(super) fn refused(&mut self, port: PortRef, reason: String) {
        self.world.trace_port("refused", port, format_args!("{reason}"));
        self.world.observers.refusals.push((self.world.clock.now(), port, reason));
    }

    /// Gives an adapter a packet to send, past any host.
    pub fn inject(&mut self, port: PortRef, packet: DataPacket) {
        let at = self.nodes.at(port);
        self.feed(port.node, Input::Inject { at, packet });
    }

    /// Stands in for the hosts behind all ports that have none, from now on.
    pub fn set_load(&mut self, load: impl Load + 'static) {
        self.turn.load = Some(Box::new(load));
    }
}
