//! Clients that wait for the node's answers.

use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::oneshot;
use weft_node::{DeviceId, PortId, RequestId};
use weft_umad::user_mad::Token;
use weft_wire::{Guid, PortNum};

use crate::line::Line;
use crate::names::Named;
use crate::program::Program;

/// Where the answer to a client's request goes.
pub(crate) type Reply = oneshot::Sender<Result<weft_control::Answer, weft_control::Error>>;

/// Who asked, and what for.
#[derive(Debug)]
pub(crate) enum Asker {
    /// The agent itself, which expects no refusal.
    Agent,
    /// The agent, for the device of this name.
    Device(Box<Named>),
    /// A program wants to be attached.
    Attach(Rc<Program>, PortId),
    /// Whoever holds this port's issm file open.
    Issm(Guid, PortNum),
    /// A program of libibumad opens a port.
    Open(Rc<Line>, Token),
    /// A program of libibumad registers, or gives a registration back.
    Registration(Rc<Line>),
    /// A client of the control protocol.
    Client(Reply),
    /// A host begins with its first flow, or ends with its last. The flow's own request has what went wrong.
    Host,
    /// A client wants the host behind this port to begin a flow.
    Flow(Reply, PortId),
    /// A client wants it to forget a flow, which may have been its last.
    LastFlow(Reply, PortId),
    /// A client takes a virtual machine a step on, in this slot. An image is wanted from this byte on.
    Vm(Reply, DeviceId, u32),
}

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    waiting: BTreeMap<RequestId, Asker>,
    last: u64,
}

impl Asked {
    /// Keeps who asks; the answer comes with this id.
    pub(crate) fn note(&mut self, asker: Asker) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.waiting.insert(id, asker);
        id
    }

    /// The asker, once for each id.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Asker> {
        self.waiting.remove(&id)
    }
}
