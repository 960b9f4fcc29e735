//! The turn of one node: what it is given and what it gives back, until it wants nothing more.

mod load;

use std::collections::VecDeque;

use weft_device::Unsent;
use weft_machine::Time;
use weft_node::{Answer, Client, Desk, Frame, Node, PortId, Refusal};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{DataPacket, PortNum};

use crate::ToHost;
pub use load::Load;

/// What comes next for the node whose turn it is.
pub(crate) enum Next {
    /// A packet of its own that found no link.
    Unsent(PortId, Unsent),
    /// A packet that a load gives an adapter.
    Packet(PortRef, DataPacket),
    /// Something for the load that stands in for a host.
    ToLoad(PortRef, ToHost),
}

/// What belongs to the node whose turn it is. One node has its turn at a time.
pub(crate) struct Turn {
    /// The memory that each node has while it is its turn.
    desk: Option<Box<Desk>>,
    load: Option<Box<dyn Load>>,
    /// What the node has for hosts that a load stands in for.
    for_load: VecDeque<(PortRef, ToHost)>,
    /// Packets of the node that found no link.
    unsent: VecDeque<(PortId, Unsent)>,
    /// Packets that a load gives an adapter, and through which port.
    loaded: VecDeque<DataPacket>,
    loaded_port: PortRef,
    /// The checkers' program at the node, once it is attached.
    checker: Option<Client>,
    /// The answer to the step of a virtual machine that is under way.
    vm_outcome: Option<Result<Answer, Refusal>>,
}

impl Turn {
    pub(crate) fn new() -> Self {
        Self {
            desk: None,
            load: None,
            for_load: VecDeque::new(),
            unsent: VecDeque::new(),
            loaded: VecDeque::new(),
            loaded_port: PortRef::new(NodeIndex(0), PortNum::ZERO),
            checker: None,
            vm_outcome: None,
        }
    }

    /// A node's turn begins, and it has the desk; or its turn ends, and it has it no more.
    #[inline]
    pub(crate) fn exchange_desk(&mut self, node: &mut Node) {
        node.exchange_desk(&mut self.desk);
    }

    /// Stands in for the hosts behind all ports that have none, from now on.
    pub(crate) fn set_load(&mut self, load: impl Load + 'static) {
        self.load = Some(Box::new(load));
    }

    /// Something for who stands in for a host.
    #[inline]
    pub(crate) fn put_for_load(&mut self, port: PortRef, what: ToHost) {
        if self.load.is_some() {
            self.for_load.push_back((port, what));
        }
    }

    /// The same, late: the load is known to be there.
    pub(crate) fn put_late_for_load(&mut self, port: PortRef, what: ToHost) {
        self.for_load.push_back((port, what));
    }

    /// The stand-in for the host behind a port gets the outputs of its adapter.
    #[inline]
    pub(crate) fn load_hears(&mut self, now: Time, port: PortRef, what: ToHost) {
        if let Some(load) = &mut self.load {
            load.hear(now, port, what, &mut self.loaded);
            self.loaded_port = port;
        }
    }

    /// Whether there is nothing for a load.
    #[inline(always)]
    pub(crate) fn nothing_for_load(&self) -> bool {
        self.for_load.is_empty()
    }

    /// Packets that a node has sent to a port without a link.
    pub(crate) fn put_unsent(&mut self, at: PortId, frame: &Frame) {
        self.unsent.extend(frame.unsent().map(|unsent| (at, unsent)));
    }

    /// What comes next when the node wants nothing.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Next> {
        if let Some((at, unsent)) = self.unsent.pop_front() {
            return Some(Next::Unsent(at, unsent));
        }
        if let Some(packet) = self.loaded.pop_front() {
            return Some(Next::Packet(self.loaded_port, packet));
        }
        self.for_load.pop_front().map(|(port, what)| Next::ToLoad(port, what))
    }

    /// A checker's program was attached.
    pub(crate) fn set_checker(&mut self, client: Client) {
        self.checker = Some(client);
    }

    pub(crate) fn take_checker(&mut self) -> Option<Client> {
        self.checker.take()
    }

    /// A step of a virtual machine has its answer.
    pub(crate) fn set_vm_outcome(&mut self, outcome: Result<Answer, Refusal>) {
        self.vm_outcome = Some(outcome);
    }

    pub(crate) fn take_vm_outcome(&mut self) -> Option<Result<Answer, Refusal>> {
        self.vm_outcome.take()
    }
}
