//! Frames on a cable.

use serde::{Deserialize, Serialize};
use weft_wire::{DataPacket, FlowControl, Packet, VirtualLane};

use crate::counters::is_multicast;

/// What crosses a cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// A packet with all its bytes.
    Packet(Packet),
    /// A packet whose body is a length.
    Data(DataPacket),
    /// What the sender's end of a lane has room for.
    Credit(FlowControl),
}

impl Frame {
    /// Whether it is on lane 15: without credits, and lost rather than kept when there is no room.
    #[inline]
    pub fn is_management(&self) -> bool {
        matches!(self, Self::Packet(packet) if packet.vl() == VirtualLane::MANAGEMENT)
    }

    /// A packet's lane; flow control is no packet.
    pub fn packet_lane(&self) -> Option<VirtualLane> {
        match self {
            Self::Data(packet) => Some(packet.vl),
            Self::Packet(packet) => Some(packet.vl()),
            Self::Credit(_) => None,
        }
    }

    /// What its device has to know if it cannot be sent; flow control is not counted.
    pub fn unsent(&self) -> Option<Unsent> {
        match self {
            Self::Packet(packet) => Some(packet.into()),
            Self::Data(packet) => Some(packet.into()),
            Self::Credit(_) => None,
        }
    }
}

/// What a device has to know of a packet that did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// Its lane.
    pub lane: VirtualLane,
    /// Its length in words of four bytes, as PortXmitData counts.
    pub words: u32,
    /// Whether it was for a multicast group.
    pub multicast: bool,
}

impl From<&Packet> for Unsent {
    fn from(packet: &Packet) -> Self {
        Self { lane: packet.vl(), words: packet.words(), multicast: is_multicast(packet.dlid()) }
    }
}

impl From<&DataPacket> for Unsent {
    fn from(packet: &DataPacket) -> Self {
        Self { lane: packet.vl, words: packet.words(), multicast: is_multicast(packet.dlid) }
    }
}
