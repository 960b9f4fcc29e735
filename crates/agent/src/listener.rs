//! One capture: its filter, and the packets that wait for its client.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tokio::sync::Notify;
use weft_control::HexBytes;
use weft_control::agent::{CaptureTotals, Captured, PortEnd};
use weft_node::PortId;
use weft_process::Requester;

/// Bytes of packets that wait for a client that does not read.
const WAITING_BYTES_MAX: usize = 4 << 20;

weft_wire::named! {
    /// Which way a packet crosses a cable, as the agent's port sees it.
    pub(crate) enum Direction {
        /// Out of the port.
        Sent = "sent",
        /// Into the port.
        Received = "received",
        /// Received and refused.
        Damaged = "damaged",
    }
}

/// A packet as all captures share it.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) end: PortEnd,
    pub(crate) direction: Direction,
    pub(crate) time_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

/// What one client wants, and what waits for it.
#[derive(Debug)]
pub(crate) struct Listener {
    at: At,
    requester: Requester,
    queue: RefCell<Queue>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// Packets, and how many were lost before each.
    waiting: VecDeque<(u32, Rc<Packet>)>,
    bytes: usize,
    totals: CaptureTotals,
    /// Lost since the last packet that waits.
    lost: u32,
}

#[derive(Debug)]
pub(crate) enum At {
    /// Every port, what it sends.
    Everything,
    /// Whether what is received is wanted too.
    Ports(BTreeMap<PortId, bool>),
}

impl Listener {
    pub(crate) fn new(at: At, requester: Requester) -> Self {
        Self { at, requester, queue: RefCell::default(), filled: Notify::new() }
    }

    /// The client that listens.
    pub(crate) fn requester(&self) -> &Requester {
        &self.requester
    }

    pub(crate) fn wants(&self, at: PortId, direction: Direction) -> bool {
        let sent = direction == Direction::Sent;
        match &self.at {
            At::Everything => sent,
            At::Ports(ports) => ports.get(&at).is_some_and(|received| sent || *received),
        }
    }

    /// Keeps a packet, or counts it as lost.
    pub(crate) fn hear(&self, packet: &Rc<Packet>) {
        let queue = &mut *self.queue.borrow_mut();
        if queue.bytes > WAITING_BYTES_MAX {
            queue.totals.lost += 1;
            queue.lost = queue.lost.saturating_add(1);
            return;
        }
        queue.bytes += packet.bytes.len();
        queue.waiting.push_back((std::mem::take(&mut queue.lost), packet.clone()));
        if queue.waiting.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Waits until there is a packet.
    pub(crate) async fn filled(&self) {
        while self.queue.borrow().waiting.is_empty() {
            self.filled.notified().await;
        }
    }

    /// Takes the oldest packets, at most `count`, each with the number of those lost before it.
    pub(crate) fn take(&self, count: usize) -> Vec<(u32, Rc<Packet>)> {
        let queue = &mut *self.queue.borrow_mut();
        let count = queue.waiting.len().min(count);
        let taken: Vec<_> = queue.waiting.drain(..count).collect();
        queue.bytes -= taken.iter().map(|(_, packet)| packet.bytes.len()).sum::<usize>();
        queue.totals.packets += taken.len() as u64;
        taken
    }

    /// What has been taken and lost so far.
    pub(crate) fn totals(&self) -> CaptureTotals {
        self.queue.borrow().totals
    }
}

impl Packet {
    /// As it is sent to the client.
    pub(crate) fn told(&self, lost: u32) -> Captured {
        Captured {
            end: self.end,
            sent: self.direction == Direction::Sent,
            damaged: self.direction == Direction::Damaged,
            time_ns: self.time_ns,
            lost,
            packet: HexBytes(self.bytes.clone()),
        }
    }
}
