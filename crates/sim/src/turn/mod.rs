//! The turn of one node: what it is given and what it gives back, until it wants nothing more.

mod load;

use std::collections::VecDeque;

use weft_device::Unsent;
use weft_machine::Time;
use weft_node::{Answer, Client, Desk, Frame, PortId, Refusal};
use weft_topology::PortRef;
use weft_wire::DataPacket;

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
#[derive(Default)]
pub(crate) struct Turn {
    /// The memory that each node has while it is its turn.
    pub(crate) desk: Option<Box<Desk>>,
    pub(crate) load: Option<Box<dyn Load>>,
    /// What the node has for hosts that a load stands in for.
    pub(crate) for_load: VecDeque<(PortRef, ToHost)>,
    /// Packets of the node that found no link.
    unsent: VecDeque<(PortId, Unsent)>,
    /// Packets that a load gives an adapter, and through which port.
    loaded: VecDeque<DataPacket>,
    loaded_port: PortRef,
    /// The checkers' program at the node, once it is attached.
    pub(crate) checker: Option<Client>,
    /// The answer to the step of a virtual machine that is under way.
    pub(crate) vm_outcome: Option<Result<Answer, Refusal>>,
}

impl Turn {
    /// Something for who stands in for a host.
    #[inline]
    pub(crate) fn put_for_load(&mut self, port: PortRef, what: ToHost) {
        if self.load.is_some() {
            self.for_load.push_back((port, what));
        }
    }

    /// The stand-in for the host behind a port gets the outputs of its adapter.
    #[inline]
    pub(crate) fn load_hears(&mut self, now: Time, port: PortRef, what: ToHost) {
        if let Some(load) = &mut self.load {
            load.hear(now, port, what, &mut self.loaded);
            self.loaded_port = port;
        }
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
}
