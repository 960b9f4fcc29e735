//! The tap: packets on the agent's cables, for listeners. Without listeners it costs one branch for each packet.

use std::rc::Rc;

use weft_control::HexGuid;
use weft_control::agent::PortEnd;
use weft_node::PortId;
use weft_process::Crowded;
use weft_wire::{Packet, Printable};

use crate::listener::{self, Direction, Listener};
use crate::record::Who;

/// Captures at the same time, and those of one process or identity: more than an identity may have by a hub's door.
pub(crate) const LISTENERS_MAX: usize = 48;
pub(crate) const LISTENERS_OF_ONE_MAX: usize = 24;

/// What is logged of packets, at level TRACE.
const LOG_TARGET: &str = "weft_agent::packets";

/// All that listens.
#[derive(Debug)]
pub(crate) struct Taps {
    listeners: Vec<Rc<Listener>>,
    /// Each packet is also a line of the log.
    logged: bool,
}

impl Taps {
    pub(crate) fn new() -> Self {
        let logged = tracing::enabled!(target: LOG_TARGET, tracing::Level::TRACE);
        Self { listeners: Vec::new(), logged }
    }

    /// Whether a packet has to be shown to [`Taps::take`].
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.logged || !self.listeners.is_empty()
    }

    /// A client begins to listen.
    pub(crate) fn listen(&mut self, listener: Rc<Listener>) -> Result<(), Crowded> {
        if self.listeners.len() >= LISTENERS_MAX {
            return Err(Crowded::Full);
        }
        let own = self.listeners.iter().filter(|other| other.requester() == listener.requester()).count();
        if own >= LISTENERS_OF_ONE_MAX {
            return Err(Crowded::OfOne);
        }
        self.listeners.push(listener);
        Ok(())
    }

    /// A client has heard enough, or is gone.
    pub(crate) fn forget(&mut self, listener: &Rc<Listener>) {
        self.listeners.retain(|other| !Rc::ptr_eq(other, listener));
    }

    /// Whether anything wants the packets that cross there.
    pub(crate) fn wants(&self, at: PortId, direction: Direction) -> bool {
        self.logged || self.listeners.iter().any(|listener| listener.wants(at, direction))
    }

    /// Tells a packet to those who want it.
    pub(crate) fn take(&mut self, at: PortId, who: &Who, direction: Direction, packet: &[u8]) {
        if self.logged {
            log(at, who, direction, packet);
        }
        let mut wanting = self.listeners.iter().filter(|listener| listener.wants(at, direction)).peekable();
        if wanting.peek().is_none() {
            return;
        }
        let packet = Rc::new(listener::Packet {
            end: PortEnd { node: HexGuid(who.guid), port: at.port },
            direction,
            // All agents of a machine read the same clock.
            time_ns: weft_process::utc_now().as_nanos(),
            bytes: packet.to_vec(),
        });
        wanting.for_each(|listener| listener.hear(&packet));
    }
}

fn log(at: PortId, who: &Who, direction: Direction, packet: &[u8]) {
    let (node, port) = (Printable(&who.description), at.port);
    let mad = Packet::parse(packet.to_vec()).ok().and_then(|packet| packet.mad());
    if let Some(mad) = mad {
        let (tid, name) = (mad.transaction_id(), mad.name());
        tracing::trace!(target: LOG_TARGET, %node, %port, %direction, %tid, mad = %name, "packet");
    } else {
        tracing::trace!(target: LOG_TARGET, %node, %port, %direction, bytes = packet.len(), "packet");
    }
}

#[cfg(test)]
mod tests {
    use weft_process::Requester;

    use super::*;
    use crate::listener::At;

    #[test]
    fn no_requester_takes_the_captures_of_others() {
        let mut taps = Taps::new();
        let mut begin = |requester: &Requester| {
            let listener = Rc::new(Listener::new(At::Everything, requester.clone()));
            taps.listen(listener.clone()).map(|()| listener)
        };
        let (process, other) = (Requester::Process(7), Requester::Process(8));
        let identity = |serial: &str| Requester::Identity(Some(serial.to_owned()));
        let mut greedy: Vec<_> = (0..24).map(|_| begin(&process).expect("room")).collect();
        assert_eq!(begin(&process).err(), Some(Crowded::OfOne));
        let others: Vec<_> = (0..22).map(|_| begin(&identity("01")).expect("room")).collect();
        assert!(begin(&identity("02")).is_ok() && begin(&other).is_ok());
        assert_eq!(begin(&Requester::Process(9)).err(), Some(Crowded::Full));
        taps.forget(&greedy.remove(0));
        let mut begin =
            |requester: &Requester| taps.listen(Rc::new(Listener::new(At::Everything, requester.clone())));
        assert_eq!(begin(&process), Ok(()), "what is over does not count");
        drop(others);
    }
}
