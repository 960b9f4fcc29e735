//! Requests to nodes, so that each is known to have one answer.

use std::collections::BTreeMap;

use weft_node::RequestId;
use weft_topology::{NodeIndex, PortRef};

/// What asked a node for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A program, to be attached.
    Program(u32),
    /// A checker, to be attached.
    Checker,
    /// Whoever commands the host behind a port.
    Command(PortRef),
    /// The operator, for a device.
    Device(NodeIndex),
    /// The operator, for a device to go.
    Removal,
    /// The operator, who moves cables.
    Wiring,
    /// The manager of virtual machines, at the slot that this is.
    Vm(NodeIndex),
}

/// How many requests nodes were fed, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All of them.
    pub asked: u64,
    /// Those with an answer, a refusal too.
    pub answered: u64,
    /// Of those, refusals of anything but commands to hosts and steps of virtual machines.
    pub refused: u64,
    /// Those whose process ended before it answered.
    pub lost: u64,
    /// Answers to what was answered already, or never asked.
    pub unasked: u64,
}

impl Requests {
    /// Those that have no answer yet.
    pub fn open(&self) -> u64 {
        self.asked - self.answered - self.lost
    }
}

/// Requests without an answer, by their ids. Each has an id of its own.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: BTreeMap<RequestId, (NodeIndex, Asked)>,
    pub(crate) counts: Requests,
}

impl Ledger {
    /// A request to the node at `home`.
    pub(crate) fn ask(&mut self, home: NodeIndex, asked: Asked) -> RequestId {
        let id = RequestId(self.counts.asked);
        self.counts.asked += 1;
        self.open.insert(id, (home, asked));
        id
    }

    /// An answer from the node at `home`. Who wanted it.
    pub(crate) fn answered(&mut self, home: NodeIndex, id: RequestId, is_refusal: bool) -> Option<Asked> {
        let Some((_, asked)) = self.open.remove(&id).filter(|(asked_of, _)| *asked_of == home) else {
            self.counts.unasked += 1;
            return None;
        };
        self.counts.answered += 1;
        self.counts.refused += u64::from(is_refusal && !matches!(asked, Asked::Command(_) | Asked::Vm(_)));
        Some(asked)
    }

    /// The process of a node has ended.
    pub(crate) fn forget(&mut self, home: NodeIndex) {
        let before = self.open.len();
        self.open.retain(|_, (asked_of, _)| *asked_of != home);
        self.counts.lost += (before - self.open.len()) as u64;
    }
}
