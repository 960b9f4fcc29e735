//! Traffic without hosts: for measuring devices alone, and for patterns that no host would send.

use std::collections::VecDeque;

use weft_machine::Time;
use weft_node::ToHost;
use weft_topology::PortRef;
use weft_wire::DataPacket;

/// Stands in for the hosts behind all ports that have none.
pub trait Load {
    /// Hears what the adapter at `port` has for its host, and gives it packets to send.
    fn hear(&mut self, now: Time, port: PortRef, what: ToHost, inject: &mut VecDeque<DataPacket>);
}
