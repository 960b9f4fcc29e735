//! One client's capture: packets that cross the agent's cables, kept until the client reads them.
//!
//! A capture never holds anything up: what its client does not read in time is dropped and counted.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use weft_control::agent::{CaptureTotals, Captured, PortEnd, Tap};
use weft_control::{Error, ErrorCode, HexBytes};
use weft_node::{PortId, Request};

use crate::agent::Agent;
use crate::asked::Asker;
use crate::core::Core;
use crate::tap::Direction;

/// Packets wait this long to be told together: less than a capture waits for those of other agents.
const GATHER: Duration = Duration::from_millis(5);
/// Bytes of packets that wait for a client that does not read.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Packets that are told at once.
const BATCH: usize = 256;

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
enum At {
    /// Every port, what it sends.
    Everything,
    /// Whether what is received is wanted too.
    Ports(BTreeMap<PortId, bool>),
}

impl Listener {
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
}

/// A client's capture. Dropping it ends it.
pub(crate) struct Capture {
    agent: Rc<Agent>,
    listener: Rc<Listener>,
}

impl Capture {
    /// Begins to listen.
    pub(crate) fn begin(agent: &Rc<Agent>, tap: &Tap) -> Result<Self, Error> {
        let listener = agent.with_core(|core| {
            let at = core.find_tapped(tap)?;
            let listener = Rc::new(Listener { at, queue: RefCell::default(), filled: Notify::new() });
            core.taps.listen(listener.clone())?;
            core.recorder.count("captures");
            core.ask(Asker::Agent, Request::Watch(true));
            Ok(listener)
        });
        Ok(Self { agent: agent.clone(), listener: listener? })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.agent.with_core(|core| core.stop_capture(&self.listener));
    }
}

impl weft_process::Capture for Capture {
    async fn ready(&mut self) {
        while self.listener.queue.borrow().waiting.is_empty() {
            self.listener.filled.notified().await;
        }
        tokio::time::sleep(GATHER).await;
    }

    fn take(&mut self) -> Vec<Captured> {
        let queue = &mut *self.listener.queue.borrow_mut();
        let count = queue.waiting.len().min(BATCH);
        let told = queue.waiting.drain(..count).map(|(lost, packet)| {
            queue.bytes -= packet.bytes.len();
            queue.totals.packets += 1;
            packet.told(lost)
        });
        told.collect()
    }

    fn totals(&self) -> CaptureTotals {
        self.listener.queue.borrow().totals
    }
}

impl Packet {
    fn told(&self, lost: u32) -> Captured {
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

impl Core {
    /// Where a client wants to listen; says which port is not here.
    fn find_tapped(&self, tap: &Tap) -> Result<At, Error> {
        let Tap::Ports(wanted) = tap else { return Ok(At::Everything) };
        let mut ports = BTreeMap::new();
        for port in wanted {
            let at = self.names.find(port.end.node.0).map(|device| PortId::new(device, port.end.port));
            let at = at.filter(|at| {
                self.node.device(at.device).is_some_and(|device| device.link_parameters(at.port).is_some())
            });
            let not_here = || {
                let message = format!("port {} of node {} is not here", port.end.port, port.end.node);
                Error::new(ErrorCode::NotFound, message)
            };
            ports.insert(at.ok_or_else(not_here)?, port.received);
        }
        Ok(At::Ports(ports))
    }

    fn stop_capture(&mut self, listener: &Rc<Listener>) {
        self.taps.forget(listener);
        if !self.taps.is_active() {
            self.ask(Asker::Agent, Request::Watch(false));
        }
    }
}
