//! Who listens to what crosses the agent's cables.
//!
//! A tap never holds anything up: what a program does not read in time is dropped and counted, and what is written to
//! it is gathered first. Nobody listening costs one branch for each packet.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_link::SendOutcome;
use weft_node::{Frame, PortId, Request};
use weft_umad::{CaptureTotals, Captured, PortEnd, ServerMessage, Tap};
use weft_wire::{Packet, Printable};

use crate::asked::Asker;
use crate::client::Program;
use crate::core::Core;
use crate::record::Who;

/// Programs that may capture at the same time. Each may have [`Program::queue_captured`]'s bound waiting.
const LISTENERS_MAX: usize = 32;

/// What is logged of packets, at level TRACE.
const LOG_TARGET: &str = "weft_agent::packets";

/// Which way a packet crosses a cable, as the agent's port sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Sent,
    Received,
    /// Received and refused.
    Damaged,
}

/// All that listens.
#[derive(Debug)]
pub(crate) struct Taps {
    listeners: Vec<Listener>,
    /// Each packet is also a line of the log.
    logged: bool,
    /// Somebody or something wants to know.
    active: bool,
}

/// A program that captures.
#[derive(Debug)]
struct Listener {
    program: Rc<Program>,
    at: At,
    totals: CaptureTotals,
    /// Lost since the last packet that was told.
    lost: u32,
}

#[derive(Debug)]
enum At {
    /// Every port, what it sends.
    Everything,
    /// Whether what is received is wanted too.
    Ports(BTreeMap<PortId, bool>),
}

impl At {
    fn wants(&self, at: PortId, direction: Direction) -> bool {
        let sent = direction == Direction::Sent;
        match self {
            Self::Everything => sent,
            Self::Ports(ports) => ports.get(&at).is_some_and(|received| sent || *received),
        }
    }
}

impl Taps {
    pub(crate) fn new() -> Self {
        let logged = tracing::enabled!(target: LOG_TARGET, tracing::Level::TRACE);
        Self { listeners: Vec::new(), logged, active: logged }
    }

    /// Whether a packet has to be shown to [`Taps::take`].
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// A program begins to listen.
    pub(crate) fn listen(&mut self, program: &Rc<Program>, at: Tapped) -> Result<(), String> {
        if self.listeners.iter().any(|listener| Rc::ptr_eq(&listener.program, program)) {
            return Err("this connection captures already".into());
        }
        if self.listeners.len() >= LISTENERS_MAX {
            return Err(format!("{LISTENERS_MAX} captures are under way already"));
        }
        let (program, totals) = (program.clone(), CaptureTotals::default());
        self.listeners.push(Listener { program, at: at.0, totals, lost: 0 });
        self.active = true;
        Ok(())
    }

    /// A program has heard enough, or is gone.
    pub(crate) fn forget(&mut self, program: &Rc<Program>) -> Option<CaptureTotals> {
        let place = self.listeners.iter().position(|listener| Rc::ptr_eq(&listener.program, program))?;
        let listener = self.listeners.remove(place);
        self.active = self.logged || !self.listeners.is_empty();
        Some(listener.totals)
    }

    /// Whether anybody wants the packets that cross there.
    pub(crate) fn wants(&self, at: PortId, direction: Direction) -> bool {
        self.logged || self.listeners.iter().any(|listener| listener.at.wants(at, direction))
    }

    /// Tells a packet to those who want it; whether something waits to be written from now on.
    pub(crate) fn take(&mut self, at: PortId, who: &Who, direction: Direction, packet: &[u8]) -> bool {
        if self.logged {
            log(at, who, direction, packet);
        }
        let mut wanting =
            self.listeners.iter_mut().filter(|listener| listener.at.wants(at, direction)).peekable();
        if wanting.peek().is_none() {
            return false;
        }
        let mut message = ServerMessage::Captured(Captured {
            end: PortEnd { node: who.guid, port: at.port },
            sent: direction == Direction::Sent,
            damaged: direction == Direction::Damaged,
            // All agents of a machine read the same clock.
            time_ns: weft_process::utc_now().as_nanos(),
            lost: 0,
            packet: packet.to_vec(),
        });
        for listener in wanting {
            if let ServerMessage::Captured(captured) = &mut message {
                captured.lost = listener.lost;
            }
            if listener.program.queue_captured(&message) {
                listener.totals.packets += 1;
                listener.lost = 0;
            } else {
                listener.totals.lost += 1;
                listener.lost = listener.lost.saturating_add(1);
            }
        }
        true
    }

    /// Writes what was gathered.
    pub(crate) fn flush(&self) {
        self.listeners.iter().for_each(|listener| listener.program.flush());
    }
}

impl Core {
    /// Hands a frame to its cable and shows it to those who listen, if it went.
    pub(crate) fn transmit_tapped(&mut self, at: PortId, frame: Frame) -> Option<SendOutcome> {
        let bytes = self.taps.wants(at, Direction::Sent).then(|| bytes(&frame)).flatten();
        let outcome = self.hand_over(at, frame);
        if let (Some(bytes), Some(SendOutcome::Sent | SendOutcome::Queued)) = (bytes, outcome) {
            self.tap(at, Direction::Sent, &bytes);
        }
        outcome
    }

    /// Shows a frame that crosses a cable within the agent.
    pub(crate) fn tap_crossing(&mut self, at: PortId, received: bool, frame: &Frame) {
        let direction = if received { Direction::Received } else { Direction::Sent };
        self.tap_frame(at, direction, frame);
    }

    /// A program has heard enough, or is gone.
    pub(crate) fn stop_capture(&mut self, program: &Rc<Program>) -> Option<CaptureTotals> {
        let totals = self.taps.forget(program)?;
        if !self.taps.is_active() {
            self.ask(Asker::Agent, Request::Watch(false));
        }
        Some(totals)
    }

    /// Shows a frame that crosses a cable to those who listen.
    pub(crate) fn tap_frame(&mut self, at: PortId, direction: Direction, frame: &Frame) {
        if self.taps.wants(at, direction)
            && let Some(bytes) = bytes(frame)
        {
            self.tap(at, direction, &bytes);
        }
    }

    /// Shows a packet that crosses a cable to those who listen.
    pub(crate) fn tap(&mut self, at: PortId, direction: Direction, packet: &[u8]) {
        let Some(named) = self.names.of(at.device) else { return };
        if self.taps.take(at, &named.who, direction, packet) {
            self.signals.captured.notify_one();
        }
    }
}

/// What a capture has of a frame: all of a packet's bytes, made up where they did not travel. Flow control is no packet.
fn bytes(frame: &Frame) -> Option<Vec<u8>> {
    match frame {
        Frame::Packet(packet) => Some(packet.bytes().to_vec()),
        Frame::Data(packet) => Some(packet.to_whole().into_bytes()),
        Frame::Credit(_) => None,
    }
}

/// A [`Tap`] of which every port is one of the agent's.
#[derive(Debug)]
pub(crate) struct Tapped(At);

impl Tapped {
    /// Finds the ports; says which one is not here.
    pub(crate) fn find(tap: &Tap, find: impl Fn(PortEnd) -> Option<PortId>) -> Result<Self, String> {
        let Tap::Ports(wanted) = tap else { return Ok(Self(At::Everything)) };
        let mut ports = BTreeMap::new();
        for port in wanted {
            let Some(at) = find(port.end) else {
                return Err(format!("port {} of node {} is not here", port.end.port, port.end.node));
            };
            ports.insert(at, port.received);
        }
        Ok(Self(At::Ports(ports)))
    }
}

fn log(at: PortId, who: &Who, direction: Direction, packet: &[u8]) {
    let (node, port) = (Printable(&who.description), at.port);
    let mad = Packet::parse(packet.to_vec()).ok().and_then(|packet| packet.mad());
    if let Some(mad) = mad {
        let (tid, name) = (mad.transaction_id(), mad.name());
        tracing::trace!(target: LOG_TARGET, %node, %port, ?direction, %tid, mad = %name, "packet");
    } else {
        tracing::trace!(target: LOG_TARGET, %node, %port, ?direction, bytes = packet.len(), "packet");
    }
}
