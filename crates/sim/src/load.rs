//! Traffic without hosts: for measuring devices alone, and for patterns that no host would send.

use std::collections::VecDeque;

use weft_machine::Time;
use weft_topology::PortRef;
use weft_wire::{DataPacket, PortFacts, QpNum, ServiceLevel};

/// What an adapter has for the host behind one of its ports.
#[derive(Clone, Debug)]
pub enum ToHost {
    /// A packet for it.
    Accept(DataPacket),
    /// So many of its packets, given with this service level, have left.
    Injected(ServiceLevel, u16),
    /// A packet of its for this queue pair was not taken.
    Refused(QpNum),
    /// What it is to know of the port.
    Facts(Box<PortFacts>),
}

/// Stands in for the hosts behind all ports that have none.
pub trait Load {
    /// Hears what the adapter at `port` has for its host, and gives it packets to send.
    fn hear(&mut self, now: Time, port: PortRef, what: ToHost, inject: &mut VecDeque<DataPacket>);
}
